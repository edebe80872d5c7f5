"""Tables that names are looked up in are written as they are looked up: without capitals."""

import re

import pytest

from lamella.core.text.exact_terms import FILE_EXTENSIONS, SLASHED_PROSE, extract_exact_strings


def test_extensions_and_slashed_words_are_lowercase() -> None:
    assert sorted(name for name in FILE_EXTENSIONS if not re.fullmatch(r"[a-z0-9]+", name)) == []
    assert sorted(words for words in SLASHED_PROSE if not re.fullmatch(r"[a-z]+/[a-z]+", words)) == []


@pytest.mark.parametrize("name", ["a.xml", "main.cc", "a.H", "style.less", "a.json5", "song.m4a"])
def test_name_with_a_known_extension_is_exact_in_any_case(name: str) -> None:
    assert extract_exact_strings(f"See {name} please") == (name,)
