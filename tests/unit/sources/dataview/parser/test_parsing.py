"""Expressions: what binds more, how deep they may be, and that long ones are flat."""

from datetime import date

import pytest
from tests.unit.sources.dataview.sample_vault import ask, rows

from lamella.sources.dataview.parser import MAX_NESTING_DEPTH, ExpressionParser, TokenReader, split_link
from lamella.sources.dataview.values import QueryError


def error_of(expression: str) -> str:
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
def test_expression_evaluates_to_value(expression: str, value: str) -> None:
    assert error_of(expression) == value


def test_depth_is_bounded_in_brackets_lists_calls_and_signs() -> None:
    for opening, closing in (("(", ")"), ("[", "]"), ("lower(", ")"), ("!", ""), ("- ", ""), ("[1][", "]")):
        deep = opening * (MAX_NESTING_DEPTH + 5) + "1" + closing * (MAX_NESTING_DEPTH + 5)
        assert f"nested more than {MAX_NESTING_DEPTH} deep" in ask(f"LIST WHERE {deep}").error
        fine = opening * (MAX_NESTING_DEPTH - 2) + "1" + closing * (MAX_NESTING_DEPTH - 2)
        assert not ask(f"LIST WHERE {fine}").error
    assert "nested" in ask("LIST FROM " + "(" * 60 + "#a" + ")" * 60).error
    assert "nested" in ask("LIST FROM " + "-" * 60 + "#a").error


def test_long_chains_need_no_recursion() -> None:
    assert error_of(" + ".join(["1"] * 900)) == "900"
    assert error_of("file" + ".link" * 900) == "-"


def test_query_depends_on_today_only_if_it_names_it() -> None:
    for text, is_dated in (("date(today)", True), ("date(2026-01-01)", False), ("date(eoy) > a", True)):
        parser = ExpressionParser(TokenReader(text), date(2026, 1, 1))
        parser.parse()
        assert parser.depends_on_today is is_dated


def test_token_reader_accepts_words_and_reports_missing_ones() -> None:
    reader = TokenReader("LIST (")
    assert reader.accept_word("table", "list")
    assert not reader.accept_word("list")
    with pytest.raises(QueryError, match=r"'\)' is missing; there is '\(' \(line 1, column 6\)"):
        reader.expect_sign(")")
    assert reader.consume().text == "("
    assert [reader.consume().text for _ in range(3)] == ["", "", ""]


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
def test_link_has_a_note_a_part_and_words(inside: str, parts: tuple[str, str, str]) -> None:
    assert split_link(inside) == parts
