"""Words: no text is cut within one that has room, and a title fits a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.text.content import make_title, truncate_words

ROOM = 60


@given(st.text(), st.integers(min_value=2, max_value=80))
def test_truncated_text_is_one_line_within_limit(text: str, room: int) -> None:
    cut = truncate_words(text, room)
    assert len(cut) <= room
    assert cut == " ".join(cut.split())


@pytest.mark.parametrize(
    ("question", "title"),
    [
        (" When is\nhigh tide? ", "When is high tide?"),
        ("tide " * 20, "tide tide tide tide tide tide tide tide tide tide tide tide…"[:ROOM]),
        ("t" * 80, "t" * (ROOM - 1) + "…"),
        ("", ""),
    ],
)
def test_title_is_question_truncated_to_line(question: str, title: str) -> None:
    assert make_title(question) == title


@pytest.mark.parametrize(
    ("text", "room", "cut"),
    [
        ("two  words\n", 9, "two words"),
        ("two words more", 12, "two words…"),
        ("one, two", 6, "one…"),
        ("endless", 4, "end…"),
        ("睡眠 調査した学生の回答を集める", 8, "睡眠 調査した…"),
        ("調査 https://例え.jp/睡眠の調査", 14, "調査…"),
        ("学生 data調査methods", 12, "学生 data調査…"),
        ("", 4, ""),
    ],
)
def test_words_are_cut_between_words_unless_the_first_is_too_long(text: str, room: int, cut: str) -> None:
    assert truncate_words(text, room) == cut
