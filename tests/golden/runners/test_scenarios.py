"""Every byte that a runner sends is as it was when it was last read and approved."""

import pytest
from tests.golden.runners.scenarios import HERE, Play, every_play, perform


@pytest.mark.parametrize("play", list(every_play()), ids=str)
def test_runner_messages_match_golden_files(play: Play) -> None:
    assert perform(play).encode() == play.expected.read_bytes()


def test_every_file_of_messages_belongs_to_a_play() -> None:
    assert set(HERE.iterdir()) == {play.expected for play in every_play()}
