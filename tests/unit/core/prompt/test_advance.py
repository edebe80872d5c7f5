"""Advancing: a turn is asked, waits with its prompt, takes rounds of tools and a reply; always the same way."""

import pytest
from tests.unit.core.compaction.stories import IN_PLACE, LIBRARY, QUARTERS, note, result

from lamella.core.artifacts.kinds import make_image_artifact, make_image_data, make_tool_definition
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.receipts import CompactionStep, CompactionStepName, make_receipt
from lamella.core.log.turn import (
    ArtifactForm,
    AttachmentMode,
    HistoryChangeReason,
    LayoutPlan,
    MessageAuthor,
    SystemParts,
    Turn,
    TurnSettings,
    compute_message_id,
    question_id,
)
from lamella.core.messages import ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import (
    add_reply_to_waiting_turn,
    advance_by_turn,
    get_pending_prompt,
    replace_tool_rounds_of_waiting_turn,
    with_turn_overrides,
)
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

NEW = PromptState(conversation="chat", tokenizer_name=QUARTERS.name)
CALL = ToolCall(id="c", name="search", arguments="{}")
ROUND = ToolRound(text="Looking.", calls=(CALL,), outputs=(ToolOutput(call="c", output="found"),))
PICTURE = make_image_artifact(make_image_data(b"x", media_type="image/png", width=4, height=5), title="plan")
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def go(state: PromptState, *turns: Turn, terms: TurnSettings = IN_PLACE) -> PromptState:
    for turn in turns:
        state = advance_by_turn(state, replace(turn, turn_settings=terms), choose_layout, tokenizer=QUARTERS)
    return state


def texts(state: PromptState) -> list[str]:
    assert state.last_prompt is not None
    return [message.text for message in state.last_prompt.messages]


@BOTH
def test_asked_turn_is_pending_and_not_history(terms: TurnSettings) -> None:
    state = go(NEW, Turn(text="one"), terms=terms)
    assert state.waits_for_reply
    assert get_pending_prompt(state).question.text == "one"
    assert state.head == get_pending_prompt(state).question.id == question_id("chat", "", Turn(text="one"))
    assert not state.history.turns
    assert (state.turn_count, state.history.message_count) == (0, 0)


@BOTH
def test_reply_adds_turn_to_history_with_derived_id(terms: TurnSettings) -> None:
    asked = go(NEW, Turn(text="one"), terms=terms)
    state = add_reply_to_waiting_turn(asked, "yes")
    assert not state.waits_for_reply
    assert state.head == compute_message_id("chat", parent=asked.head, role=MessageAuthor.REPLY, text="yes")
    (turn,) = state.history.turns
    assert (turn.question.text, turn.reply.text, turn.turn_index) == ("one", "yes", 0)
    assert (state.turn_count, state.history.message_count) == (1, 2)
    assert add_reply_to_waiting_turn(asked, "yes", reply_id="given").head == "given"


@BOTH
def test_turn_with_reply_equals_ask_then_reply(terms: TurnSettings) -> None:
    at_once = go(NEW, Turn(text="one", reply="yes", reply_id="r"), terms=terms)
    assert at_once == add_reply_to_waiting_turn(go(NEW, Turn(text="one"), terms=terms), "yes", reply_id="r")
    rounds = go(NEW, Turn(text="one", rounds=(ROUND,), reply="yes"), terms=terms)
    assert rounds == add_reply_to_waiting_turn(
        replace_tool_rounds_of_waiting_turn(go(NEW, Turn(text="one"), terms=terms), [ROUND]), "yes"
    )


@BOTH
def test_asking_again_gives_pending_turn_empty_reply(terms: TurnSettings) -> None:
    asked = go(NEW, Turn(text="one"), terms=terms)
    assert go(asked, Turn(text="two"), terms=terms) == go(
        add_reply_to_waiting_turn(asked, ""), Turn(text="two"), terms=terms
    )


def test_answered_state_has_no_pending_prompt() -> None:
    for state in (NEW, go(NEW, Turn(text="one", reply="yes"))):
        with pytest.raises(AssertionError):
            get_pending_prompt(state)


