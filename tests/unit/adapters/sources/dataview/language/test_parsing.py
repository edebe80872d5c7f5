"""Expressions: what binds more, how deep they may be, and that long ones are flat."""

from datetime import date

import pytest
from tests.unit.adapters.sources.dataview.books import ask, rows

from lamella.adapters.sources.dataview.language.allowance import QueryRefusal
from lamella.adapters.sources.dataview.language.parsing import DEEPEST, ExpressionParser, TokenReader, split_link


def told(expression: str) -> str:
    return rows(f'LIST WITHOUT ID {expression} FROM "Books/Dune"')[0].removeprefix("- ")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("12 / 2 / 3", "2"),
        ("-2 + 3", "1"),
        ("- - 2", "2"),
        ("1 + 1 = 2 and 3 > 2", "true"),
        ("true or true and false", "false"),
        ("true or (true and false)", "true"),
        ("false and true or true", "true"),
        ("!false and !(1 = 2)", "true"),
        ("not 1 = 2", "false"),
        ("[1, 2, 3][1]", "2"),
        ("[1, 2][7]", "-"),
        ('"abc"[1]', "b"),
        ("[]", ""),
        ("author.file", "-"),
        ("file.tasks.due[0]", "2026-11-20"),
        ("file.tasks.text[1]", "Find it"),
        ("#book", "#book"),
        ("[[Emma#End|x]]", "[[Books/Emma#End|x]]"),
        ("nothing.at.all[0].there", "-"),
        ("length([1, [2, 3]])", "2"),
        ("TRUE", "true"),
        ("99999999999999999999", "1e+20"),
    ],
)
def test_an_expression_comes_to_a_value(expression: str, value: str) -> None:
    assert told(expression) == value


def test_depth_is_bounded_in_brackets_lists_calls_and_signs() -> None:
    for opening, closing in (("(", ")"), ("[", "]"), ("lower(", ")"), ("!", ""), ("- ", ""), ("[1][", "]")):
        deep = opening * (DEEPEST + 5) + "1" + closing * (DEEPEST + 5)
        assert f"nested more than {DEEPEST} deep" in ask(f"LIST WHERE {deep}").refused
        fine = opening * (DEEPEST - 2) + "1" + closing * (DEEPEST - 2)
        assert not ask(f"LIST WHERE {fine}").refused
    assert "nested" in ask("LIST FROM " + "(" * 60 + "#a" + ")" * 60).refused
    assert "nested" in ask("LIST FROM " + "-" * 60 + "#a").refused


def test_long_chains_are_flat() -> None:
    assert told(" + ".join(["1"] * 900)) == "900"
    assert told("file" + ".link" * 900) == "-"


def test_the_day_is_asked_for_only_where_a_query_names_it() -> None:
    for text, is_dated in (("date(today)", True), ("date(2026-01-01)", False), ("date(eoy) > a", True)):
        parser = ExpressionParser(TokenReader(text), date(2026, 1, 1))
        parser.parse()
        assert parser.is_dated is is_dated


def test_a_reader_takes_what_comes_next_and_says_what_is_missing() -> None:
    reader = TokenReader("LIST (")
    assert reader.take_word("table", "list")
    assert not reader.take_word("list")
    with pytest.raises(QueryRefusal, match=r"'\)' is missing; there is '\(' \(line 1, column 6\)"):
        reader.need_sign(")")
    assert reader.take().text == "("
    assert [reader.take().text for _ in range(3)] == ["", "", ""]


@pytest.mark.parametrize(
    ("inside", "parts"),
    [
        ("a", ("a", "", "")),
        ("a#b|c", ("a", "#b", "c")),
        ("a\\|b", ("a", "", "b")),
        ("#^x", ("", "#^x", "")),
        ("", ("", "", "")),
    ],
)
def test_a_link_has_a_note_a_part_and_words(inside: str, parts: tuple[str, str, str]) -> None:
    assert split_link(inside) == parts
