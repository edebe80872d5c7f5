"""Names that a source file defines, found by its lines."""

import pytest

from lamella.codebase.index import extract_symbols


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class Garden(Base):\n    async def water(self): ...\nLIMIT: int = 3\n", ["Garden", "water", "LIMIT"]),
        ("export default class Bed {}\nexport const rake = () => 1;\nfunction* dig() {}\n", ["Bed", "dig", "rake"]),
        ("func (s *Server) Run() error {\n}\ntype Plot struct {\n}\n", ["Run", "Plot"]),
        ("pub(crate) fn sow(n: u8) -> u8 {\n}\npub trait Grow {}\n", ["sow", "Grow"]),
        ("    public List<String> names(int a) {\n", ["names"]),
        ("int add(int a, int b) {\n#define MOST 3\n", ["MOST", "add"]),
        ("return call(a);\nif x == 1:\n", []),
    ],
)
def test_symbols_are_extracted_in_most_languages(text: str, names: list[str]) -> None:
    assert extract_symbols(text) == names


def test_repeated_symbol_is_listed_once() -> None:
    assert extract_symbols("def a(): ...\n" * 3) == ["a"]


@pytest.mark.parametrize("line", ["a " * 50_000, "(" * 50_000, "static " * 20_000, "int a" * 20_000 + "("])
def test_long_line_is_parsed_quickly(line: str) -> None:
    assert len(extract_symbols(f"{line}\n")) < 3