@BOTH
def test_advance_does_not_change_given_state(terms: TurnSettings) -> None:
    state = go(NEW, Turn(text="one", attached=(note("a.md", "A"),), reply="yes"), terms=terms)
    before = (state.history, dict(state.library), dict(state.placed), dict(state.system_library))
    first = go(state, Turn(text="two", attached=(note("b.md", "B"),)), terms=terms)
    assert (state.history, state.library, state.placed, state.system_library) == before
    assert first == go(state, Turn(text="two", attached=(note("b.md", "B"),)), terms=terms)


def test_layout_plan_decides_what_moves() -> None:
    state = go(NEW, Turn(text="one", attached=(note("a.md", "A"),), reply="yes"))
    stays = get_pending_prompt(
        advance_by_turn(
            state, Turn(text="two", turn_settings=IN_PLACE), lambda _state, _turn: LayoutPlan(), tokenizer=QUARTERS
        )
    )
    moves = get_pending_prompt(
        advance_by_turn(
            state,
            Turn(text="two", turn_settings=IN_PLACE),
            lambda _state, _turn: LayoutPlan(keep_messages=0),
            tokenizer=QUARTERS,
        )
    )
    assert (stays.epoch, moves.epoch) == (0, 1)
    assert [len(one.system_library) for one in (stays, moves)] == [0, 1]
    assert stays.messages[0] == get_pending_prompt(go(NEW, Turn(text="one", attached=(note("a.md", "A"),)))).messages[0]
    assert moves.messages[1].text == "one"


def test_planner_gets_state_after_receipts() -> None:
    seen: list[PromptState] = []

    def watching(state: PromptState, turn: Turn) -> LayoutPlan:
        seen.append(state)
        return choose_layout(state, turn)

    state = go(NEW, Turn(text="one", model="m", reply="yes"))
    receipt = make_receipt("chat", parent="", steps=(), skipped=(), tokens=(9, 4), target=4, automatic=False)
    advance_by_turn(
        state, Turn(text="two", model="n", receipts=(receipt,), turn_settings=IN_PLACE), watching, tokenizer=QUARTERS
    )
    (before,) = seen
    assert (before.model, before.compaction_step, before.last_compacted_total) == ("m", "fold", 4)


def test_planned_form_is_used_in_library() -> None:
    state = go(NEW, Turn(text="one", attached=(note("a.md", "word " * 400),), reply="yes"))
    forms = {"a.md": ArtifactForm.HANDLE}
    asked = advance_by_turn(
        state,
        Turn(text="two", turn_settings=IN_PLACE),
        lambda _state, _turn: LayoutPlan(keep_messages=0, forms=forms),
        tokenizer=QUARTERS,
    )
    (entry,) = get_pending_prompt(asked).segments(LayerId.L2)
    assert (entry.id, entry.form) == ("a.md", ArtifactForm.HANDLE)


def test_receipts_apply_before_turn_and_are_named_as_cause() -> None:
    state = go(NEW, *(Turn(text=f"q{number}", reply="a" * 40) for number in range(3)))
    gone = tuple(message.id for message in state.history.turns[0].messages)
    step = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=gone)
    receipt = make_receipt(
        "chat", parent=state.head, steps=(step,), skipped=(), tokens=(9, 4), target=4, automatic=True
    )
    asked = go(state, Turn(text="now", receipts=(receipt,)))
    assert [turn.question.text for turn in asked.history.turns] == ["q1", "q2"]
    assert get_pending_prompt(asked).compaction_step == "expendable"
    assert (asked.compaction_step, asked.last_compacted_total) == (None, 4)


def test_settings_persist_until_changed() -> None:
    tools = (make_tool_definition("search", description="", parameters={}),)
    state = go(NEW, Turn(text="one", system=SystemParts(base="B."), tools=tools, model="m", reply="yes"))
    assert with_turn_overrides(state, Turn(text="two")) is state
    prompt = get_pending_prompt(go(state, Turn(text="two")))
    assert (prompt.system, prompt.tools, prompt.model) == (SystemParts(base="B."), tools, "m")
    prompt = get_pending_prompt(go(state, Turn(text="two", system=SystemParts(), tools=(), model="n")))
    assert (prompt.system, prompt.tools, prompt.model) == (SystemParts(), (), "n")


