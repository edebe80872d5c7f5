"""The state of a file, as several memories of files are kept by it."""

import os
from pathlib import Path

from lamella.adapters.files.state import DiskState, make_state


def test_a_state_is_settled_once_the_file_was_left_alone_for_two_seconds() -> None:
    state = DiskState(size=1, modified=5, changed=7, number=1, device=1)
    assert not state.is_settled(7 + 2_000_000_000)
    assert state.is_settled(8 + 2_000_000_000)


def test_a_file_in_the_place_of_another_has_another_state(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for file in (first, second):
        file.write_text("same", encoding="utf-8")
        os.utime(file, ns=(5, 5))
    before = make_state(first.stat())
    second.replace(first)
    assert make_state(first.stat()).lasting != before.lasting
