"""Resuming: the state a branch was left in, from what was asked and answered. The invariants try any conversation."""

from collections.abc import Sequence

import pytest
from lamella.core.prompt.resume import resume
from lamella.core.prompt.turns import close_turn, open_turn

from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.fitting import fit_turn
from lamella.core.log.terms import Layout, Rewrite
from lamella.core.log.turn import PastTurn, SystemParts, TurnInput
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import Rules, State
from lamella.core.values import replace

MEASURE = OfflineCounter().measure(None)
LIBRARY = Rules(measure=MEASURE)
IN_PLACE = replace(LIBRARY, layout=Layout.IN_PLACE)


def note(name: str, text: str, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name))


def fold(past: Sequence[PastTurn], rules: Rules) -> State:
    """Every turn opened and closed."""
    state = State(conversation="chat", measured_by=rules.measure.name)
    for told in past:
        state = close_turn(open_turn(state, told.turn, rules), told.reply or "", rules)
    return state


def told(text: str, *, reply: str | None = "yes", **given: object) -> PastTurn:
    return PastTurn(turn=TurnInput(text=text, **given), reply=reply)  # type: ignore[arg-type]


PAST = [
    told("one", attached=(note("a.md", "A"),), results=(make_tool_result("t", arguments={}, output="T"),)),
    told("two", attached=(note("a.md", "A"), note("b.md", "B"))),
    told("three", fold=True),
    told("four", attached=(note("a.md", "A2"),)),
    told("five", attached=(note("a.md", "A2"), note("c.md", "C")), reply=None),
    told("six", drop=("b.md",)),
    told("seven", attached=(note("b.md", "B"),), rewritten=Rewrite.BRANCH),
    told("eight"),
]


@pytest.mark.parametrize("rules", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
@pytest.mark.parametrize("turns", range(1, len(PAST) + 1))
def test_the_next_turn_is_the_one_that_folding_gives(rules: Rules, turns: int) -> None:
    past = PAST[:turns]
    resumed = resume(past, rules, conversation="chat", model=None)
    if past[-1].reply is None:
        assert resumed.opened is not None
        state = close_turn(resumed.opened, "", rules)
    else:
        assert resumed.opened is None
        state = resumed.state
    folded = fold(past, rules)
    following = TurnInput(text="next", attached=(note("a.md", "A2"),))
    assert open_turn(state, following, rules).envelope == open_turn(folded, following, rules).envelope
    assert (state.known, state.epoch, state.head) == (folded.known, folded.epoch, folded.head)
    assert list(state.standing) == list(folded.standing)


def test_nothing_past_is_a_conversation_that_begins() -> None:
    resumed = resume([], IN_PLACE, conversation="chat", model="openai:gpt-5")
    assert resumed.opened is None
    assert resumed.state == State(conversation="chat", model="openai:gpt-5", measured_by=MEASURE.name)


def test_a_turn_that_waits_is_open_in_the_state_it_was_asked_in() -> None:
    resumed = resume([told("one"), told("two", reply=None)], IN_PLACE, conversation="chat", model=None)
    assert resumed.opened is not None
    assert resumed.opened.envelope.layer(LayerId.L5).text == "two"
    assert [exchange.user.text for exchange in resumed.state.exchanges] == ["one"]


def test_messages_keep_the_ids_they_were_given() -> None:
    past = [
        PastTurn(turn=TurnInput(text="one", id="first"), reply="yes", reply_id="second"),
        PastTurn(turn=TurnInput(text="two", id="third"), reply="no"),
    ]
    for rules in (LIBRARY, IN_PLACE):
        state = resume(past, rules, conversation="chat", model=None).state
        assert [(e.user.id, e.reply.id) for e in state.exchanges] == [
            ("first", "second"),
            ("third", state.head),
        ]


def test_each_turn_is_laid_out_under_the_rules_it_was_asked_under() -> None:
    past = [
        told("one", attached=(note("a.md", "A"),), layout=Layout.IN_PLACE),
        told("two", layout=Layout.IN_PLACE),
    ]
    state = resume(past, LIBRARY, conversation="chat", model=None).state
    assert (state.layout, state.epoch) == (Layout.IN_PLACE, 0)
    assert "A" in state.exchanges[0].sent.text


def test_the_same_text_drawn_in_from_another_note_is_the_prompt_from_then_on() -> None:
    first = SystemParts(instructions="Use A.", typed_instructions="Use {[[a]]}.", inlined=(note("a.md", "A"),))
    typed = SystemParts(instructions="Use A.", typed_instructions="Use A.")
    past = [told("one", system=first), told("two", system=typed), told("three")]
    state = resume(past, IN_PLACE, conversation="chat", model=None).state
    assert (state.epoch, state.system) == (0, typed)


def test_a_conversation_that_no_longer_fits_can_still_be_resumed() -> None:
    past = [told("word " * 1_000), told("short")]
    small = replace(IN_PLACE, budget=Budget(window=200, reserve=100))
    state = resume(past, small, conversation="chat", model=None).state
    fitted = fit_turn(state, TurnInput(text="next"), small)
    assert fitted.receipt is not None
    assert [message.text for message in fitted.opened.envelope.messages][-2:] == ["yes", "next"]
