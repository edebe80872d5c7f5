"""Escaping: no line of a text is taken for structure, and every character comes back."""

import pytest

from lamella.archive.markdown.page import escape_text, unescape_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("one\n**user**: two", "one\n\\**user**: two"),
        ("one\n**ai**: two", "one\n\\**ai**: two"),
        ("one\n**ai**:", "one\n\\**ai**:"),
        ("one\n[Context: Notes: a.md]", "one\n\\[Context: Notes: a.md]"),
        ("one\n[Timestamp: never]", "one\n\\[Timestamp: never]"),
        ("one\n<!-- lamella-context: {} -->", "one\n\\<!-- lamella-context: {} -->"),
        ("one\n\\**user**: two", "one\n\\\\**user**: two"),
        ("one\n\\\\\\[Timestamp: x]", "one\n\\\\\\\\[Timestamp: x]"),
        ("one\r\ntwo\rthree", "one&#13;\ntwo&#13;three"),
        ("nul\x00 del\x7f next\x85 line\u2028", "nul&#0; del&#127; next&#133; line&#8232;"),
        ("says &#13; and &amp;#13;", "says &amp;#13; and &amp;amp;#13;"),
    ],
)
def test_structural_text_is_escaped_and_restored(text: str, written: str) -> None:
    assert escape_text(text) == written
    assert unescape_text(written) == text


@pytest.mark.parametrize(
    "text",
    [
        "**user**: on the first line",
        "one\n---\ntwo\n-->\n",
        "one\n **user**: indented",
        "one\n\\section{two}\n\\n",
        "&amp; &lt; &#39; &#9; R&D &&;#13;",
        "one\n**User**: two\n**users**: three\n[Contexts: x]",
        "tab\tand \U0001f600 \ufeff",
    ],
)
def test_unambiguous_text_is_not_escaped(text: str) -> None:
    assert escape_text(text) == text
    assert unescape_text(text) == text


def test_long_text_is_escaped_in_one_pass() -> None:
    text = "**ai**: a line\r\n" * 700_000
    assert len(text) > 10_000_000
    assert unescape_text(escape_text(text)) == text
