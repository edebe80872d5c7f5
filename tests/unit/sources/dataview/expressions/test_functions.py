"""Functions of queries, one by one, and all of them with values that make no sense."""

from datetime import datetime
from itertools import product

import pytest

from lamella.sources.dataview.expressions import QUERY_FUNCTIONS
from lamella.sources.dataview.values import QueryBudget, QueryError, QueryLink, TimeSpan, Value

DAY = datetime(2026, 11, 15)  # noqa: DTZ001 - notes name no zone
ODD: list[Value] = [
    None,
    True,
    0,
    -3.5,
    "a1",
    DAY,
    TimeSpan(seconds=5),
    QueryLink(path="2026-11-15.md"),
    (),
    (1, "b", None),
    {"a": 1},
]

# fmt: off
CALLS: list[tuple[str, tuple[Value, ...], Value]] = [
    ("contains", ("abc", "b"), True), ("contains", (("abc", "d"), "b"), True), ("contains", ((1, 2), 2), True),
    ("contains", ({"Due Date": 1}, "due-date"), True), ("contains", (None, None), False), ("contains", (12, 1), False),
    ("contains", ("ABC", "b"), False), ("icontains", ("ABC", "b"), True), ("icontains", (("X", "ABC"), "b"), True),
    ("econtains", (("abc",), "b"), False), ("econtains", (("abc",), "abc"), True), ("econtains", ("abc", "b"), True),
    ("startswith", ("abc", "a"), True), ("startswith", (("abc", "b"), "a"), (True, False)),
    ("endswith", ("abc", "c"), True),
    ("length", ("abc",), 3), ("length", ((1, 2),), 2), ("length", (None,), 0), ("length", (5,), 1),
    ("length", ({"a": 1},), 1),
    ("lower", ("AB",), "ab"), ("lower", (("AB", 5),), ("ab", 5)), ("upper", ("ab",), "AB"),
    ("join", (("a", 1, None), "-"), "a-1-"), ("join", ("a",), "a"), ("string", (5,), "5"),
    ("number", ("about 12.5 cm",), 12.5), ("number", ("-3",), -3), ("number", ("x",), None),
    ("number", ("1.2.3",), 1.2),
    ("round", (2.5,), 3), ("round", (1.234, 2), 1.23), ("round", ("a",), None),
    ("date", ("2026-11-15",), DAY), ("date", (QueryLink(path="daily/2026-11-15.md"),), DAY), ("date", (5,), None),
    ("dur", ("5 s",), TimeSpan(seconds=5)), ("striptime", (DAY.replace(hour=5),), DAY), ("striptime", (1,), None),
    ("min", (3, 1, None), 1), ("max", ((3, 7),), 7), ("max", (None,), None), ("min", ((),), None),
    ("sum", ((1, 2, "x"),), 3), ("average", ((1, 2),), 1.5), ("average", ((),), None),
    ("default", (None, 1), 1), ("default", (0, 1), 0), ("choice", (0, "a", "b"), "b"), ("choice", (1, "a", "b"), "a"),
    ("list", (1, 2), (1, 2)), ("list", (), ()), ("nonnull", ((1, None),), (1,)), ("reverse", ((1, 2),), (2, 1)),
    ("sort", ((2, 1, None),), (None, 1, 2)), ("unique", ((1, 2, 1.0, "1"),), (1, 2, "1")),
    ("any", ((0, 1),), True), ("all", ((0, 1),), False), ("all", (1, 2), True), ("none", ((0, None),), True),
    ("typeof", (DAY,), "date"), ("typeof", ((),), "array"),
]
# fmt: on


@pytest.mark.parametrize(("name", "arguments", "made"), CALLS)
def test_query_function_returns_expected_value(name: str, arguments: tuple[Value, ...], made: Value) -> None:
    assert QUERY_FUNCTIONS[name].call(arguments, QueryBudget()) == made


def test_every_query_function_is_tested() -> None:
    assert {name for name, _, _ in CALLS} == set(QUERY_FUNCTIONS)


@pytest.mark.parametrize("name", QUERY_FUNCTIONS)
def test_no_arguments_make_a_function_fail(name: str) -> None:
    function = QUERY_FUNCTIONS[name]
    for count in range(function.min_arguments, min(function.max_arguments, 2) + 1):
        for arguments in product(ODD, repeat=count):
            function.call(arguments, QueryBudget())


def test_long_arguments_cost_more() -> None:
    with pytest.raises(QueryError):
        QUERY_FUNCTIONS["length"].call(((1,) * 1_000,), QueryBudget(100))
