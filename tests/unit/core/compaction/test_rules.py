"""Rules of compaction: what holds unless it is said otherwise, and what makes no sense."""

import pytest

from lamella.core.artifacts.model import Kind
from lamella.core.compaction.rules import ChainRules, KindRules, SummaryRules
from lamella.core.log.receipt import STEP_ORDER
from lamella.errors import SettingError


def test_the_chain_runs_as_documented_unless_it_is_said_otherwise() -> None:
    chain = ChainRules()
    assert (chain.steps, chain.words, chain.kinds, chain.stages) == (STEP_ORDER, frozenset(), {}, ())
    assert (chain.every_kind.preview_over, chain.every_kind.handle_after, chain.every_kind.shrink) == (
        5_000,
        None,
        True,
    )
    caps = chain.summary
    assert (caps.reads, caps.writes, caps.exact, caps.turns, caps.item) == (16_000, 500, 500, 3, 2_000)


def test_rules_of_a_kind_come_before_those_of_every_kind() -> None:
    own = KindRules(shrink=False)
    chain = ChainRules(kinds={Kind.URL: own})
    assert chain.of_kind(Kind.URL) is own
    assert chain.of_kind(Kind.NOTE) is chain.every_kind


@pytest.mark.parametrize("wrong", [{"preview_over": -1}, {"handle_after": -1}])
def test_what_cannot_be_below_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="cannot be below 0") as caught:
        KindRules(**wrong)  # type: ignore[arg-type]
    assert caught.value.hint.startswith("Give how many characters")
    KindRules(preview_over=0, handle_after=0)


def test_the_least_that_a_summary_may_read_and_write_is_one() -> None:
    SummaryRules(reads=1, writes=1, exact=0, turns=1, item=1)
    with pytest.raises(SettingError) as caught:
        SummaryRules(reads=0)
    assert caught.value.hint == "Give whole numbers above 0; exact may be 0."
