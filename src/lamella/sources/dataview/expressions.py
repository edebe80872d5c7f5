"""Evaluate expressions of a query: operators, functions and fields.

An ``Expression`` has a value for each row, in an ``EvaluationScope``. ``apply_operator`` gives None for operands that
do not go together. The functions that queries may call depend on nothing but their arguments.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeGuard

from lamella.sources.dataview.values import (
    FieldRecord,
    OrderKey,
    QueryBudget,
    QueryLink,
    TimeSpan,
    Value,
    add_span,
    estimate_value_cost,
    format_value,
    get_field,
    get_type_name,
    is_truthy,
    make_order_key,
    make_truncated_order_key,
    normalize_field_name,
    parse_day_in_name,
    parse_span,
    parse_time,
)

# Larger whole numbers become floats. Most programs do not represent them exactly, and here they could grow forever.
_MAX_SAFE_INTEGER = 2**53
_COMPARISONS: Mapping[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def apply_operator(operator: str, left: Value, right: Value, *, budget: QueryBudget) -> Value:
    """Return the result of an operator on two values."""
    budget.spend_for_text(estimate_value_cost(left) + estimate_value_cost(right))
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](compare_values(left, right))
    if operator in ("and", "or"):
        return is_truthy(left) and is_truthy(right) if operator == "and" else is_truthy(left) or is_truthy(right)
    return _apply_arithmetic(operator, left, right)


def compare_values(left: Value, right: Value) -> int:
    """Return a number below, equal to or above zero for the order of two values."""
    one, other = make_order_key(left), make_order_key(right)
    return (one > other) - (one < other)


def negate_value(value: Value) -> Value:
    """Return a number or duration with the opposite sign; None for other values."""
    if is_number(value):
        return -value
    return value.scaled(-1) if isinstance(value, TimeSpan) else None


def _apply_arithmetic(operator: str, left: Value, right: Value) -> Value:
    if is_number(left) and is_number(right):
        return calculate_numbers(operator, left, right)
    if isinstance(left, datetime):
        return _calculate_time(operator, left, right)
    if isinstance(left, TimeSpan):
        return _calculate_span(operator, left, right)
    if operator == "*" and isinstance(right, TimeSpan):
        return _calculate_span(operator, right, left)
    if operator == "+":
        return _concatenate_values(left, right)
    return None


def is_number(value: Value) -> TypeGuard[int | float]:
    """Return whether a value is a number. Booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def calculate_numbers(operator: str, left: float, right: float) -> Value:
    """Return the result of an arithmetic operator; None if it is not a number."""
    try:
        match operator:
            case "+":
                return normalize_number(left + right)
            case "-":
                return normalize_number(left - right)
            case "*":
                return normalize_number(left * right)
            case "/":
                return normalize_number(left / right)
            case _:
                # The remainder has the sign of the dividend, as in JavaScript and unlike Python's ``%``.
                return normalize_number(math.fmod(left, right))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def normalize_number(number: float) -> Value:
    """Return a number in its stored form: an int if it is whole, None if it is not finite."""
    if not math.isfinite(number):
        return None
    if isinstance(number, float) and number.is_integer() and abs(number) <= _MAX_SAFE_INTEGER:
        return int(number)
    return float(number) if abs(number) > _MAX_SAFE_INTEGER else number


def _calculate_time(operator: str, left: datetime, right: Value) -> Value:
    if isinstance(right, TimeSpan) and operator in ("+", "-"):
        return add_span(left, right if operator == "+" else right.scaled(-1))
    if isinstance(right, datetime) and operator == "-":
        return TimeSpan(seconds=(left - right).total_seconds())
    return _concatenate_values(left, right) if operator == "+" else None


def _calculate_span(operator: str, left: TimeSpan, right: Value) -> Value:
    if isinstance(right, TimeSpan) and operator in ("+", "-"):
        return left.plus(right if operator == "+" else right.scaled(-1))
    if isinstance(right, datetime) and operator == "+":
        return add_span(right, left)
    if is_number(right) and operator in ("*", "/"):
        factor = calculate_numbers("/", 1, right) if operator == "/" else right
        return _scale_span(left, factor) if is_number(factor) else None
    return _concatenate_values(left, right) if operator == "+" else None


