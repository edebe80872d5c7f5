"""Code task turns: their text and their attachments."""

import pytest

from lamella import Code, Conversation, Selection, Unknown
from lamella.core.text.content import iter_lines_with_code_flag
from lamella.errors import InvalidOperationError
from lamella.runners.code_questions import (
    TASK_INSTRUCTIONS,
    CodeTask,
    CodeTaskTurn,
    build_task_turn,
    fence_code,
    make_instruction,
    render_task_request,
)

BEDS = Code(path="beds.py", text="def water(): ...\n")


def test_code_task_names_files_and_adds_instruction() -> None:
    lines = Selection(path="beds.py", lines=(3, 9), text="x")
    turn = build_task_turn("explain", BEDS, lines, text=" In German. ")
    assert turn.text == "Explain this code: beds.py; beds.py, lines 3-9.\n\nIn German."
    assert turn.attach == (make_instruction(CodeTask.EXPLAIN), BEDS, lines)
    assert turn.system is None


def test_piped_text_is_not_named() -> None:
    piped = Unknown(text="Traceback", title="terminal")
    assert build_task_turn("fix", piped).text == "Fix this terminal error."
    assert build_task_turn("fix", piped, BEDS).text == "Fix this terminal error. Files that may matter: beds.py."


def test_regular_task_is_in_system_prompt() -> None:
    assert build_task_turn("regular", text="Why?") == CodeTaskTurn(
        "Why?", (), {"guidelines": TASK_INSTRUCTIONS[CodeTask.REGULAR].text}
    )


def test_codebase_question_is_sent_verbatim() -> None:
    turn = build_task_turn("codebase", BEDS, text="Who waters?")
    assert (turn.text, turn.attach) == ("Who waters?", (make_instruction(CodeTask.CODEBASE), BEDS))


@pytest.mark.parametrize("kind", ["regular", "codebase", "explain"])
def test_empty_task_is_refused(kind: str) -> None:
    with pytest.raises(InvalidOperationError) as caught:
        build_task_turn(kind, text="  ")
    assert caught.value.hint


def test_repeated_task_references_instruction() -> None:
    chat = Conversation(layout="in_place")
    for _ in range(2):
        turn = build_task_turn("explain", BEDS)
        sent = chat.ask(turn.text, attach=turn.attach).messages
        chat.reply("It waters.")
    assert "- instruction:explain\n" in sent[-1].text
    assert sum(message.text.count(TASK_INSTRUCTIONS[CodeTask.EXPLAIN].text) for message in sent) == 1


def test_request_text_lists_files() -> None:
    assert render_task_request(CodeTask.TESTS, "Use pytest.", names=["a.py", "b.py"]) == (
        "Write tests for this code: a.py; b.py.\n\nUse pytest."
    )


@pytest.mark.parametrize("code", ["x = 1", "x = 1\n", "```\nx\n```", "a ````` b", "```\n````\n", ""])
def test_code_fence_ends_with_code(code: str) -> None:
    fenced = fence_code(code)
    assert code.removesuffix("\n") in fenced
    assert all(inside for _, inside in iter_lines_with_code_flag(fenced))
    assert [inside for _, inside in iter_lines_with_code_flag(f"{fenced}\nafter")][-1] is False