def test_dropped_artifacts_are_listed_and_impossible_drops_warn() -> None:
    state = go(NEW, Turn(text="one", attached=(note("a.md", "A"), note("b.md", "B")), reply="yes"))
    asked = go(state, Turn(text="two", drop=("a.md", "nowhere.md"), warnings=("as typed",)))
    assert list(asked.library) == ["b.md"]
    assert get_pending_prompt(asked).dropped == ("a.md",)
    first, *others = get_pending_prompt(asked).warnings
    assert first == "as typed"
    assert any("nowhere.md" in warning for warning in others)


@BOTH
def test_sticky_image_is_resent_after_fold_until_detached(terms: TurnSettings) -> None:
    sticky = replace(terms, attachments=AttachmentMode.STICKY)
    for given, detach, sent in ((sticky, (), 1), (sticky, (PICTURE.id,), 0), (terms, (), 0)):
        state = go(NEW, Turn(text="one", attached=(PICTURE,), reply="yes"), terms=given)
        state = go(state, Turn(text="two", fold=True, detach=detach), terms=given)
        assert get_pending_prompt(state).question_message.images == PICTURE.images[:sent]
        assert len(state.unlisted_attachments) == sent
        assert get_pending_prompt(state).conversation_id == "chat"


def test_history_rewrite_is_recorded_in_prompt() -> None:
    state = go(NEW, Turn(text="one", reply="yes"))
    assert (
        get_pending_prompt(go(state, Turn(text="two", history_rewrite=HistoryChangeReason.BRANCH))).history_rewrite
        is HistoryChangeReason.BRANCH
    )


@BOTH
def test_rounds_follow_question_and_extend_each_other(terms: TurnSettings) -> None:
    asked = go(NEW, Turn(text="one"), terms=terms)
    once, twice = (
        replace_tool_rounds_of_waiting_turn(asked, [ROUND]),
        replace_tool_rounds_of_waiting_turn(asked, [ROUND, ROUND]),
    )
    assert texts(once) == ["one", "Looking.", "found"]
    assert get_pending_prompt(twice).messages[:3] == get_pending_prompt(once).messages
    assert replace_tool_rounds_of_waiting_turn(once, [ROUND, ROUND]) == twice
    segments = get_pending_prompt(once).segments(LayerId.L3)
    assert [(one.kind, one.place) for one in segments] == [("call", "message:1"), ("tool", "message:2")]


def test_in_place_rounds_stay_until_epoch_ends() -> None:
    state = go(NEW, Turn(text="one", rounds=(ROUND,), reply="yes"))
    assert state.history.message_count == 4
    asked = go(state, Turn(text="two"))
    assert texts(asked) == ["one", "Looking.", "found", "yes", "two"]
    assert get_pending_prompt(asked).question_index == 4
    kinds = [segment.kind for segment in get_pending_prompt(asked).segments(LayerId.L4)]
    assert kinds == ["user", "call", "tool", "reply"]
    folded = go(state, Turn(text="two", fold=True))
    assert [message.role.value for message in get_pending_prompt(folded).messages] == ["user", "assistant", "user"]


def test_library_layout_turns_round_into_call_lines() -> None:
    state = go(NEW, Turn(text="one", rounds=(ROUND,), reply="yes"), terms=LIBRARY)
    asked = go(state, Turn(text="two"), terms=LIBRARY)
    first, said, now = texts(asked)
    assert (first, now) == ("one", "two")
    assert said.startswith("Looking.\n<tool_call>search({}): done, recall what it gave by its id tool:search:")
    assert said.endswith("</tool_call>\nyes")
    assert asked.history.message_count == asked.history.shown_message_count == 2
    line = get_pending_prompt(asked).segments(LayerId.L4)[1]
    assert (line.kind, line.form, line.place) == ("tool", ArtifactForm.HANDLE, "message:1")


@pytest.mark.parametrize(("terms", "form"), [(IN_PLACE, ArtifactForm.FULL), (LIBRARY, ArtifactForm.HANDLE)])
def test_text_result_is_full_in_epoch_and_handle_after(terms: TurnSettings, form: ArtifactForm) -> None:
    found = result("x", "found " * 40)
    state = go(NEW, Turn(text="one", tool_results=(found,), reply="yes"), terms=terms)
    asked = go(state, Turn(text="two"), terms=terms)
    stub, *_ = get_pending_prompt(asked).segments(LayerId.L4)
    assert (stub.id, stub.form, stub.place) == (found.id, form, "message:0")
    assert stub.text in texts(asked)[0]
    assert texts(asked)[0].endswith("[User query]:\none")