def _scale_span(span: TimeSpan, factor: float) -> TimeSpan | None:
    scaled = span.seconds * factor, span.months * factor
    return span.scaled(factor) if all(math.isfinite(part) for part in scaled) else None


# Functions.


def _concatenate_values(left: Value, right: Value) -> Value:
    """Concatenate a text with any value, or two lists; None for other values."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return (*left, *right)
    if isinstance(left, str) or isinstance(right, str):
        return "".join(one if isinstance(one, str) else format_value(one) for one in (left, right))
    return None


_Implementation = Callable[..., Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFunction:
    """A function with its number of arguments; ``applies_to_items`` applies it to every item of a list."""

    implementation: _Implementation
    min_arguments: int
    max_arguments: int
    applies_to_items: bool = False

    def call(self, arguments: Sequence[Value], budget: QueryBudget) -> Value:
        budget.spend_for_text(sum(map(estimate_value_cost, arguments)))
        first = arguments[0] if arguments else None
        if self.applies_to_items and isinstance(first, tuple):
            return tuple(self.call((item, *arguments[1:]), budget) for item in first)
        return self.implementation(*arguments)


def _lower(value: Value) -> Value:
    return value.lower() if isinstance(value, str) else value


def _upper(value: Value) -> Value:
    return value.upper() if isinstance(value, str) else value


def _length(value: Value) -> Value:
    if value is None:
        return 0
    return len(value) if isinstance(value, str | tuple | Mapping) else 1


def _to_text(value: Value) -> str:
    return value if isinstance(value, str) else "" if value is None else format_value(value)


def _contains(where: Value, what: Value) -> Value:
    """Return whether a text contains a text, an item of a list contains it, or an object has a field of that name."""
    if isinstance(where, tuple):
        return any(_contains(item, what) for item in where)
    if isinstance(where, str):
        return isinstance(what, str) and what in where
    if isinstance(where, Mapping):
        return isinstance(what, str) and normalize_field_name(what) in map(normalize_field_name, where)
    return where is not None and compare_values(where, what) == 0


def _contains_folded(where: Value, what: Value) -> Value:
    if isinstance(where, tuple):
        return any(_contains_folded(item, what) for item in where)
    if isinstance(where, str) and isinstance(what, str):
        return what.casefold() in where.casefold()
    return _contains(where, what)


def _contains_exactly(where: Value, what: Value) -> Value:
    if isinstance(where, tuple):
        return any(compare_values(item, what) == 0 for item in where)
    return _contains(where, what)


def _starts_with(value: Value, start: Value) -> Value:
    return value.startswith(start) if isinstance(value, str) and isinstance(start, str) else None


def _ends_with(value: Value, end: Value) -> Value:
    return value.endswith(end) if isinstance(value, str) and isinstance(end, str) else None


def _to_date(value: Value) -> Value:
    match value:
        case datetime():
            return value
        case str():
            return parse_time(value)
        case QueryLink():
            return parse_day_in_name(value.path)
        case _:
            return None


def _to_time_span(value: Value) -> Value:
    return value if isinstance(value, TimeSpan) else parse_span(value) if isinstance(value, str) else None


def _strip_time(value: Value) -> Value:
    return value.replace(hour=0, minute=0, second=0, microsecond=0) if isinstance(value, datetime) else None


def _to_number(value: Value) -> Value:
    """Return a number as it is, or the first number in a text."""
    if is_number(value):
        return value
    if not isinstance(value, str):
        return None
    begins = next((at for at, letter in enumerate(value) if letter in "0123456789"), None)
    if begins is None:
        return None
    sign = "-" if value[begins - 1 : begins] == "-" else ""
    ends = begins
    while ends < len(value) and ends - begins < 30 and value[ends] in "0123456789.":
        ends += 1
    whole, _, part = value[begins:ends].partition(".")
    return normalize_number(float(f"{sign}{whole}.{part.partition('.')[0] or 0}"))


def _round(value: Value, digits: Value = 0) -> Value:
    if not is_number(value) or not is_number(digits):
        return None
    scale = 10.0 ** max(0, min(12, int(digits)))
    # Round halves up, as JavaScript and so Dataview does. Python's ``round`` would round them to even.
    return normalize_number(math.floor(value * scale + 0.5) / scale) if abs(value) < 1e15 else value


def _list_items(*values: Value) -> Sequence[Value]:
    """Return the items of a single list argument, or the arguments themselves."""
    return values[0] if len(values) == 1 and isinstance(values[0], tuple) else values


def _minimum(*values: Value) -> Value:
    return min((one for one in _list_items(*values) if one is not None), key=make_order_key, default=None)


def _maximum(*values: Value) -> Value:
    return max((one for one in _list_items(*values) if one is not None), key=make_order_key, default=None)


def _sum(*values: Value) -> Value:
    return normalize_number(math.fsum(one for one in _list_items(*values) if is_number(one)))


def _average(*values: Value) -> Value:
    numbers = [one for one in _list_items(*values) if is_number(one)]
    return normalize_number(math.fsum(numbers) / len(numbers)) if numbers else None


def _unique(value: Value) -> Value:
    if not isinstance(value, tuple):
        return value
    found: dict[OrderKey, Value] = {}
    for item in value:
        found.setdefault(make_order_key(item), item)
    return tuple(found.values())


def _join_list(value: Value, between: Value = ", ") -> Value:
    mark = _to_text(between)[:100]
    return mark.join(map(_to_text, value)) if isinstance(value, tuple) else _to_text(value)


def _reverse(value: Value) -> Value:
    return value[::-1] if isinstance(value, tuple | str) else value


def _sort(value: Value) -> Value:
    return tuple(sorted(value, key=make_truncated_order_key)) if isinstance(value, tuple) else value


def _drop_nulls(value: Value) -> Value:
    return tuple(item for item in value if item is not None) if isinstance(value, tuple) else value


def _value_or_default(value: Value, fallback: Value) -> Value:
    return fallback if value is None else value


def _if_then_else(condition: Value, if_true: Value, if_false: Value) -> Value:
    return if_true if is_truthy(condition) else if_false


def _type_name(value: Value) -> Value:
    return "object" if isinstance(value, FieldRecord) else get_type_name(value)


# fmt: off
QUERY_FUNCTIONS: Mapping[str, QueryFunction] = {
    "contains": QueryFunction(implementation=_contains, min_arguments=2, max_arguments=2),
    "icontains": QueryFunction(implementation=_contains_folded, min_arguments=2, max_arguments=2),
    "econtains": QueryFunction(implementation=_contains_exactly, min_arguments=2, max_arguments=2),
    "startswith": QueryFunction(implementation=_starts_with, min_arguments=2, max_arguments=2, applies_to_items=True),
    "endswith": QueryFunction(implementation=_ends_with, min_arguments=2, max_arguments=2, applies_to_items=True),
    "length": QueryFunction(implementation=_length, min_arguments=1, max_arguments=1),
    "lower": QueryFunction(implementation=_lower, min_arguments=1, max_arguments=1, applies_to_items=True),
    "upper": QueryFunction(implementation=_upper, min_arguments=1, max_arguments=1, applies_to_items=True),
    "join": QueryFunction(implementation=_join_list, min_arguments=1, max_arguments=2),
    "string": QueryFunction(implementation=_to_text, min_arguments=1, max_arguments=1),
    "number": QueryFunction(implementation=_to_number, min_arguments=1, max_arguments=1, applies_to_items=True),
    "round": QueryFunction(implementation=_round, min_arguments=1, max_arguments=2, applies_to_items=True),
    "date": QueryFunction(implementation=_to_date, min_arguments=1, max_arguments=1, applies_to_items=True),
    "dur": QueryFunction(implementation=_to_time_span, min_arguments=1, max_arguments=1, applies_to_items=True),
    "striptime": QueryFunction(implementation=_strip_time, min_arguments=1, max_arguments=1, applies_to_items=True),
    "min": QueryFunction(implementation=_minimum, min_arguments=1, max_arguments=20),
    "max": QueryFunction(implementation=_maximum, min_arguments=1, max_arguments=20),
    "sum": QueryFunction(implementation=_sum, min_arguments=1, max_arguments=20),
    "average": QueryFunction(implementation=_average, min_arguments=1, max_arguments=20),
    "default": QueryFunction(implementation=_value_or_default, min_arguments=2, max_arguments=2),
    "choice": QueryFunction(implementation=_if_then_else, min_arguments=3, max_arguments=3),
    "list": QueryFunction(implementation=lambda *values: values, min_arguments=0, max_arguments=20),
    "nonnull": QueryFunction(implementation=_drop_nulls, min_arguments=1, max_arguments=1),
    "reverse": QueryFunction(implementation=_reverse, min_arguments=1, max_arguments=1),
    "sort": QueryFunction(implementation=_sort, min_arguments=1, max_arguments=1),
    "unique": QueryFunction(implementation=_unique, min_arguments=1, max_arguments=1),
    "any": QueryFunction(implementation=lambda *values: any(map(is_truthy, _list_items(*values))), min_arguments=1, max_arguments=20),
    "all": QueryFunction(implementation=lambda *values: all(map(is_truthy, _list_items(*values))), min_arguments=1, max_arguments=20),
    "none": QueryFunction(implementation=lambda *values: not any(map(is_truthy, _list_items(*values))), min_arguments=1, max_arguments=20),
    "typeof": QueryFunction(implementation=_type_name, min_arguments=1, max_arguments=1),
}
# fmt: on


# Expressions: conditions, columns and sort keys.


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationScope:
    """The context of an evaluation: the row, the note with the query, a link resolver, and the budget."""

    row: FieldRecord
    this: FieldRecord | None
    resolve: Callable[[str], str]
    budget: QueryBudget


class Expression(Protocol):
    """Something that has a value for every row."""

    def evaluate(self, scope: EvaluationScope) -> Value: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for every row."""

    constant: Value

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return self.constant


