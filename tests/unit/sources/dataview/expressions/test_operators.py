"""Signs between values: what makes no sense together comes to nothing, and never to an error."""

from datetime import datetime

import pytest

from lamella.sources.dataview.expressions import apply_operator, negate_value, normalize_number
from lamella.sources.dataview.values import QueryBudget, QueryError, QueryLink, TimeSpan, Value

DAY = datetime(2026, 1, 31)  # noqa: DTZ001 - notes name no zone
WEEK = TimeSpan(seconds=7 * 86_400)
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "/", "%")
VALUES: list[Value] = [None, True, 0, -3, 1e308, "a", "", DAY, WEEK, QueryLink(path="a"), (1, "b"), {"a": 1}]


def calculate(left: Value, sign: str, right: Value) -> Value:
    return apply_operator(sign, left, right, budget=QueryBudget())


@pytest.mark.parametrize(
    ("left", "sign", "right", "made"),
    [
        (2, "+", 3, 5),
        (2, "-", 3, -1),
        (2, "*", 3.5, 7),
        (7, "/", 2, 3.5),
        (6, "/", 2, 3),
        (-7, "%", 4, -3),
        (1, "/", 0, None),
        (1, "%", 0, None),
        (1e308, "*", 10, None),
        ("a", "+", 1, "a1"),
        (1, "+", "a", "1a"),
        ((1,), "+", (2,), (1, 2)),
        (DAY, "+", TimeSpan(months=1), DAY.replace(month=2, day=28)),
        (DAY, "-", WEEK, DAY.replace(day=24)),
        (DAY.replace(day=24), "+", WEEK, DAY),
        (WEEK, "+", DAY.replace(day=24), DAY),
        (DAY, "-", DAY.replace(day=24), WEEK),
        (WEEK, "*", 2, TimeSpan(seconds=14 * 86_400)),
        (2, "*", WEEK, TimeSpan(seconds=14 * 86_400)),
        (WEEK, "/", 7, TimeSpan(seconds=86_400)),
        (WEEK, "/", 0, None),
        (WEEK, "*", 1e308, None),
        (WEEK, "-", WEEK, TimeSpan()),
        (None, "+", 1, None),
        (True, "+", True, None),
        ("a", "*", 1000000000, None),
        ("a", "=", "A", False),
        ("a", "and", 0, False),
        (0, "or", "a", True),
    ],
)
def test_operator_returns_expected_value(left: Value, sign: str, right: Value, made: Value) -> None:
    assert calculate(left, sign, right) == made


def test_operators_accept_any_two_values() -> None:
    for left in VALUES:
        for right in VALUES:
            for sign in SIGNS:
                calculate(left, sign, right)


def test_numbers_do_not_grow_without_end() -> None:
    number: Value = 10
    for _ in range(400):
        number = calculate(number, "*", 10)
    assert number is None
    assert isinstance(normalize_number(2**60), float)


def test_only_numbers_and_spans_can_be_negated() -> None:
    assert [negate_value(value) for value in (2, TimeSpan(months=1), "a", True, None)] == [
        -2,
        TimeSpan(months=-1),
        None,
        None,
        None,
    ]


def test_long_values_cost_more() -> None:
    with pytest.raises(QueryError):
        apply_operator("=", "a" * 10_000, "b", budget=QueryBudget(10))
