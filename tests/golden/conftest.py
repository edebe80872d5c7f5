"""Replayed conversations, whose prefixes are watched as those of any other test."""

from collections.abc import Callable

import pytest
from tests.golden.replayed import SeenTurn, replay

from lamella.core.log.call import PrefixChange

Replay = Callable[[str, str, str], tuple[SeenTurn, ...]]


@pytest.fixture
def replayed(movements: list[PrefixChange]) -> Replay:
    """The turns of a conversation in a layout and a carry-forward mode."""

    def watched(conversation: str, layout: str, carry_forward: str) -> tuple[SeenTurn, ...]:
        turns = replay(conversation, layout, carry_forward)
        movements.extend(turn.movement for turn in turns)
        return turns

    return watched
