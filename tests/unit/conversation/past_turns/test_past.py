"""The history of a conversation folds to the state it had; compactions are found, undone and kept in order."""

import pytest

from lamella.conversation.past_turns import BranchHistory
from lamella.core.artifacts.kinds import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource
from lamella.core.budget import TokenBudget
from lamella.core.compaction.fitting import PromptSettings, fit_turn
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.receipts import CompactionReceipt, make_receipt
from lamella.core.log.turn import HistoryChangeReason, LayoutMode, LayoutPlan, SystemParts, Turn, TurnSettings
from lamella.core.prompt.advance import add_reply_to_waiting_turn, advance_by_turn, get_pending_prompt
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.tokenizers.counter import OfflineTokenCounter

MEASURE = OfflineTokenCounter().get_tokenizer(None)
LIBRARY = TurnSettings()
IN_PLACE = TurnSettings(layout=LayoutMode.IN_PLACE)
START = PromptState(conversation="chat", tokenizer_name=MEASURE.name)


def note(name: str, text: str, kind: ArtifactKind = ArtifactKind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=ArtifactSource(path=name))


def told(text: str, *, reply: str | None = "yes", **given: object) -> Turn:
    return Turn(text=text, reply=reply, **given)  # type: ignore[arg-type]


def under(terms: TurnSettings, *turns: Turn) -> list[Turn]:
    return [replace(turn, turn_settings=terms) for turn in turns]


def fold(*turns: Turn) -> PromptState:
    return BranchHistory(turns).compute_state(START, choose_layout, tokenizer=MEASURE)


def live(turns: list[Turn]) -> PromptState:
    """Every turn asked and answered as it is in a conversation under way."""
    state = START
    for turn in turns:
        opened = advance_by_turn(state, replace(turn, reply=None, reply_id=None), choose_layout, tokenizer=MEASURE)
        state = add_reply_to_waiting_turn(opened, turn.reply or "", reply_id=turn.reply_id)
    return state


PAST = [
    told("one", attached=(note("a.md", "A"),), tool_results=(make_tool_result("t", arguments={}, output="T"),)),
    told("two", attached=(note("a.md", "A"), note("b.md", "B"))),
    told("three", fold=True),
    told("four", attached=(note("a.md", "A2"),)),
    told("five", attached=(note("a.md", "A2"), note("c.md", "C")), reply=None),
    told("six", drop=("b.md",)),
    told("seven", attached=(note("b.md", "B"),), history_rewrite=HistoryChangeReason.BRANCH),
    told("eight"),
]


@pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
@pytest.mark.parametrize("turns", range(1, len(PAST) + 1))
def test_next_turn_matches_turn_by_turn_result(terms: TurnSettings, turns: int) -> None:
    past = under(terms, *PAST[:turns])
    folded, asked = fold(*past), live(past)
    assert folded.waits_for_reply is (past[-1].reply is None)
    following = Turn(text="next", attached=(note("a.md", "A2"),), turn_settings=terms)
    sent, expected = (
        get_pending_prompt(advance_by_turn(state, following, choose_layout, tokenizer=MEASURE))
        for state in (folded, asked)
    )
    assert sent.messages == expected.messages
    assert [sent.segments(layer) for layer in LayerId] == [expected.segments(layer) for layer in LayerId]
    assert (sent.epoch, sent.total, sent.warnings) == (expected.epoch, expected.total, expected.warnings)
    folded = add_reply_to_waiting_turn(folded, "") if folded.waits_for_reply else folded
    assert (folded.library, folded.epoch, folded.head) == (asked.library, asked.epoch, asked.head)
    assert list(folded.placed) == list(asked.placed)


def test_empty_history_is_new_conversation() -> None:
    start = PromptState(conversation="chat", model="openai:gpt-5", tokenizer_name=MEASURE.name)
    assert BranchHistory().compute_state(start, choose_layout, tokenizer=MEASURE) == start


def test_history_is_folded_by_current_planner() -> None:
    stays = LayoutPlan(why="a planner of one's own")
    past = under(LIBRARY, told("one", attached=(note("a.md", "A"),)), told("two"))
    state = BranchHistory(past).compute_state(START, lambda _state, _turn: stays, tokenizer=MEASURE)
    assert state.last_prompt is not None
    assert state.last_prompt.layout_plan is stays
    assert (state.epoch, state.system_library) == (0, {})