@dataclass(frozen=True, slots=True)
class LinkConstant:
    """A link written in the query, resolved from the note that the query is in."""

    target: str
    subpath: str
    alias: str

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return QueryLink(path=scope.resolve(self.target), subpath=self.subpath, alias=self.alias)


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field of the row; ``this`` is the note that the query is in, and ``row`` the row itself."""

    name: str

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        if self.name == "this":
            return scope.this
        return scope.row if self.name == "row" else scope.row.get(self.name)


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Fields of fields and items of lists: ``file.name``, ``row["a b"]``, ``authors[0]``."""

    base: Expression
    steps: tuple[Expression, ...]

    def evaluate(self, scope: EvaluationScope) -> Value:
        found = self.base.evaluate(scope)
        for step in self.steps:
            found = get_item(found, step.evaluate(scope), scope.budget)
        return found


def get_item(value: Value, key: Value, budget: QueryBudget) -> Value:
    """Return a field or an item of a value, or None. A name applied to a list gives that field of each item."""
    budget.spend()
    if is_number(key):
        return value[int(key)] if isinstance(value, tuple | str) and -1 < key < len(value) else None
    if not isinstance(key, str):
        return None
    if isinstance(value, tuple):
        found = (get_item(item, key, budget) for item in value)
        # Lists of lists are flattened, so that the tags of all tasks become one list.
        return tuple(item for one in found for item in (one if isinstance(one, tuple) else (one,)))
    if isinstance(value, FieldRecord):
        return value.get(key)
    return get_field(value, key) if isinstance(value, Mapping) else None


