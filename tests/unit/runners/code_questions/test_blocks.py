"""Blocks: every kind has one, and those of functions say how they are asked for."""

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


def test_every_kind_has_a_block_of_its_own() -> None:
    assert set(TASK_INSTRUCTIONS) == set(CodeTask)
    assert len({block.text for block in TASK_INSTRUCTIONS.values()}) == len(TASK_INSTRUCTIONS)


def test_functions_are_those_that_are_asked_for_by_their_names() -> None:
    assert TASKS_WITH_REQUEST == ("explain", "problems", "tests", "optimise", "comment", "complete", "fix")


def test_all_but_ordinary_talk_is_attached_to_the_turn_that_asks_for_it() -> None:
    assert set(ATTACHED_TASKS) == set(CodeTask) - {CodeTask.REGULAR}
    assert make_instruction(CodeTask.FIX).to_artifact().id == "instruction:fix"


@pytest.mark.parametrize("kind", CodeTask)
def test_a_block_has_no_day_in_it_and_is_too_short_to_be_outlined(kind: CodeTask) -> None:
    assert date_time_pattern().search(TASK_INSTRUCTIONS[kind].text) is None
    assert len(TASK_INSTRUCTIONS[kind].text) < 1_000


def test_a_kind_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOperationError, match="There is no kind 'dance'") as caught:
        parse_task("dance")
    assert "explain" in caught.value.hint
