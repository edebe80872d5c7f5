"""Fields in lines and properties: detection, types, and bounded time."""

import time
from datetime import datetime

import pytest

from lamella.sources.dataview.notes import (
    gather_fields,
    iter_bracketed_fields,
    mask_inline_code,
    parse_inline_value,
    parse_line_fields,
    parse_property,
)
from lamella.sources.dataview.values import MAX_VALUE_DEPTH, QueryLink, TimeSpan, Value
from lamella.sources.markdown import PropertyValue

DAY = datetime(2026, 11, 15)  # noqa: DTZ001 - notes name no zone


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("key:: value", [("key", "value")]),
        ("Due Date::2026", [("Due Date", "2026")]),
        ("**Born**:: 1920", [("Born", "1920")]),
        ("- key:: value", [("key", "value")]),
        ("> - _key_ :: value", [("key", "value")]),
        ("📚 shelf:: x", [("📚 shelf", "x")]),
        ("key::", [("key", "")]),
        ("a [k:: v] b (l:: w [x]) c", [("k", "v"), ("l", "w [x]")]),
        ("[k:: [[Note|x]]]", [("k", "[[Note|x]]")]),
        ("[k:: v", [("k", "v")]),
        ("see [a](b) [k:: v]", [("k", "v")]),
        ("`k:: v`", []),
        ("`[k:: v]` [l:: w]", [("l", "w")]),
        ("no field: here", []),
        ("a sentence, with a comma:: no key", []),
        (":: nothing", []),
        ("[:: x]", []),
        ("x" * 101 + ":: y", []),
    ],
)
def test_line_has_fields(line: str, fields: list[tuple[str, str]]) -> None:
    assert parse_line_fields(line) == fields


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("5", 5),
        ("-2.5", -2.5),
        ("TRUE", True),
        ("null", None),
        ("2026-11-15", DAY),
        ("3 days", TimeSpan(seconds=3 * 86_400)),
        ("[[Note#a|b]]", QueryLink(path="Note", subpath="#a", alias="b")),
        ('"5"', "5"),
        ('"a", "b"', ("a", "b")),
        ("[[a]], [[b]]", (QueryLink(path="a"), QueryLink(path="b"))),
        ("1, 2", (1, 2)),
        ("1, two", "1, two"),
        ("a, b", "a, b"),
        ("5 apples", "5 apples"),
        ("1,", "1,"),
        ('"open', '"open'),
        ("9" * 40, "9" * 40),
    ],
)
def test_inline_value_type_follows_its_text(text: str, value: Value) -> None:
    assert parse_inline_value(text) == value


def test_properties_are_values_and_words_that_mean_more() -> None:
    given: dict[str, PropertyValue] = {"a": ["2026-11-15", 1, None], "b": {"c": "[[x]]"}, "d": "5", "e": True}
    assert parse_property(given) == {"a": (DAY, 1, None), "b": {"c": QueryLink(path="x")}, "d": "5", "e": True}
    assert parse_property(float("nan")) is None


def test_property_depth_is_limited() -> None:
    deep: PropertyValue = 1
    for _ in range(100):
        deep = [deep]
    found: Value = parse_property(deep)
    depth = 0
    while isinstance(found, tuple):
        found, depth = found[0], depth + 1
    assert (found, depth) == (None, MAX_VALUE_DEPTH)


def test_repeated_field_becomes_list() -> None:
    assert gather_fields([("a", 1), ("b", 2), ("a", (3, 4))]) == {"a": (1, 3, 4), "b": 2}


def test_inline_code_is_blanked_in_place() -> None:
    assert mask_inline_code("a `b` c ``d ` e`` f ` g") == "a     c           f ` g"


@pytest.mark.parametrize(
    "line", ["[" * 20_000 + "::", "[a::" * 5_000, "(k:: [" * 3_000, "`" * 9 + "` `` " * 4_000 + "::", "::" * 10_000]
)
def test_long_line_is_parsed_quickly(line: str) -> None:
    start = time.perf_counter()
    parse_line_fields(line)
    list(iter_bracketed_fields(line))
    assert time.perf_counter() - start < 2
