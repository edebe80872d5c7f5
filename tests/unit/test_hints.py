"""Printed commands: a shell parses them as meant, and a terminal shows them safely."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shells import read_words

from lamella.hints import format_command_line, quote_for_shell

ODD = [
    "garden",
    "my garden",
    "it's",
    "$HOME `id`",
    "a\x1b[2Jb\\n'",
    "Gärten",
    "a\nb",
    "a -- b",
    "\u202eleft",
    "🌱\U000e0001",
]


@pytest.mark.parametrize("name", ODD)
def test_formatted_command_parses_back_in_shell(name: str) -> None:
    written = format_command_line("chats show", name, store=None, vault=Path("my notes"), undo=True)
    assert read_words(written) == ["chats", "show", name, "--vault", "my notes", "--undo"]


@pytest.mark.parametrize("name", ["-dash", "--store", "-- -"])
def test_name_starting_with_dash_follows_options(name: str) -> None:
    written = format_command_line("chats fork", name, "1f", vault="v", into="-new")
    assert read_words(written) == ["chats", "fork", "--vault", "v", "--into=-new", "--", name, "1f"]


def test_non_utf8_path_is_quoted_by_bytes() -> None:
    path = Path(os.fsdecode(b"/tmp/caf\xe9 f"))
    assert format_command_line("chat", vault=path) == r"lamella chat --vault $'/tmp/caf\xe9 f'"
    assert read_words(format_command_line("chat", vault=path)) == ["chat", "--vault", str(path)]


@given(st.text())
def test_quoted_word_is_printable_on_one_line(text: str) -> None:
    shown = quote_for_shell(text)
    assert shown.isprintable()
    assert "`" not in shown
    shown.encode()
