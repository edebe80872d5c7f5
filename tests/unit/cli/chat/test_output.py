from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.cli.chat.output import split_finished_blocks


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", ""),
        ("one line", ""),
        ("one\n\n", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\n\ntwo\n\nthree", "one\n\ntwo\n\n"),
        ("- one\n\n  goes on\n\n- two", "- one\n\n  goes on\n\n"),
        ("```\none\n\ntwo", ""),
        ("```\none\n\ntwo\n```\n\nafter", "```\none\n\ntwo\n```\n\n"),
        ("~~~\n```\n\none\n~~~\n\nafter", "~~~\n```\n\none\n~~~\n\n"),
    ],
)
def test_block_is_finished_when_next_one_begins(text: str, finished: str) -> None:
    assert split_finished_blocks(text) == (finished, text.removeprefix(finished))


@given(st.text(alphabet="a \n`-~", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_streamed_pieces_print_whole_text_in_order(text: str, cuts: list[int]) -> None:
    printed, rest = "", ""
    for start, end in pairwise(sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})):
        done, rest = split_finished_blocks(rest + text[start:end])
        printed += done
    assert printed + rest == text
