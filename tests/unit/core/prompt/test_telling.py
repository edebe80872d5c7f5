"""Telling a past: turns told together lead to the state that each of them, told alone, leads to."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.compaction.talking import IN_PLACE, LIBRARY, QUARTERS, note, result

from lamella.core.log.placement import Form, Lapse, Placement
from lamella.core.log.receipt import Receipt, Step, StepName
from lamella.core.log.terms import Attachments, CarryForward, History, Layout, Rewrite, Terms
from lamella.core.log.turn import SystemParts, Turn, TurnRun
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance
from lamella.core.prompt.state import State
from lamella.core.prompt.telling import advance_all
from lamella.core.values import replace

NEW = State(conversation="chat", measured_by=QUARTERS.name)
CALL = ToolCall(id="c", name="search", arguments="{}")
ROUND = ToolRound(text="Looking.", calls=(CALL,), outputs=(ToolOutput(call="c", output="found"),))
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def go(state: State, *turns: Turn, terms: Terms) -> State:
    for turn in turns:
        state = advance(state, replace(turn, terms=terms), place, measure=QUARTERS)
    return state


def texts(state: State) -> list[str]:
    assert state.last is not None
    return [message.text for message in state.last.messages]


@BOTH
@pytest.mark.parametrize(
    "odd",
    [
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),)),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"), note("b.md", "B"), note("a.md", "C"))),
        Turn(text="odd", reply="yes", attached=(note("a.md", "A"),), results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", results=(result("x", "found"),)),
        Turn(text="odd", reply="yes", fold=True),
        Turn(text="odd", reply="yes", model="two"),
        Turn(text="odd", reply="yes", system=SystemParts(base="Be brief.")),
        Turn(text="odd", reply="yes", rewritten=Rewrite.BRANCH),
        Turn(text="odd", reply="yes", rounds=(ROUND,)),
        Turn(text="odd"),
    ],
)
def test_turns_that_only_talk_are_told_together_as_each_of_them_would_be(odd: Turn, terms: Terms) -> None:
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    turns = [replace(turn, terms=terms) for turn in (*plain, odd, *plain, odd, *plain)]
    each, together = go(NEW, *turns, terms=terms), advance_all(NEW, turns, place, measure=QUARTERS)
    assert replace(together, last=None) == replace(each, last=None)
    assert texts(together) == texts(each)
    assert together.talk.spoken == each.talk.spoken


@pytest.mark.parametrize(
    "under",
    [
        Terms(attachments=Attachments.STICKY),
        Terms(carry_forward=CarryForward.PREVIEW),
        Terms(history=History.WINDOW, history_turns=2),
        Terms(history=History.STRIP, history_turns=2),
    ],
    ids=["sticky", "preview", "window", "strip"],
)
@BOTH
def test_a_past_is_told_as_it_was_under_whatever_terms(terms: Terms, under: Terms) -> None:
    other = replace(under, layout=terms.layout)
    plain = [Turn(text=f"q{number}", reply=f"a{number}") for number in range(3)]
    brings = Turn(text="see", reply="yes", attached=(note("a.md", "A\n\n" + "long " * 2_000),))
    told = [(*plain, brings, *plain), (*plain, brings, *plain, brings)]
    turns = [replace(turn, terms=held) for part, held in zip(told, (terms, other), strict=True) for turn in part]
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    together = advance_all(NEW, turns, place, measure=QUARTERS)
    assert replace(together, last=None) == replace(each, last=None)
    assert texts(together) == texts(each)


def test_a_planner_is_asked_again_where_terms_change_or_something_came_along() -> None:
    asked: list[str] = []

    def note_place(state: State, turn: Turn) -> Placement:
        asked.append(turn.text)
        return place(state, turn)

    plain = [Turn(text=f"q{number}", reply="a", terms=IN_PLACE) for number in range(6)]
    plain[3] = replace(plain[3], attached=(note("a.md", "A"),))
    advance_all(NEW, plain, note_place, measure=QUARTERS)
    assert asked == ["q0", "q0", "q1", "q3", "q4", "q5"]


AUTO = Terms(layout=Layout.AUTO)
NAMES = ("a.md", "b.md", "c.md")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
# What a turn of a long past may bring: mostly nothing, now and then notes, new, known or changed.
BROUGHT = st.one_of(
    st.just(()),
    st.just(()),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("One.", "Two.", "Long. " * 40))), max_size=2),
)


@st.composite
def placements(draw: st.DrawFn, turn: int) -> Placement:
    """What prices may have decided for a turn: mostly that all of it stays."""
    keep = draw(st.sampled_from((None,) * 9 + (0, 2)))
    served = draw(st.none() | st.integers(0, 2 * turn))
    return Placement(
        keep=keep if turn else 0,
        forms=dict.fromkeys(draw(st.sets(st.sampled_from(NAMES), max_size=1)), Form.FULL),
        marks=tuple(sorted(draw(st.sets(st.integers(0, 2 * turn), max_size=2)))),
        served=served,
        lasting=draw(st.none() | st.integers(0, 2 * turn)),
        at=draw(st.none() | st.just(STARTED + timedelta(minutes=turn))),
        lapse=draw(st.sampled_from(Lapse)),
    )


@st.composite
def pasts(draw: st.DrawFn, terms: Terms) -> list[Turn]:
    """Turns of a past that talk and bring notes, under one set of terms, with ids as stores have them."""
    turns: list[Turn] = []
    for number in range(draw(st.integers(2, 24))):
        attached = tuple(note(name, text) for name, text in draw(BROUGHT))
        placement = draw(placements(number)) if terms.layout is Layout.AUTO else None
        said = Turn(text=f"q{number}", reply=f"a{number}", id=f"{number}q", reply_id=f"{number}a", terms=terms)
        turns.append(replace(said, typed=said.text, attached=attached, placement=placement))
    return turns


def join(turns: list[Turn]) -> list[Turn | TurnRun]:
    """The same turns, with those that only talk in runs, as a store reads them back."""
    parts: list[Turn | TurnRun] = []
    for turn in turns:
        placed = turn.placement
        if turn.receipts or (placed is not None and placed.keep is not None):
            parts.append(turn)
            continue
        before = parts[-1] if parts else None
        run = before if isinstance(before, TurnRun) else TurnRun(turn.terms, (), ())
        parts[-1:] = [] if run is before else [*parts[-1:]]
        names, texts = (turn.id or "", turn.reply_id or ""), (turn.text, turn.reply or "")
        more = () if placed is None else (placed,)
        brought = {**run.attached, len(run.names) // 2: turn.attached} if turn.attached else run.attached
        parts.append(TurnRun(turn.terms, (*run.names, *names), (*run.texts, *texts), (*run.placements, *more), brought))
    return parts


@given(st.sampled_from((AUTO, LIBRARY, IN_PLACE)).flatmap(pasts))
def test_a_past_told_in_runs_is_the_one_that_was_walked_turn_by_turn(turns: list[Turn]) -> None:
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    for together in (turns, join(turns)):
        told = advance_all(NEW, together, place, measure=QUARTERS)
        assert replace(told, last=None) == replace(each, last=None)
        assert texts(told) == texts(each)


@pytest.mark.parametrize("terms", [AUTO, LIBRARY, IN_PLACE], ids=["auto", "library", "in_place"])
def test_a_past_that_only_brings_notes_along_is_not_walked_turn_by_turn(terms: Terms) -> None:
    asked: list[str] = []

    def note_place(state: State, turn: Turn) -> Placement:
        asked.append(turn.text)
        return place(state, turn)

    placed = Placement(served=0) if terms.layout is Layout.AUTO else None
    turns = [
        Turn(
            text=f"q{number}",
            typed=f"q{number}",
            id=f"{number}q",
            reply="a",
            reply_id=f"{number}a",
            terms=terms,
            attached=() if number % 10 else (note(f"{number}.md", "A"),),
            placement=placed and replace(placed, keep=None if number else 0),
        )
        for number in range(100)
    ]
    advance_all(NEW, join(turns), note_place, measure=QUARTERS)
    # All of it is one run, but for what begins and ends it.
    assert len(asked) <= 10


LONG = "It depends. " + "The pump of hall B-12 runs at 40 bar until Monday. " * 12


def compact(number: int, *steps: Step) -> Receipt:
    return Receipt(
        id=f"r{number}", parent=f"{number - 1}a", steps=steps, tokens_before=9, tokens_after=8, target=8, chain=2
    )


TAKES = (StepName.CHITCHAT, StepName.EXPENDABLE, StepName.SUMMARY)


@st.composite
def compacted_pasts(draw: st.DrawFn, terms: Terms) -> list[Turn]:
    """A past with compactions in it: replies become outlines, and what is said goes, as often as it is still there."""
    turns = [replace(turn, reply=f"{turn.reply}. {LONG}") for turn in draw(pasts(terms))]
    outlined, gone = set[str](), set[str]()
    for at in sorted(draw(st.sets(st.integers(1, len(turns) - 1), min_size=1, max_size=3))):
        said = [name for turn in turns[:at] for name in (turn.id or "", turn.reply_id or "")]
        steps: list[Step] = []
        short = [name for name in said if name.endswith("a") and name not in outlined | gone and draw(st.booleans())]
        if short:
            gists = tuple(f"Gist {name}" for name in short) if draw(st.booleans()) else ()
            steps.append(Step(name=StepName.REPLIES, removed=tuple(short), gists=gists))
        left = [name for name in said if name not in gone and draw(st.booleans())]
        if left:
            steps.append(Step(name=draw(st.sampled_from(TAKES)), removed=tuple(left), text="What went."))
        outlined |= set(short)
        gone |= set(left)
        turns[at] = replace(turns[at], receipts=(compact(at, *steps),) if steps else ())
    return turns


@given(st.sampled_from((AUTO, LIBRARY, IN_PLACE)).flatmap(compacted_pasts))
def test_a_compacted_past_told_in_runs_is_the_one_that_was_walked_turn_by_turn(turns: list[Turn]) -> None:
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    told = advance_all(NEW, join(turns), place, measure=QUARTERS)
    assert replace(told, last=None) == replace(each, last=None)
    assert texts(told) == texts(each)


def talk_under(receipts: Mapping[int, tuple[Receipt, ...]], terms: Terms, *, named: bool = True) -> list[Turn]:
    return [
        Turn(
            text=f"q{number}",
            typed=f"q{number}",
            id=f"{number}q" if named else None,
            reply=LONG,
            reply_id=f"{number}a",
            terms=terms,
            receipts=receipts.get(number, ()),
        )
        for number in range(12)
    ]


@pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
def test_outlines_that_a_later_compaction_takes_out_are_not_missed(terms: Terms) -> None:
    replies = [f"{number}a" for number in range(12)]
    outlined = Step(name=StepName.REPLIES, removed=tuple(replies[:6]), gists=tuple(f"Gist {at}" for at in range(6)))
    left = Step(name=StepName.EXPENDABLE, removed=("0a", "2a", "3q", "3a", "4q"))
    later = Step(name=StepName.REPLIES, removed=("6a", "7a"))
    receipts = {8: (compact(8, outlined),), 10: (compact(10, left, later),)}
    turns = talk_under(receipts, terms)
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    told = advance_all(NEW, join(turns), place, measure=QUARTERS)
    assert replace(told, last=None) == replace(each, last=None)
    assert texts(told) == texts(each)
    said = [said for exchange in told.talk.exchanges for said in exchange.said]
    assert {one.id: one.text for one in said if "Gist" in one.text} == {
        "1a": "[Outline; recall turn 2.]\nGist 1",
        "4a": "[Outline; recall turn 5.]\nGist 4",
        "5a": "[Outline; recall turn 6.]\nGist 5",
    }


def test_nothing_is_made_of_replies_that_a_later_step_takes_out() -> None:
    outlined = Step(name=StepName.REPLIES, removed=("0a", "1a", "2a", "3a"), gists=("Gist",) * 4)
    lines = Step(name=StepName.EXPENDABLE, removed=("0a", "1a", "2a"))
    gone = Step(name=StepName.EXPENDABLE, removed=("0q", "0a", "1a"))
    turns = talk_under({8: (compact(8, outlined, lines),), 10: (compact(10, gone),)}, IN_PLACE)
    counted: list[str] = []

    def note_count(text: str) -> int:
        counted.append(text)
        return QUARTERS.count(text)

    advance_all(NEW, join(turns), place, measure=replace(QUARTERS, count=note_count))
    assert sorted(text for text in counted if text.startswith("[")) == [
        "[Left out; recall turn 2.]",
        "[Left out; recall turn 3.]",
        "[Outline; recall turn 4.]\nGist",
    ]


STEPS = st.builds(
    Step,
    name=st.sampled_from([StepName.REPLIES, StepName.EXPENDABLE, StepName.CHITCHAT, StepName.SUMMARY]),
    removed=st.lists(st.sampled_from([f"{at}{who}" for at in range(7) for who in "qaaa"]), unique=True).map(tuple),
    text=st.sampled_from([None, "<conversation_summary>Told.</conversation_summary>\n"]),
)


@given(
    steps=st.lists(st.lists(STEPS, max_size=3), min_size=3, max_size=3),
    named=st.booleans(),
    chain=st.sampled_from([1, 2]),
)
def test_whatever_was_compacted_is_told_as_it_was(*, steps: list[list[Step]], named: bool, chain: int) -> None:
    compacted = {at: (replace(compact(at, *some), chain=chain),) for at, some in zip((7, 9, 10), steps, strict=True)}
    turns = talk_under(compacted, IN_PLACE, named=named)
    each = NEW
    for turn in turns:
        each = advance(each, turn, place, measure=QUARTERS)
    told = advance_all(NEW, join(turns) if named else turns, place, measure=QUARTERS)
    assert replace(told, last=None) == replace(each, last=None)
    assert texts(told) == texts(each)
