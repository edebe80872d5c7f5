"""Values: any two have an order, each is true or false, and each is formatted on one line."""

from datetime import datetime

import pytest

from lamella.sources.dataview.values import (
    QueryLink,
    TimeSpan,
    Value,
    estimate_value_cost,
    format_value,
    get_field,
    get_type_name,
    is_truthy,
    make_order_key,
    make_truncated_order_key,
    normalize_field_name,
)

DAY = datetime(2026, 11, 15)  # noqa: DTZ001 - notes name no zone
# fmt: off
IN_ORDER: list[Value] = [
    None, (), (1,), (1, 2), (2,), False, True, DAY, DAY.replace(hour=9), TimeSpan(seconds=1), TimeSpan(months=1),
    QueryLink(path="A.md"), QueryLink(path="A.md", subpath="#x"), QueryLink(path="b.md"), -1, 0.5, 2, {}, {"a": 1},
    {"a": 2}, {"b": 0}, "", "A", "a", "B",
]
# fmt: on


def test_any_two_values_are_ordered_with_null_first() -> None:
    keys = [make_order_key(value) for value in IN_ORDER]
    assert keys == sorted(keys)
    assert len(set(map(repr, keys))) == len(keys)


def test_equality_depends_on_type() -> None:
    assert make_order_key(1) == make_order_key(1.0)
    assert make_order_key(1) != make_order_key(True)
    assert make_order_key("1") != make_order_key(1)
    assert make_order_key(QueryLink(path="a.md", alias="x")) == make_order_key(QueryLink(path="a.md"))


def test_rows_are_sorted_by_the_beginning_of_long_values() -> None:
    assert make_truncated_order_key("a" * 10_000) == make_truncated_order_key("a" * 20_000)
    assert make_order_key("a" * 10_000) != make_order_key("a" * 20_000)


@pytest.mark.parametrize("value", [None, False, 0, "", (), {}, TimeSpan()])
def test_null_zero_and_empty_are_false(value: Value) -> None:
    assert not is_truthy(value)


@pytest.mark.parametrize(
    "value", [True, 1, -0.5, "x", (None,), {"a": None}, TimeSpan(seconds=1), DAY, QueryLink(path="a")]
)
def test_everything_else_is_true(value: Value) -> None:
    assert is_truthy(value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "-"),
        (True, "true"),
        (5, "5"),
        (1 / 3, "0.333333333333"),
        ("a \n b", "a b"),
        (DAY, "2026-11-15"),
        (DAY.replace(hour=9, minute=5), "2026-11-15 09:05"),
        (TimeSpan(seconds=60), "1 minute"),
        (QueryLink(path="a/b.md"), "[[a/b]]"),
        (QueryLink(path="a/b.md", subpath="#c", alias="d"), "[[a/b#c|d]]"),
        (("a", (1, 2)), "a, [1, 2]"),
        ({"a": None, "b": ("c",)}, "{a: -, b: [c]}"),
    ],
)
def test_value_is_formatted_on_one_line(value: Value, told: str) -> None:
    assert format_value(value) == told


def test_types_have_names() -> None:
    values: list[Value] = [None, True, 1.5, "a", DAY, TimeSpan(), QueryLink(path="a"), (), {}]
    assert [get_type_name(value) for value in values] == [
        "null",
        "boolean",
        "number",
        "string",
        "date",
        "duration",
        "link",
        "array",
        "object",
    ]


def test_field_is_found_by_exact_or_normalized_name() -> None:
    fields: dict[str, Value] = {"Due Date": 1, "due": 2, "Größe (cm)": 3}
    assert [get_field(fields, name) for name in ("due", "due-date", "Due Date", "größe-cm", "x")] == [2, 1, 1, 3, None]
    assert normalize_field_name("  Due   Date! ") == "due-date"


def test_list_cost_is_sum_of_items() -> None:
    assert estimate_value_cost("abc") == 3
    assert estimate_value_cost(("abc",) * 10) > 10 * estimate_value_cost("abc")
    assert estimate_value_cost({"ab": "abc"}) > estimate_value_cost("abc")
