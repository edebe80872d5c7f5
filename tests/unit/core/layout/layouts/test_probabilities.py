import pytest

from lamella.core.layout.layouts import ReuseProbabilities, estimate_reuse_probabilities, expected_short_expiries
from lamella.core.prompt.cache_history import NO_CACHE_HISTORY, AttachmentStats


def test_default_probabilities_apply_without_history() -> None:
    probabilities = estimate_reuse_probabilities(NO_CACHE_HISTORY)
    assert 0 < probabilities.expiry < 0.2
    assert probabilities.reattach_probability("a.md") == probabilities.mean_reattach
    assert probabilities.leave_probability("a.md") == probabilities.mean_drop


def test_expiries_raise_expiry_probability_and_quiet_requests_lower_it() -> None:
    usual = estimate_reuse_probabilities(NO_CACHE_HISTORY).expiry
    assert estimate_reuse_probabilities(NO_CACHE_HISTORY._replace(requests=10, short_expiries=5)).expiry > usual
    assert estimate_reuse_probabilities(NO_CACHE_HISTORY._replace(requests=100)).expiry < usual


def test_often_reattached_note_saves_less_when_dropped() -> None:
    habits = {"often.md": AttachmentStats(absent=10, returned=6), "never.md": AttachmentStats(absent=30)}
    probabilities = estimate_reuse_probabilities(NO_CACHE_HISTORY._replace(attachment_stats=habits))
    assert (
        probabilities.saving_of_removed_artifact("often.md", 0.1, 1.25)
        < 0
        < probabilities.saving_of_removed_artifact("never.md", 0.1, 1.25)
    )
    assert probabilities.saving_of_removed_artifact("never.md", 0.1, 1.25) < probabilities.saving_of_removed_text(
        0.1, 1.25
    )


def test_free_reads_save_nothing() -> None:
    assert estimate_reuse_probabilities(NO_CACHE_HISTORY).saving_of_removed_text(0.0, 1.0) == 0


def test_short_expiries_are_estimated_from_past_ones() -> None:
    seen = NO_CACHE_HISTORY._replace(requests=40)
    assert expected_short_expiries(seen) < expected_short_expiries(seen._replace(short_expiries=4))
    assert expected_short_expiries(seen._replace(short_expiries=4, long_expiries=9)) < expected_short_expiries(
        seen._replace(short_expiries=4)
    )


def test_cut_saves_no_more_than_the_same_costs_a_turn_later() -> None:
    probabilities = estimate_reuse_probabilities(NO_CACHE_HISTORY)
    nothing_goes, some_goes = (
        probabilities.cost_of_cut_next_turn(0.1, 1.25, tokens_after_cut=1_000, leaving_tokens=going)
        for going in (0.0, 500.0)
    )
    assert 0 < some_goes < nothing_goes < 1_150
    assert probabilities.cost_of_cut_next_turn(0.1, 1.25, tokens_after_cut=1_000, leaving_tokens=1_000) == 0
    assert probabilities.cost_of_cut_next_turn(1.0, 1.0, tokens_after_cut=1_000, leaving_tokens=500) == 0


def test_expected_saving_counts_reads_until_return_expiry_or_cut() -> None:
    probabilities = ReuseProbabilities(
        expiry=0.1,
        mean_reattach=0.05,
        mean_drop=0.2,
        cache_history=NO_CACHE_HISTORY._replace(attachment_stats={"b.md": AttachmentStats(absent=4, returned=2)}),
    )
    assert [probabilities.reattach_probability(name) for name in ("a.md", "b.md")] == pytest.approx([0.05, 0.23])
    # A cut later takes it along with a chance of .45 times the root of .1 / .9.
    assert probabilities.saving_of_removed_artifact("a.md", 0.1, 1.0) == pytest.approx(
        0.9 * (0.1 - 0.05) / (0.05 + 0.1 + 0.15)
    )
    assert probabilities.saving_of_removed_text(0.1, 1.0) == pytest.approx(0.9 * 0.1 / (0.1 + 0.15))
    assert probabilities.saving_of_removed_text(1.0, 1.0) == pytest.approx(0.9 / 1.1)


def test_plan_looks_ahead_at_least_ten_requests() -> None:
    assert expected_short_expiries(NO_CACHE_HISTORY) == pytest.approx(0.06 * 10)
    assert expected_short_expiries(NO_CACHE_HISTORY._replace(requests=10)) == pytest.approx(0.06 * 8 / 18 * 10)
    assert expected_short_expiries(NO_CACHE_HISTORY._replace(requests=11)) == pytest.approx(0.06 * 8 / 19 * 11)


def test_likely_age_of_leaving_is_learned() -> None:
    ages = ((20, 0), (20, 18), *NO_CACHE_HISTORY.age_counts[2:])
    probabilities = estimate_reuse_probabilities(NO_CACHE_HISTORY._replace(age_counts=ages))
    assert [probabilities.is_likely_to_leave(age) for age in (1, 2, 3, 40)] == [False, True, False, False]
    assert not any(estimate_reuse_probabilities(NO_CACHE_HISTORY).is_likely_to_leave(age) for age in (1, 2, 40))
