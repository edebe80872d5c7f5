"""Terms: words of any script, and paths and numbers both whole and in parts."""

import pytest

from lamella.core.search.language import iter_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("one two", ["one", "two"]),
        ("grün ärger", ["grün", "ärger"]),
        ("src/app.py", ["src/app.py", "src", "app", "py"]),
        ("well-known", ["well-known", "well", "known"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("k-37", ["k-37", "k", "37"]),
        ("128kb", ["128kb", "128", "kb"]),
        ("kb128", ["kb128"]),
        ("2026", ["2026"]),
        ("1.5", ["1.5", "1", "5"]),
        ("end.", ["end"]),
        ("a, b", ["a", "b"]),
        ("中文", ["中", "文", "中文"]),
        ("中文字", ["中", "文", "字", "中文", "文字"]),
        ("a中", ["a", "中"]),
        ("--- ...", []),
    ],
)
def test_text_is_indexed_by_words_and_compounds(text: str, terms: list[str]) -> None:
    assert list(iter_terms(text)) == terms
