"""Instructions of code tasks: each task has its own."""

import pytest

from lamella.core.text.exact_terms import date_time_pattern
from lamella.errors import InvalidOperationError
from lamella.runners.code_questions import (
    ATTACHED_TASKS,
    TASK_INSTRUCTIONS,
    TASKS_WITH_REQUEST,
    CodeTask,
    make_instruction,
    parse_task,
)


def test_every_task_has_own_instruction() -> None:
    assert set(TASK_INSTRUCTIONS) == set(CodeTask)
    assert len({block.text for block in TASK_INSTRUCTIONS.values()}) == len(TASK_INSTRUCTIONS)


def test_tasks_with_request_have_fixed_names() -> None:
    assert TASKS_WITH_REQUEST == ("explain", "problems", "tests", "optimise", "comment", "complete", "fix")


def test_all_tasks_except_regular_are_attached() -> None:
    assert set(ATTACHED_TASKS) == set(CodeTask) - {CodeTask.REGULAR}
    assert make_instruction(CodeTask.FIX).to_artifact().id == "instruction:fix"


@pytest.mark.parametrize("kind", CodeTask)
def test_instruction_has_no_date_and_is_short(kind: CodeTask) -> None:
    assert date_time_pattern().search(TASK_INSTRUCTIONS[kind].text) is None
    assert len(TASK_INSTRUCTIONS[kind].text) < 1_000


def test_unknown_task_is_refused_with_valid_ones() -> None:
    with pytest.raises(InvalidOperationError, match="There is no kind 'dance'") as caught:
        parse_task("dance")
    assert "explain" in caught.value.hint
