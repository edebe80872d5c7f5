"""Incoming text: normalization, hashing, and escaping for a line of a block."""

from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.text.content import (
    canonical_json,
    encode_text,
    escape_line,
    hash_text,
    normalize_line_ends,
    short_hash,
)
from lamella.errors import ArtifactError, TextError


def unescape_line(text: str) -> str:
    """Read an escaped line back, one escape at a time from the left."""
    out = ""
    while text:
        head, mark, text = text.partition("&")
        out += head
        name, end, rest = text.partition(";")
        known = {"amp": "&", "lt": "<", "gt": ">"}
        if mark and end and (name in known or (name.startswith("#") and name[1:].isascii() and name[1:].isdigit())):
            out += known.get(name) or chr(int(name[1:]))
            text = rest
        else:
            out += mark
    return out


def test_crlf_becomes_lf() -> None:
    assert normalize_line_ends("a\r\nb\r\n") == "a\nb\n"


def test_one_leading_bom_is_removed() -> None:
    assert normalize_line_ends("\ufeffa\ufeffb") == "a\ufeffb"
    assert normalize_line_ends("\ufeff\ufeffa") == "\ufeffa"


@pytest.mark.parametrize(
    "text", ["trailing  \n spaces\t\n\n\n", "a lone \r stays", "\n\nleading", "nbsp\xa0", "\u2028", "", "e\u0301"]
)
def test_other_characters_are_not_normalized(text: str) -> None:
    assert normalize_line_ends(text) == text


def test_hash_is_sha256_of_the_utf8_bytes() -> None:
    assert hash_text("ü") == "sha256:" + sha256("ü".encode()).hexdigest()
    assert short_hash("ü") == sha256("ü".encode()).hexdigest()[:12]


def test_lone_surrogate_error_gives_position() -> None:
    with pytest.raises(TextError, match=r"Character 3 of a text is U\+D800") as caught:
        encode_text("ab\ud800c")
    assert caught.value.code == "bad_text"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("Bob's & co.md", "Bob's & co.md"),
        ("a?x=1&y=2", "a?x=1&y=2"),
        ('say "hi".md', 'say "hi".md'),
        ("list]item, two", "list]item, two"),
        ("👩‍👩‍👧.md", "👩‍👩‍👧.md"),
        ("مرحبا.md", "مرحبا.md"),
        ("two\nlines", "two&#10;lines"),
        ("<b>", "&lt;b&gt;"),
        ("&lt;", "&amp;lt;"),
        ("&amp;", "&amp;amp;"),
        ("&#10;", "&amp;#10;"),
        ("\u2028", "&#8232;"),
    ],
)
def test_escape_line_escapes_brackets_and_line_breaks_only(raw: str, line: str) -> None:
    assert escape_line(raw) == line


@steady
@given(st.text())
@example("&amp;lt;")
@example("&#60;")
@example("&&lt;;")
def test_escaped_line_round_trips(text: str) -> None:
    line = escape_line(text)
    assert unescape_line(line) == text
    assert line.splitlines() in ([], [line])
    assert "<" not in line
    assert ">" not in line


def test_equal_values_are_written_as_equal_json() -> None:
    assert (
        canonical_json({"b": [1, 2.5], "a": "é"})
        == '{"a":"é","b":[1,2.5]}'
        == canonical_json({"a": "é", "b": [1, 2.5]})
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_unencodable_json_is_refused(value: object) -> None:
    with pytest.raises(ArtifactError, match="cannot be written as JSON") as caught:
        canonical_json({"value": value})
    assert "finite numbers" in caught.value.hint
