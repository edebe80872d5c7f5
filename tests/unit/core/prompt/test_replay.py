"""Replaying a history: turns replayed together lead to the same state as turns replayed singly."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.stories import IN_PLACE, LIBRARY, QUARTERS, note, result

from lamella.core.artifacts.kinds import make_image_artifact, make_image_data
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName
from lamella.core.log.turn import (
    ArtifactForm,
    AttachmentMode,
    CacheStateAfterPause,
    CarryForwardMode,
    HistoryChangeReason,
    HistoryMode,
    LayoutMode,
    LayoutPlan,
    SystemParts,
    Turn,
    TurnBatch,
    TurnSettings,
)
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import advance_by_turn
from lamella.core.prompt.replay import replay_turns
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

NEW = PromptState(conversation="chat", tokenizer_name=QUARTERS.name)
CALL = ToolCall(id="c", name="search", arguments="{}")
ROUND = ToolRound(text="Looking.", calls=(CALL,), outputs=(ToolOutput(call="c", output="found"),))
PICTURE = make_image_artifact(make_image_data(b"png", media_type="image/png", width=5, height=5), title="dot")
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def go(state: PromptState, *turns: Turn, terms: TurnSettings) -> PromptState:
    for turn in turns:
        state = advance_by_turn(state, replace(turn, turn_settings=terms), choose_layout, tokenizer=QUARTERS)
    return state


def texts(state: PromptState) -> list[str]:
    assert state.last_prompt is not None
    return [message.text for message in state.last_prompt.messages]


@BOTH
@pytest.mark.parametrize(
    "odd",
    [
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),)),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"), note("b.md", "B"), note("a.md", "C"))),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),), tool_results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", tool_results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", fold=True),
        Turn(text="odd", reply="yes", model="two"),
        Turn(text="odd", reply="yes", system=SystemParts(base="Be brief.")),
        Turn(text="odd", reply="yes", history_rewrite=HistoryChangeReason.BRANCH),
        Turn(text="odd", reply="yes", rounds=(ROUND,)),
        Turn(text="odd", reply="yes", attached=(PICTURE,), names_images=True),
        Turn(text="odd"),
    ],
)
def test_plain_turns_replay_together_like_singly(odd: Turn, terms: TurnSettings) -> None:
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    turns = [replace(turn, turn_settings=terms) for turn in (*plain, odd, *plain, odd, *plain)]
    each, together = go(NEW, *turns, terms=terms), replay_turns(NEW, turns, choose_layout, tokenizer=QUARTERS)
    assert replace(together, last_prompt=None) == replace(each, last_prompt=None)
    assert texts(together) == texts(each)
    assert together.history.message_count == each.history.message_count


@pytest.mark.parametrize(
    "under",
    [
        TurnSettings(attachments=AttachmentMode.STICKY),
        TurnSettings(carry_forward=CarryForwardMode.PREVIEW),
        TurnSettings(history=HistoryMode.WINDOW, history_turns=2),
        TurnSettings(history=HistoryMode.STRIP, history_turns=2),
    ],
    ids=["sticky", "preview", "window", "strip"],
)
@BOTH
def test_history_replays_the_same_under_any_settings(terms: TurnSettings, under: TurnSettings) -> None:
    other = replace(under, layout=terms.layout)
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    brings = Turn(text="see", reply="yes", attached=(note("a.md", "A\n\n" + "long " * 2_000),))
    told = [(*plain, brings, *plain), (*plain, brings, *plain, brings)]
    turns = [
        replace(turn, turn_settings=held) for part, held in zip(told, (terms, other), strict=True) for turn in part
    ]
    each = NEW
    for turn in turns:
        each = advance_by_turn(each, turn, choose_layout, tokenizer=QUARTERS)
    together = replay_turns(NEW, turns, choose_layout, tokenizer=QUARTERS)
    assert replace(together, last_prompt=None) == replace(each, last_prompt=None)
    assert texts(together) == texts(each)


def test_planner_runs_again_after_setting_or_attachment_changes() -> None:
    asked: list[str] = []

    def note_place(state: PromptState, turn: Turn) -> LayoutPlan:
        asked.append(turn.text)
        return choose_layout(state, turn)

    plain = [Turn(text=f"q{number}", reply="a", turn_settings=IN_PLACE) for number in range(6)]
    plain[3] = replace(plain[3], attached=(note("a.md", "A"),))
    replay_turns(NEW, plain, note_place, tokenizer=QUARTERS)
    assert asked == ["q0", "q0", "q1", "q3", "q4", "q5"]


AUTO = TurnSettings(layout=LayoutMode.AUTO)
NAMES = ("a.md", "b.md", "c.md")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
# What a turn of a long past may bring: mostly nothing, now and then notes, new, known or changed.
BROUGHT = st.one_of(
    st.just(()),
    st.just(()),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("One.", "Two.", "Long. " * 40))), max_size=2),
)


@st.composite
def placements(draw: st.DrawFn, turn: int) -> LayoutPlan:
    """What prices may have decided for a turn: mostly that all of it stays."""
    keep = draw(st.sampled_from((None,) * 9 + (0, 2)))
    served = draw(st.none() | st.integers(0, 2 * turn))
    return LayoutPlan(
        keep_messages=keep if turn else 0,
        forms=dict.fromkeys(draw(st.sets(st.sampled_from(NAMES), max_size=1)), ArtifactForm.FULL),
        breakpoints=tuple(sorted(draw(st.sets(st.integers(0, 2 * turn), max_size=2)))),
        cached_message=served,
        long_lifetime_until=draw(st.none() | st.integers(0, 2 * turn)),
        at=draw(st.none() | st.just(STARTED + timedelta(minutes=turn))),
        expiry=draw(st.sampled_from(CacheStateAfterPause)),
    )


@st.composite
def pasts(draw: st.DrawFn, terms: TurnSettings) -> list[Turn]:
    """Turns of a past that talk and bring notes, under one set of terms, with ids as stores have them."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(2, 24))):
        attached = tuple(note(name, text) for name, text in draw(BROUGHT))
        layout_plan = draw(placements(number)) if terms.layout is LayoutMode.AUTO else None
        said = Turn(text=f"q{number}", reply=f"a{number}", id=f"{number}q", reply_id=f"{number}a", turn_settings=terms)
        turns.append(replace(said, typed=said.text, attached=attached, layout_plan=layout_plan))
    return turns


