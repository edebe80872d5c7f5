from datetime import UTC, datetime

from lamella.core.log.turn import CacheStateAfterPause, LayoutPlan
from lamella.core.prompt.cache_history import (
    AGE_BUCKETS,
    NO_CACHE_HISTORY,
    AttachmentStats,
    CacheEntry,
    CacheHistoryBuilder,
    add_tool_messages,
    record_request,
)

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def test_request_is_cached_at_breakpoints_and_question() -> None:
    cache_history = record_request(
        NO_CACHE_HISTORY,
        LayoutPlan(keep_messages=0, breakpoints=(0, 2), at=NOW),
        question_index=3,
        working_set=(),
        known_ids=(),
        ages={},
    )
    assert [one.position for one in cache_history.entries] == [0, 2, 3]
    assert (cache_history.at, cache_history.stable_message) == (NOW, 2)


def test_cut_removes_later_entries_and_keeps_cached_ones() -> None:
    cache_history = NO_CACHE_HISTORY._replace(entries=(CacheEntry(0, None), CacheEntry(4, None), CacheEntry(8, None)))
    cut = record_request(
        cache_history,
        LayoutPlan(keep_messages=5, cached_message=4, at=NOW),
        question_index=11,
        working_set=(),
        known_ids=(),
        ages={},
    )
    assert [(one.position, one.at) for one in cut.entries] == [(0, None), (4, NOW), (11, NOW)]


def test_long_lifetime_applies_up_to_planned_position() -> None:
    layout_plan = LayoutPlan(keep_messages=0, breakpoints=(0, 4), long_lifetime_until=4, at=NOW)
    cache_history = record_request(
        NO_CACHE_HISTORY, layout_plan, question_index=5, working_set=(), known_ids=(), ages={}
    )
    assert [one.has_long_lifetime for one in cache_history.entries] == [True, True, False]


def test_expiries_are_counted_if_pause_is_known() -> None:
    cache_history = NO_CACHE_HISTORY
    for lapse in (
        CacheStateAfterPause.UNKNOWN,
        CacheStateAfterPause.NONE,
        CacheStateAfterPause.SHORT,
        CacheStateAfterPause.LONG,
    ):
        cache_history = record_request(
            cache_history, LayoutPlan(expiry=lapse), question_index=1, working_set=(), known_ids=(), ages={}
        )
    assert (cache_history.requests, cache_history.short_expiries, cache_history.long_expiries) == (3, 1, 1)


def test_attachment_stats_count_kept_left_and_returned() -> None:
    cache_history = record_request(
        NO_CACHE_HISTORY, LayoutPlan(), question_index=1, working_set=("a", "b"), known_ids=(), ages={}
    )
    cache_history = record_request(
        cache_history, LayoutPlan(), question_index=3, working_set=("a",), known_ids=("a", "b"), ages={}
    )
    cache_history = record_request(
        cache_history, LayoutPlan(), question_index=5, working_set=("a", "b"), known_ids=("a", "b"), ages={}
    )
    assert cache_history.attachment_stats == {
        "a": AttachmentStats(stayed=2),
        "b": AttachmentStats(stayed=1, dropped=1, absent=1, returned=1),
    }


def test_tool_round_messages_are_cached() -> None:
    cache_history = record_request(
        NO_CACHE_HISTORY, LayoutPlan(), question_index=3, working_set=(), known_ids=(), ages={}
    )
    assert [one.position for one in add_tool_messages(cache_history, 4).entries] == [3, 7]


def test_age_counts_record_when_attachments_left() -> None:
    cache_history = record_request(
        NO_CACHE_HISTORY, LayoutPlan(), question_index=1, working_set=("a", "b"), known_ids=(), ages={}
    )
    cache_history = record_request(
        cache_history,
        LayoutPlan(),
        question_index=3,
        working_set=("a", "b"),
        known_ids=("a", "b"),
        ages={"a": 1, "b": 1},
    )
    cache_history = record_request(
        cache_history, LayoutPlan(), question_index=5, working_set=("a",), known_ids=("a", "b"), ages={"a": 1, "b": 2}
    )
    assert cache_history.age_counts[:3] == ((3, 0), (1, 1), (0, 0))


def test_old_attachments_share_one_age() -> None:
    cache_history = NO_CACHE_HISTORY._replace(working_set=("a",))
    for age in (AGE_BUCKETS, AGE_BUCKETS + 1, AGE_BUCKETS + 90):
        cache_history = record_request(
            cache_history, LayoutPlan(), question_index=1, working_set=("a",), known_ids=("a",), ages={"a": age}
        )
    assert cache_history.age_counts[-1] == (3, 0)


def test_batch_update_gives_same_age_counts_as_single_ones() -> None:
    start = NO_CACHE_HISTORY._replace(working_set=("a", "b"))
    one, told, brought = start, CacheHistoryBuilder(start, {"a": 3, "b": 1}), {"a": -3, "b": -1}
    steps = [("a", "b"), ("a",), ("a", "c"), *[("a", "c")] * 12, ("c",), ("c",)]
    for number, attached in enumerate(steps):
        ages = {name: number - brought[name] for name in one.working_set if name in brought}
        one = record_request(
            one, LayoutPlan(), question_index=1 + 2 * number, working_set=attached, known_ids=tuple(brought), ages=ages
        )
        told.record_requests((LayoutPlan(),), question_index=1 + 2 * number, working_set=attached)
        new = ["c"] if number in (2, 6) else []
        told.add_known(new)
        brought |= dict.fromkeys(new, number)
    assert told.finish().age_counts == one.age_counts
    assert sum(left for _, left in one.age_counts) == 2
