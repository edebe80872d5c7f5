"""States in checkpoints: a state is read back equal, and only if replaying the branch would lead to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.stories import IN_PLACE, LIBRARY, QUARTERS, note, result
from tests.unit.core.prompt.test_replay import AUTO, NEW, ROUND, pasts

from lamella.core.layout.layouts import choose_layout
from lamella.core.log.compactions import NO_COMPACTIONS, ActiveCompactions
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName
from lamella.core.log.turn import HistoryMode, LayoutMode, SystemParts, Turn, TurnSettings
from lamella.core.prompt.checkpoint import decode_state_checkpoint, encode_state_checkpoint
from lamella.core.prompt.replay import replay_turns
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

TERMS = (LIBRARY, IN_PLACE, AUTO, replace(IN_PLACE, history=HistoryMode.STRIP, history_turns=2))
SHORT = CompactionReceipt(
    id="r",
    parent="3a",
    steps=(
        CompactionStep(name=CompactionStepName.REPLIES, removed=("1a", "2a")),
        CompactionStep(
            name=CompactionStepName.SUMMARY, removed=("0q", "0a"), text="<s>\nBefore.\n</s>\n", content="Before."
        ),
    ),
    tokens_before=9,
    tokens_after=8,
    target=8,
    chain_version=2,
)
EVENT = CompactionEvent(id="r", parent="3a", steps=(), skipped=(), tokens=(9, 8), target=8, automatic=True)


def replayed_state(turns: list[Turn]) -> PromptState:
    """The state that turns lead to, as the next one is asked in it."""
    return replace(
        replay_turns(NEW, turns, choose_layout, tokenizer=QUARTERS), last_prompt=None, library_rendered_from=None
    )


def said(turns: list[Turn]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = tuple(name for turn in turns for name in (turn.id or "", turn.reply_id or ""))
    return names, tuple(text for turn in turns for text in (turn.text, turn.reply or ""))


def contents(turns: list[Turn]) -> dict[str, bytes]:
    brought = [one for turn in turns for one in (*turn.attached, *turn.tool_results)]
    return {one.hash: one.text.encode() for one in brought}


def keep(
    turns: list[Turn], *, at: int, usual: TurnSettings = LIBRARY, committed: ActiveCompactions = NO_COMPACTIONS
) -> bytes:
    return encode_state_checkpoint(
        replayed_state(turns[:at]), *said(turns), active_compactions=committed, defaults=usual, tokenizer=QUARTERS
    )[0]


def read(data: bytes, turns: list[Turn]) -> PromptState:
    kept = decode_state_checkpoint(data)
    assert kept is not None
    held = contents(turns)
    needed = {name: held[name] for name in kept.required_hashes()}
    found = kept.decode(*said(turns), needed, load_texts=lambda hashes: {name: held[name].decode() for name in hashes})
    assert found is not None
    state, tokens = found
    assert tokens == {text: QUARTERS.count(text) for text in tokens}
    return replace(state, library_rendered_from=None)


@given(st.sampled_from(TERMS).flatmap(pasts), st.data())
def test_state_round_trips_and_continues_the_same(turns: list[Turn], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(turns) - 1))
    again = read(keep(turns, at=at), turns)
    assert again == replayed_state(turns[:at])
    both = [
        replay_turns(state, turns[at:], choose_layout, tokenizer=QUARTERS)
        for state in (replayed_state(turns[:at]), again)
    ]
    assert replace(both[0], library_rendered_from=None) == replace(both[1], library_rendered_from=None)


def long_past(terms: TurnSettings) -> list[Turn]:
    odd: list[Turn] = [
        Turn(text="", attached=(note("a.md", "A " * 400),)),
        Turn(text="", tool_results=(result("x", "found"),), attached=(note("a.md", "B"),)),
        Turn(text="", rounds=(ROUND,)),
        Turn(text="", system=SystemParts(base="Be brief."), model="two"),
        Turn(text="", receipts=(SHORT,)),
        Turn(text="", attached=(note("b.md", "C"),), pinned=("1q",)),
        Turn(text=""),
    ]
    return [
        replace(
            turn,
            text=f"q{at}",
            typed=f"q{at}",
            reply=f"a{at} " * 30,
            id=f"{at}q",
            reply_id=f"{at}a",
            turn_settings=terms,
        )
        for at, turn in enumerate(odd)
    ]


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("terms", TERMS)
def test_state_after_any_operation_round_trips(terms: TurnSettings, at: int) -> None:
    turns = long_past(terms)
    again = read(keep(turns, at=at), turns)
    assert again == replayed_state(turns[:at])
    assert [
        one.question_message is one.question.message
        for one in again.history.turns
        if not one.rounds and not one.tool_results
    ] == [
        one.question_message == one.question.message
        for one in again.history.turns
        if not one.rounds and not one.tool_results
    ]


def test_words_and_contents_are_not_written_a_second_time() -> None:
    turns = long_past(IN_PLACE)[:1] + long_past(IN_PLACE)[-1:]
    data = keep(turns, at=1)
    assert data
    assert b"A A A A" not in data
    assert b"a0 a0" not in data


def test_state_is_valid_only_if_replay_leads_to_it() -> None:
    turns = long_past(IN_PLACE)
    names = said(turns)[0]
    kept = decode_state_checkpoint(keep(turns, at=4))
    assert kept is not None
    assert (kept.turns, kept.head, kept.model) == (4, "3a", "two")
    holds = {
        "as it was": kept.is_valid_for(names, NO_COMPACTIONS, defaults=LIBRARY, tokenizer=QUARTERS),
        "longer": kept.is_valid_for((*names, "9q"), NO_COMPACTIONS, defaults=LIBRARY, tokenizer=QUARTERS),
        "too short": kept.is_valid_for(names[:9], NO_COMPACTIONS, defaults=LIBRARY, tokenizer=QUARTERS),
        "other branch": kept.is_valid_for(
            (*names[:7], "x", *names[8:]), NO_COMPACTIONS, defaults=LIBRARY, tokenizer=QUARTERS
        ),
        "other terms": kept.is_valid_for(
            names, NO_COMPACTIONS, defaults=TurnSettings(layout=LayoutMode.AUTO), tokenizer=QUARTERS
        ),
        "other counts": kept.is_valid_for(
            names, NO_COMPACTIONS, defaults=LIBRARY, tokenizer=replace(QUARTERS, count_factor=2.0)
        ),
        "compacted later": kept.is_valid_for(
            names, ActiveCompactions(by_next_question={"4q": (EVENT,)}), defaults=LIBRARY, tokenizer=QUARTERS
        ),
        "compacted before": kept.is_valid_for(
            names, ActiveCompactions(by_next_question={"2q": (EVENT,)}), defaults=LIBRARY, tokenizer=QUARTERS
        ),
    }
    assert [name for name, held in holds.items() if held] == ["as it was", "longer", "compacted later"]


def test_state_without_contents_is_not_loaded() -> None:
    turns = long_past(LIBRARY)
    kept = decode_state_checkpoint(keep(turns, at=3))
    assert kept is not None
    assert set(kept.required_hashes()) <= set(contents(turns))
    assert kept.decode(*said(turns), {}, load_texts=lambda _: {}) is None


def test_state_outside_turn_boundary_is_not_stored() -> None:
    turns = long_past(LIBRARY)
    state = replayed_state(turns[:3])
    names, texts = said(turns)

    def write(one: PromptState, names: tuple[str, ...] = names) -> bytes:
        return encode_state_checkpoint(
            one, names, texts, active_compactions=NO_COMPACTIONS, defaults=LIBRARY, tokenizer=QUARTERS
        )[0]

    assert write(state)
    assert not write(replace(state, waits_for_reply=True))
    assert not write(replace(state, tokenizer_name="other"))
    assert not write(replace(state, head="elsewhere"))
    assert not write(NEW)
    assert not write(state, names[:4])


def test_invalid_bytes_are_not_read() -> None:
    data = keep(long_past(LIBRARY), at=3)
    assert decode_state_checkpoint(b"") is None
    assert decode_state_checkpoint(data[:-1]) is None
    assert decode_state_checkpoint(b"\x93" + data[1:]) is None