def join(turns: list[Turn]) -> list[Turn | TurnBatch]:
    """The same turns, with those that only talk in runs, as a store reads them back."""
    parts: list[Turn | TurnBatch] = []
    for turn in turns:
        placed = turn.layout_plan
        if turn.receipts or (placed is not None and placed.keep_messages is not None):
            parts.append(turn)
            continue
        before = parts[-1] if parts else None
        run = before if isinstance(before, TurnBatch) else TurnBatch(turn.turn_settings, (), ())
        parts[-1:] = [] if run is before else [*parts[-1:]]
        names, texts = (turn.id or "", turn.reply_id or ""), (turn.text, turn.reply or "")
        more = () if placed is None else (placed,)
        brought = {**run.attached, len(run.message_ids) // 2: turn.attached} if turn.attached else run.attached
        parts.append(
            TurnBatch(
                turn.turn_settings,
                (*run.message_ids, *names),
                (*run.texts, *texts),
                (*run.layout_plans, *more),
                brought,
            )
        )
    return parts


@given(st.sampled_from((AUTO, LIBRARY, IN_PLACE)).flatmap(pasts))
def test_batched_replay_equals_single_replay(turns: list[Turn]) -> None:
    each = NEW
    for turn in turns:
        each = advance_by_turn(each, turn, choose_layout, tokenizer=QUARTERS)
    for together in (turns, join(turns)):
        told = replay_turns(NEW, together, choose_layout, tokenizer=QUARTERS)
        assert replace(told, last_prompt=None) == replace(each, last_prompt=None)
        assert texts(told) == texts(each)


@pytest.mark.parametrize("terms", [AUTO, LIBRARY, IN_PLACE], ids=["auto", "library", "in_place"])
def test_history_with_notes_only_is_replayed_in_batches(terms: TurnSettings) -> None:
    asked: list[str] = []

    def note_place(state: PromptState, turn: Turn) -> LayoutPlan:
        asked.append(turn.text)
        return choose_layout(state, turn)

    placed = LayoutPlan(cached_message=0) if terms.layout is LayoutMode.AUTO else None
    turns = [
        Turn(
            text=f"q{number}",
            typed=f"q{number}",
            id=f"{number}q",
            reply="a",
            reply_id=f"{number}a",
            turn_settings=terms,
            attached=() if number % 10 else (note(f"{number}.md", "A"),),
            layout_plan=placed and replace(placed, keep_messages=None if number else 0),
        )
        for number in range(100)
    ]
    replay_turns(NEW, join(turns), note_place, tokenizer=QUARTERS)
    # All of it is one run, but for what begins and ends it.
    assert len(asked) <= 10


LONG = "It depends. " + "The pump of hall B-12 runs at 40 bar until Monday. " * 12


def compact(number: int, *steps: CompactionStep) -> CompactionReceipt:
    return CompactionReceipt(
        id=f"r{number}",
        parent=f"{number - 1}a",
        steps=steps,
        tokens_before=9,
        tokens_after=8,
        target=8,
        chain_version=2,
    )


TAKES = (CompactionStepName.CHITCHAT, CompactionStepName.EXPENDABLE, CompactionStepName.SUMMARY)


@st.composite
def compacted_pasts(draw: st.DrawFn, terms: TurnSettings) -> list[Turn]:
    """A past with compactions in it: replies become outlines, and what is said goes, as often as it is still there."""
    turns = [replace(turn, reply=f"{turn.reply}. {LONG}") for turn in draw(pasts(terms))]
    outlined, gone = set[str](), set[str]()
    for at in sorted(draw(st.sets(st.integers(1, len(turns) - 1), min_size=1, max_size=3))):
        said = [name for turn in turns[:at] for name in (turn.id or "", turn.reply_id or "")]
        steps: list[CompactionStep] = []
        short = [name for name in said if name.endswith("a") and name not in outlined | gone and draw(st.booleans())]
        if short:
            gists = tuple(f"Gist {name}" for name in short) if draw(st.booleans()) else ()
            steps.append(CompactionStep(name=CompactionStepName.REPLIES, removed=tuple(short), outlines=gists))
        left = [name for name in said if name not in gone and draw(st.booleans())]
        if left:
            steps.append(CompactionStep(name=draw(st.sampled_from(TAKES)), removed=tuple(left), text="What went."))
        outlined |= set(short)
        gone |= set(left)
        turns[at] = replace(turns[at], receipts=(compact(at, *steps),) if steps else ())
    return turns


@given(st.sampled_from((AUTO, LIBRARY, IN_PLACE)).flatmap(compacted_pasts))
def test_batched_replay_of_compacted_history_equals_single(turns: list[Turn]) -> None:
    each = NEW
    for turn in turns:
        each = advance_by_turn(each, turn, choose_layout, tokenizer=QUARTERS)
    told = replay_turns(NEW, join(turns), choose_layout, tokenizer=QUARTERS)
    assert replace(told, last_prompt=None) == replace(each, last_prompt=None)
    assert texts(told) == texts(each)


def make_conversation_under(
    receipts: Mapping[int, tuple[CompactionReceipt, ...]], terms: TurnSettings, *, named: bool = True
) -> list[Turn]:
    return [
        Turn(
            text=f"q{number}",
            typed=f"q{number}",
            id=f"{number}q" if named else None,
            reply=LONG,
            reply_id=f"{number}a",
            turn_settings=terms,
            receipts=receipts.get(number, ()),
        )
        for number in range(12)
    ]


@pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
def test_outlines_removed_by_later_compaction_are_not_needed(terms: TurnSettings) -> None:
    replies = [f"{number}a" for number in range(12)]
    outlined = CompactionStep(
        name=CompactionStepName.REPLIES, removed=tuple(replies[:6]), outlines=tuple(f"Gist {at}" for at in range(6))
    )
    left = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=("0a", "2a", "3q", "3a", "4q"))
    later = CompactionStep(name=CompactionStepName.REPLIES, removed=("6a", "7a"))
    receipts = {8: (compact(8, outlined),), 10: (compact(10, left, later),)}
    turns = make_conversation_under(receipts, terms)
    each = NEW
    for turn in turns:
        each = advance_by_turn(each, turn, choose_layout, tokenizer=QUARTERS)
    told = replay_turns(NEW, join(turns), choose_layout, tokenizer=QUARTERS)
    assert replace(told, last_prompt=None) == replace(each, last_prompt=None)
    assert texts(told) == texts(each)
    said = [message for exchange in told.history.turns for message in exchange.messages]
    assert {one.id: one.text for one in said if "Gist" in one.text} == {
        "1a": "[Outline; recall turn 2.]\nGist 1",
        "4a": "[Outline; recall turn 5.]\nGist 4",
        "5a": "[Outline; recall turn 6.]\nGist 5",
    }


