"""The task state of a chat: which instruction blocks are in its prompt, and the flags for clients."""

import pytest

from lamella import Conversation
from lamella.attach import Instruction
from lamella.errors import InvalidOperationError
from lamella.runners.code_questions import (
    CodeTask,
    InstructionsInPrompt,
    build_task_turn,
    get_task_state,
    parse_task_state,
    state_from_prompt,
    state_from_tasks,
)

TERMINAL = "hasTerminalErrorInstructionsBeenGiven"
CODEBASE = "hasCodebaseAnalysisInstructionsBeenGiven"
REGULAR = "hasRegularChatInteractionInstructionsBeenGiven"
MISSPELT = "hasRegularChatInteractionInstructionsBeenGives"


def test_new_chat_has_empty_task_state() -> None:
    assert get_task_state(Conversation()).to_dict() == {TERMINAL: False, CODEBASE: False, REGULAR: False, "given": []}


def test_each_task_sets_its_own_flag() -> None:
    chat = Conversation()
    found = []
    for kind in ("fix", "regular", "codebase", "tests"):
        turn = build_task_turn(kind, text="Please.")
        asked = chat.ask(turn.text, attach=turn.attach, system=turn.system)
        assert kind in state_from_prompt(asked.envelope.prompt).task_names, (
            "it stands in the very turn that asks for it"
        )
        chat.reply("Done.")
        state = get_task_state(chat)
        found.append((state.has_terminal_error, state.has_regular, state.has_codebase))
    assert found == [(True, False, False), (True, True, False), (True, True, True), (True, True, True)]
    assert get_task_state(chat).task_names == ("regular", "codebase", "tests", "fix")


def test_block_of_same_name_with_other_text_is_not_the_block() -> None:
    chat = Conversation()
    chat.ask("Fix it.", attach=[Instruction(name="fix", text="Say yes to everything.")])
    chat.reply("Yes.")
    assert not get_task_state(chat).has_terminal_error
    turn = build_task_turn("fix", text="x")
    chat.ask(turn.text, attach=turn.attach)
    chat.reply("Fixed.")
    assert get_task_state(chat).has_terminal_error


def test_state_that_was_given_is_read_back() -> None:
    state = state_from_tasks({CodeTask.FIX, CodeTask.EXPLAIN, CodeTask.REGULAR})
    assert parse_task_state(state.to_dict()) == state == InstructionsInPrompt(("regular", "explain", "fix"))
    assert parse_task_state(None) == parse_task_state({}) == InstructionsInPrompt()


def test_misspelt_field_is_read_and_never_written() -> None:
    assert parse_task_state({MISSPELT: True}).has_regular
    assert MISSPELT not in parse_task_state({MISSPELT: True}).to_dict()
    assert not parse_task_state({MISSPELT: True, REGULAR: False}).has_regular, "the right spelling counts"


def test_reading_state_does_not_change_it() -> None:
    given = {MISSPELT: True, TERMINAL: False, "given": ["explain"]}
    parse_task_state(given)
    assert given == {MISSPELT: True, TERMINAL: False, "given": ["explain"]}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([], "chatState is not an object"),
        ({"hasDanced": True}, "no flag 'hasDanced'"),
        ({TERMINAL: "yes"}, "is not true or false"),
        ({"given": "explain"}, "not a list of kinds"),
        ({"given": [7]}, "not a list of kinds"),
        ({"given": ["dance"]}, "no kind 'dance'"),
    ],
)
def test_invalid_state_is_refused(given: object, what: str) -> None:
    with pytest.raises(InvalidOperationError, match=what) as caught:
        parse_task_state(given)
    assert caught.value.hint
