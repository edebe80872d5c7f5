"""Stretches: never more than is read at once, and all of it in as many calls as it takes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.tools.builtin import MAX_SLICE_CHARS, get_slice_of_list, get_slice_of_text


def test_short_text_is_given_whole_with_title() -> None:
    assert get_slice_of_text("High tide.", 0, title="tides.md") == "[tides.md]\nHigh tide."
    assert get_slice_of_text("", 0, title="empty.md") == "[empty.md]\n"


@given(st.integers(min_value=0, max_value=3 * MAX_SLICE_CHARS))
def test_reading_on_gives_every_character_once(length: int) -> None:
    text = "".join(chr(97 + number % 26) for number in range(length))
    read, start = "", 0
    while True:
        title, _, part = get_slice_of_text(text, start, title="t").partition("\n")
        assert len(part) <= MAX_SLICE_CHARS
        read += part
        more = re.search(r"go on with start (\d+)", title)
        if more is None:
            break
        start = int(more[1])
    assert read == text


def test_start_beyond_end_is_reported() -> None:
    with pytest.raises(ValueError, match="there are 3 characters, and nothing from 9 on"):
        get_slice_of_text("abc", 9, title="t")


def test_list_is_cut_by_lines_and_length_with_next_start() -> None:
    lines = [f"{number}.md" for number in range(10)]
    assert get_slice_of_list(lines, 0, title="files", max_items=20).startswith("[files: 10]\n0.md")
    assert get_slice_of_list(lines, 0, title="files", max_items=4).startswith(
        "[files: 0 to 4 of 10; go on with start 4]"
    )
    assert get_slice_of_list(lines, 8, title="files", max_items=4) == "[files: 8 to 10 of 10, to the end]\n8.md\n9.md"
    assert len(get_slice_of_list(["x" * MAX_SLICE_CHARS] * 5, 0, title="files", max_items=5)) < 2 * MAX_SLICE_CHARS