def test_replies_removed_by_later_step_are_not_outlined() -> None:
    outlined = CompactionStep(name=CompactionStepName.REPLIES, removed=("0a", "1a", "2a", "3a"), outlines=("Gist",) * 4)
    lines = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=("0a", "1a", "2a"))
    gone = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=("0q", "0a", "1a"))
    turns = make_conversation_under({8: (compact(8, outlined, lines),), 10: (compact(10, gone),)}, IN_PLACE)
    counted: list[str] = []

    def note_count(text: str) -> int:
        counted.append(text)
        return QUARTERS.count(text)

    replay_turns(NEW, join(turns), choose_layout, tokenizer=replace(QUARTERS, count=note_count))
    assert sorted(text for text in counted if text.startswith("[")) == [
        "[Left out; recall turn 2.]",
        "[Left out; recall turn 3.]",
        "[Outline; recall turn 4.]\nGist",
    ]


STEPS = st.builds(
    CompactionStep,
    name=st.sampled_from(
        [
            CompactionStepName.REPLIES,
            CompactionStepName.EXPENDABLE,
            CompactionStepName.CHITCHAT,
            CompactionStepName.SUMMARY,
        ]
    ),
    removed=st.lists(st.sampled_from([f"{at}{who}" for at in range(7) for who in "qaaa"]), unique=True).map(tuple),
    text=st.sampled_from([None, "<conversation_summary>Told.</conversation_summary>\n"]),
)


@given(
    steps=st.lists(st.lists(STEPS, max_size=3), min_size=3, max_size=3),
    named=st.booleans(),
    chain=st.sampled_from([1, 2]),
)
def test_any_compacted_history_replays_the_same(*, steps: list[list[CompactionStep]], named: bool, chain: int) -> None:
    compacted = {
        at: (replace(compact(at, *some), chain_version=chain),) for at, some in zip((7, 9, 10), steps, strict=True)
    }
    turns = make_conversation_under(compacted, IN_PLACE, named=named)
    each = NEW
    for turn in turns:
        each = advance_by_turn(each, turn, choose_layout, tokenizer=QUARTERS)
    told = replay_turns(NEW, join(turns) if named else turns, choose_layout, tokenizer=QUARTERS)
    assert replace(told, last_prompt=None) == replace(each, last_prompt=None)
    assert texts(told) == texts(each)
