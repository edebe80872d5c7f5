"""Stretches: never more than is read at once, and all of it in as many calls as it takes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.adapters.tools.stretches import ROOM, cut_stretch, list_stretch


def test_a_short_text_is_given_whole_under_its_title() -> None:
    assert cut_stretch("High tide.", 0, title="tides.md") == "[tides.md]\nHigh tide."
    assert cut_stretch("", 0, title="empty.md") == "[empty.md]\n"


@given(st.integers(min_value=0, max_value=3 * ROOM))
def test_reading_on_gives_every_character_once(length: int) -> None:
    text = "".join(chr(97 + number % 26) for number in range(length))
    read, start = "", 0
    while True:
        title, _, part = cut_stretch(text, start, title="t").partition("\n")
        assert len(part) <= ROOM
        read += part
        more = re.search(r"go on with start (\d+)", title)
        if more is None:
            break
        start = int(more[1])
    assert read == text


def test_a_start_behind_the_end_is_told() -> None:
    with pytest.raises(ValueError, match="there are 3 characters, and nothing from 9 on"):
        cut_stretch("abc", 9, title="t")


def test_a_list_is_cut_by_lines_and_by_length_and_says_where_to_go_on() -> None:
    lines = [f"{number}.md" for number in range(10)]
    assert list_stretch(lines, 0, title="files", most=20).startswith("[files: 10]\n0.md")
    assert list_stretch(lines, 0, title="files", most=4).startswith("[files: 0 to 4 of 10; go on with start 4]")
    assert list_stretch(lines, 8, title="files", most=4) == "[files: 8 to 10 of 10, to the end]\n8.md\n9.md"
    assert len(list_stretch(["x" * ROOM] * 5, 0, title="files", most=5)) < 2 * ROOM
