"""Edits: one passage or the whole, in the line ends that the note has."""

import pytest

from lamella.errors import WriteDeniedError
from lamella.vault_writer import edit_text, match_line_ends


def test_unique_passage_is_replaced() -> None:
    assert edit_text("# A\nold\n", "old", "new", path="a.md") == "# A\nnew\n"


def test_no_passage_means_the_end_of_the_note() -> None:
    assert edit_text("# A\nlast", "", "new\n", path="a.md") == "# A\nlast\nnew\n"
    assert edit_text("", "", "new\n", path="a.md") == "new\n"


@pytest.mark.parametrize(("old", "told"), [("gone", "does not hold"), ("a", "holds that passage 2 times")])
def test_missing_or_repeated_passage_changes_nothing(old: str, told: str) -> None:
    with pytest.raises(WriteDeniedError, match=told):
        edit_text("a b a", old, "x", path="a.md")


def test_line_ends_and_bom_are_kept() -> None:
    assert edit_text("\ufeffone\r\ntwo\r\n", "one\ntwo", "1\n2", path="a.md") == "\ufeff1\r\n2\r\n"
    assert match_line_ends("\ufeffone\r\n", "two\nthree\n") == "\ufefftwo\r\nthree\r\n"
    assert match_line_ends(None, "two\r\nthree\n") == "two\nthree\n"