def test_open_turn_keeps_its_state() -> None:
    state = fold(*under(IN_PLACE, told("one"), told("two", reply=None)))
    assert get_pending_prompt(state).question.text == "two"
    assert [turn.question.text for turn in state.history.turns] == ["one"]


def test_unanswered_question_has_empty_reply() -> None:
    for turn_settings in (LIBRARY, IN_PLACE):
        state = fold(*under(turn_settings, told("one", reply=None), told("two")))
        assert [(one.question.text, one.reply.text) for one in state.history.turns] == [("one", ""), ("two", "yes")]


def test_messages_keep_given_ids() -> None:
    past = [
        Turn(text="one", id="first", reply="yes", reply_id="second"),
        Turn(text="two", id="third", reply="no"),
    ]
    for turn_settings in (LIBRARY, IN_PLACE):
        state = fold(*under(turn_settings, *past))
        assert [(e.question.id, e.reply.id) for e in state.history.turns] == [
            ("first", "second"),
            ("third", state.head),
        ]


def test_each_turn_uses_its_own_settings() -> None:
    state = fold(*under(IN_PLACE, told("one", attached=(note("a.md", "A"),)), told("two")))
    assert (state.turn_settings, state.epoch) == (IN_PLACE, 0)
    assert "A" in state.history.turns[0].question_message.text


def test_same_text_from_other_note_becomes_the_prompt() -> None:
    first = SystemParts(instructions="Use A.", typed_instructions="Use {[[a]]}.", inlined=(note("a.md", "A"),))
    typed = SystemParts(instructions="Use A.", typed_instructions="Use A.")
    state = fold(*under(IN_PLACE, told("one", system=first), told("two", system=typed), told("three")))
    assert (state.epoch, state.system) == (0, typed)


def test_oversized_conversation_can_be_resumed() -> None:
    state = fold(*under(IN_PLACE, told("word " * 1_000), told("short")))
    small = PromptSettings(tokenizer=MEASURE, plan_layout=choose_layout, budget=TokenBudget(window=200, reserve=100))
    turn, opened, _ = fit_turn(state, Turn(text="next", turn_settings=IN_PLACE), small)
    assert turn.receipts
    assert [message.text for message in get_pending_prompt(opened).messages][-2:] == ["yes", "next"]


def receipt(parent: str) -> CompactionReceipt:
    return make_receipt("chat", parent=parent, steps=(), skipped=(), tokens=(9, 5), target=5, automatic=False)


FIRST, SECOND, THIRD = receipt("one"), receipt("two"), receipt("three")


def compacted() -> BranchHistory:
    past = BranchHistory()
    past.add_receipt(FIRST)
    past.append_turn(Turn(text="one", receipts=past.receipts), message_id="q1")
    past.set_reply("yes", message_id="a1")
    past.add_receipt(SECOND)
    past.add_receipt(THIRD)
    return past


def test_active_receipts_are_listed_in_order() -> None:
    past = compacted()
    assert past.list_receipts() == [FIRST, SECOND, THIRD]
    assert past.receipts == (SECOND, THIRD)
    assert past.message_ids == ["q1", "a1"]
    assert [(turn.text, turn.reply, turn.reply_id) for turn in past.turns] == [("one", "yes", "a1")]


def test_undo_removes_last_or_named_receipt_and_later_ones() -> None:
    past = compacted()
    assert past.compactions_to_undo(None) == [THIRD]
    assert past.compactions_to_undo(FIRST.id) == [FIRST, SECOND, THIRD]
    left = past.without_compactions(past.compactions_to_undo(SECOND.id))
    assert left.list_receipts() == [FIRST]
    assert (left.message_ids, [turn.text for turn in left.turns]) == (past.message_ids, ["one"])
    assert past.without_compactions([FIRST]).list_receipts() == [SECOND, THIRD]
    assert past.list_receipts() == [FIRST, SECOND, THIRD]


def test_undo_without_receipt_names_valid_ones() -> None:
    with pytest.raises(InvalidOperationError, match="no compaction to undo"):
        BranchHistory().compactions_to_undo(None)
    with pytest.raises(InvalidOperationError, match="'other'") as error:
        compacted().compactions_to_undo("other")
    assert FIRST.id in error.value.hint
