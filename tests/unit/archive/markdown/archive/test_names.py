"""File names: at most 100 bytes, and a file of that name can be made on any system."""

import re

import pytest

from lamella.archive.markdown.archive import MAX_FILE_NAME_BYTES, archive_file_name, file_name_comparison_key


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("API review", "API review.md"),
        ("[[My Note]] … [ref] ::", "My Note … ref.md"),
        ('a/b\\c:d*e?f"g<h>i|j#k^l', "a b c d e f g h i j k l.md"),
        ("", "Untitled chat.md"),
        (" .. ", "Untitled chat.md"),
        ("///", "Untitled chat.md"),
        (".hidden", "hidden.md"),
        ("ends in dots...", "ends in dots.md"),
        ("con", "Chat con.md"),
        ("NUL.txt", "Chat NUL.txt.md"),
        ("com1 ", "Chat com1.md"),
        ("LPT²", "Chat LPT².md"),
        ("console", "console.md"),
        ("two\nlines\tand\x00more", "two lines and more.md"),
        ("e\u0301 composed", "\u00e9 composed.md"),
        ("evil\u202etxt.exe", "evil txt.exe.md"),
    ],
)
def test_title_becomes_valid_file_name(title: str, name: str) -> None:
    assert archive_file_name(title) == name


@pytest.mark.parametrize("letter", ["a", "ж", "漢", "😀", "é", "👩‍👩‍👧‍👦", "a. "])
def test_long_titles_are_cut_between_characters(letter: str) -> None:
    for number in (1, 2, 1_000):
        name = archive_file_name(letter * 200, number)
        assert len(name.encode()) <= MAX_FILE_NAME_BYTES
        assert len(name.encode()) > MAX_FILE_NAME_BYTES - 12
        assert not re.search(r"[. \u200d]\.md$", name)


def test_number_distinguishes_same_titles() -> None:
    assert archive_file_name("Talk", 2) == "Talk 2.md"
    assert archive_file_name("", 3) == "Untitled chat 3.md"


def test_names_equal_on_some_systems_are_equal() -> None:
    assert file_name_comparison_key("Talk.md") == file_name_comparison_key("TALK.md")
    assert file_name_comparison_key("\u00e9.md") == file_name_comparison_key("e\u0301.md")
    assert file_name_comparison_key("a.md") != file_name_comparison_key("b.md")
