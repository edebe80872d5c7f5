"""Blocks: every kind has one, and those of functions say how they are asked for."""

import pytest

from lamella.core.text.patterns import moment_pattern
from lamella.errors import CallError
from lamella.runners.kinds.blocks import ATTACHED, BLOCKS, FUNCTIONS, ChatKind, find_kind, make_instruction


def test_every_kind_has_a_block_of_its_own() -> None:
    assert set(BLOCKS) == set(ChatKind)
    assert len({block.text for block in BLOCKS.values()}) == len(BLOCKS)


def test_functions_are_those_that_are_asked_for_by_their_names() -> None:
    assert FUNCTIONS == ("explain", "problems", "tests", "optimise", "comment", "complete", "fix")


def test_all_but_ordinary_talk_is_attached_to_the_turn_that_asks_for_it() -> None:
    assert set(ATTACHED) == set(ChatKind) - {ChatKind.REGULAR}
    assert make_instruction(ChatKind.FIX).attachment().id == "instruction:fix"


@pytest.mark.parametrize("kind", ChatKind)
def test_a_block_has_no_day_in_it_and_is_too_short_to_be_outlined(kind: ChatKind) -> None:
    assert moment_pattern().search(BLOCKS[kind].text) is None
    assert len(BLOCKS[kind].text) < 1_000


def test_a_kind_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(CallError, match="There is no kind 'dance'") as caught:
        find_kind("dance")
    assert "explain" in caught.value.hint