@dataclass(frozen=True, slots=True)
class NotExpression:
    """The logical negation of an expression."""

    operand: Expression

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return not is_truthy(self.operand.evaluate(scope))


@dataclass(frozen=True, slots=True)
class NegateExpression:
    """A number or duration with the opposite sign."""

    operand: Expression

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return negate_value(self.operand.evaluate(scope))


@dataclass(frozen=True, slots=True)
class OperatorChain:
    """Operands with operators of equal precedence, evaluated from left to right.

    The chain is flat, so a long one needs no recursion.
    """

    first: Expression
    rest: tuple[tuple[str, Expression], ...]

    def evaluate(self, scope: EvaluationScope) -> Value:
        found = self.first.evaluate(scope)
        for sign, other in self.rest:
            # Short circuit: the other operand of "and" or "or" is not evaluated if the result is known.
            if sign in ("and", "or") and is_truthy(found) is (sign == "or"):
                found = sign == "or"
                continue
            found = apply_operator(sign, found, other.evaluate(scope), budget=scope.budget)
        return found


@dataclass(frozen=True, slots=True)
class ListExpression:
    """A list of the values of several expressions."""

    items: tuple[Expression, ...]

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return tuple(item.evaluate(scope) for item in self.items)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call with its arguments."""

    function: QueryFunction
    arguments: tuple[Expression, ...]

    def evaluate(self, scope: EvaluationScope) -> Value:
        scope.budget.spend()
        return self.function.call([one.evaluate(scope) for one in self.arguments], scope.budget)
