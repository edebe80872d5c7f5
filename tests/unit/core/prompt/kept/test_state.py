"""A state as it is kept: read again it is the same, and only where telling the branch would lead to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.talking import IN_PLACE, LIBRARY, QUARTERS, note, result
from tests.unit.core.prompt.test_telling import AUTO, NEW, ROUND, pasts

from lamella.core.log.compactions import NONE_IN_FORCE, CompactionsInForce
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.receipt import Receipt, Step, StepName
from lamella.core.log.terms import History, Layout, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.planning.layouts import place
from lamella.core.prompt.kept.state import read_state, write_state
from lamella.core.prompt.state import State
from lamella.core.prompt.telling import advance_all
from lamella.core.values import replace

TERMS = (LIBRARY, IN_PLACE, AUTO, replace(IN_PLACE, history=History.STRIP, history_turns=2))
SHORT = Receipt(
    id="r",
    parent="3a",
    steps=(
        Step(name=StepName.REPLIES, removed=("1a", "2a")),
        Step(name=StepName.SUMMARY, removed=("0q", "0a"), text="<s>\nBefore.\n</s>\n", content="Before."),
    ),
    tokens_before=9,
    tokens_after=8,
    target=8,
    chain=2,
)
EVENT = CompactionEvent(id="r", parent="3a", steps=(), skipped=(), tokens=(9, 8), target=8, automatic=True)


def tell(turns: list[Turn]) -> State:
    """The state that turns lead to, as the next one is asked in it."""
    return replace(advance_all(NEW, turns, place, measure=QUARTERS), last=None, shelf_of=None)


def said(turns: list[Turn]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = tuple(name for turn in turns for name in (turn.id or "", turn.reply_id or ""))
    return names, tuple(text for turn in turns for text in (turn.text, turn.reply or ""))


def contents(turns: list[Turn]) -> dict[str, bytes]:
    brought = [one for turn in turns for one in (*turn.attached, *turn.results)]
    return {one.hash: one.text.encode() for one in brought}


def keep(turns: list[Turn], *, at: int, usual: Terms = LIBRARY, committed: CompactionsInForce = NONE_IN_FORCE) -> bytes:
    return write_state(tell(turns[:at]), *said(turns), committed=committed, usual=usual, measure=QUARTERS)[0]


def read(data: bytes, turns: list[Turn]) -> State:
    kept = read_state(data)
    assert kept is not None
    held = contents(turns)
    needed = {name: held[name] for name in kept.hashes()}
    found = kept.unpack(*said(turns), needed, read_later=lambda hashes: {name: held[name].decode() for name in hashes})
    assert found is not None
    state, tokens = found
    assert tokens == {text: QUARTERS.count(text) for text in tokens}
    return replace(state, shelf_of=None)


@given(st.sampled_from(TERMS).flatmap(pasts), st.data())
def test_a_state_is_read_as_it_was_and_goes_on_as_it_would_have(turns: list[Turn], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(turns) - 1))
    again = read(keep(turns, at=at), turns)
    assert again == tell(turns[:at])
    both = [advance_all(state, turns[at:], place, measure=QUARTERS) for state in (tell(turns[:at]), again)]
    assert replace(both[0], shelf_of=None) == replace(both[1], shelf_of=None)


def long_past(terms: Terms) -> list[Turn]:
    odd: list[Turn] = [
        Turn(text="", attached=(note("a.md", "A " * 400),)),
        Turn(text="", results=(result("x", "found"),), attached=(note("a.md", "B"),)),
        Turn(text="", rounds=(ROUND,)),
        Turn(text="", system=SystemParts(base="Be brief."), model="two"),
        Turn(text="", receipts=(SHORT,)),
        Turn(text="", attached=(note("b.md", "C"),), pinned=("1q",)),
        Turn(text=""),
    ]
    return [
        replace(turn, text=f"q{at}", typed=f"q{at}", reply=f"a{at} " * 30, id=f"{at}q", reply_id=f"{at}a", terms=terms)
        for at, turn in enumerate(odd)
    ]


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("terms", TERMS)
def test_whatever_was_done_in_it_is_read_as_it_was(terms: Terms, at: int) -> None:
    turns = long_past(terms)
    again = read(keep(turns, at=at), turns)
    assert again == tell(turns[:at])
    assert [one.sent is one.user.message for one in again.talk.exchanges if not one.rounds and not one.tools] == [
        one.sent == one.user.message for one in again.talk.exchanges if not one.rounds and not one.tools
    ]


def test_words_and_contents_are_not_written_a_second_time() -> None:
    turns = long_past(IN_PLACE)[:1] + long_past(IN_PLACE)[-1:]
    data = keep(turns, at=1)
    assert data
    assert b"A A A A" not in data
    assert b"a0 a0" not in data


def test_a_state_holds_only_where_telling_the_branch_would_lead_to_it() -> None:
    turns = long_past(IN_PLACE)
    names = said(turns)[0]
    kept = read_state(keep(turns, at=4))
    assert kept is not None
    assert (kept.turns, kept.head, kept.model) == (4, "3a", "two")
    holds = {
        "as it was": kept.holds(names, NONE_IN_FORCE, usual=LIBRARY, measure=QUARTERS),
        "longer": kept.holds((*names, "9q"), NONE_IN_FORCE, usual=LIBRARY, measure=QUARTERS),
        "too short": kept.holds(names[:9], NONE_IN_FORCE, usual=LIBRARY, measure=QUARTERS),
        "other branch": kept.holds((*names[:7], "x", *names[8:]), NONE_IN_FORCE, usual=LIBRARY, measure=QUARTERS),
        "other terms": kept.holds(names, NONE_IN_FORCE, usual=Terms(layout=Layout.AUTO), measure=QUARTERS),
        "other counts": kept.holds(names, NONE_IN_FORCE, usual=LIBRARY, measure=replace(QUARTERS, factor=2.0)),
        "compacted later": kept.holds(
            names, CompactionsInForce(before={"4q": (EVENT,)}), usual=LIBRARY, measure=QUARTERS
        ),
        "compacted before": kept.holds(
            names, CompactionsInForce(before={"2q": (EVENT,)}), usual=LIBRARY, measure=QUARTERS
        ),
    }
    assert [name for name, held in holds.items() if held] == ["as it was", "longer", "compacted later"]


def test_a_state_without_its_contents_is_none() -> None:
    turns = long_past(LIBRARY)
    kept = read_state(keep(turns, at=3))
    assert kept is not None
    assert set(kept.hashes()) <= set(contents(turns))
    assert kept.unpack(*said(turns), {}, read_later=lambda _: {}) is None


def test_what_is_no_state_between_two_turns_of_the_branch_is_not_kept() -> None:
    turns = long_past(LIBRARY)
    state = tell(turns[:3])
    names, texts = said(turns)

    def write(one: State, names: tuple[str, ...] = names) -> bytes:
        return write_state(one, names, texts, committed=NONE_IN_FORCE, usual=LIBRARY, measure=QUARTERS)[0]

    assert write(state)
    assert not write(replace(state, waits=True))
    assert not write(replace(state, measured_by="other"))
    assert not write(replace(state, head="elsewhere"))
    assert not write(NEW)
    assert not write(state, names[:4])


def test_bytes_that_are_no_state_are_not_read() -> None:
    data = keep(long_past(LIBRARY), at=3)
    assert read_state(b"") is None
    assert read_state(data[:-1]) is None
    assert read_state(b"\x93" + data[1:]) is None
