"""Operators: two values and the sign between them. What makes no sense together comes to nothing."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeGuard

from lamella.adapters.sources.dataview.language.allowance import Allowance
from lamella.adapters.sources.dataview.language.spans import TimeSpan, move
from lamella.adapters.sources.dataview.language.values import Value, is_true, order_key, tell_value, weigh_value

# Whole numbers beyond this are no longer exact in most programs, and would grow without end here.
_LARGEST_WHOLE = 2**53
_COMPARISONS: Mapping[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def combine(sign: str, left: Value, right: Value, *, allowance: Allowance) -> Value:
    """What a sign makes of two values."""
    allowance.read(weigh_value(left) + weigh_value(right))
    if sign in _COMPARISONS:
        return _COMPARISONS[sign](compare(left, right))
    if sign in ("and", "or"):
        return is_true(left) and is_true(right) if sign == "and" else is_true(left) or is_true(right)
    return _calculate(sign, left, right)


def compare(left: Value, right: Value) -> int:
    """Below zero, zero or above: the order of any two values."""
    one, other = order_key(left), order_key(right)
    return (one > other) - (one < other)


def negate(value: Value) -> Value:
    """A number or a span with its sign turned round."""
    if is_number(value):
        return -value
    return value.times(-1) if isinstance(value, TimeSpan) else None


def _calculate(sign: str, left: Value, right: Value) -> Value:
    if is_number(left) and is_number(right):
        return calculate_numbers(sign, left, right)
    if isinstance(left, datetime):
        return _calculate_moment(sign, left, right)
    if isinstance(left, TimeSpan):
        return _calculate_span(sign, left, right)
    if sign == "*" and isinstance(right, TimeSpan):
        return _calculate_span(sign, right, left)
    if sign == "+":
        return _join(left, right)
    return None


def is_number(value: Value) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def calculate_numbers(sign: str, left: float, right: float) -> Value:
    """What two numbers come to; nothing where that is no number."""
    try:
        match sign:
            case "+":
                return as_number(left + right)
            case "-":
                return as_number(left - right)
            case "*":
                return as_number(left * right)
            case "/":
                return as_number(left / right)
            case _:
                # The remainder has the sign of what is divided, as in most languages but this one.
                return as_number(math.fmod(left, right))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def as_number(number: float) -> Value:
    """A number as it is kept: whole where it is, nothing where it is none."""
    if not math.isfinite(number):
        return None
    if isinstance(number, float) and number.is_integer() and abs(number) <= _LARGEST_WHOLE:
        return int(number)
    return float(number) if abs(number) > _LARGEST_WHOLE else number


def _calculate_moment(sign: str, left: datetime, right: Value) -> Value:
    if isinstance(right, TimeSpan) and sign in ("+", "-"):
        return move(left, right if sign == "+" else right.times(-1))
    if isinstance(right, datetime) and sign == "-":
        return TimeSpan(seconds=(left - right).total_seconds())
    return _join(left, right) if sign == "+" else None


def _calculate_span(sign: str, left: TimeSpan, right: Value) -> Value:
    if isinstance(right, TimeSpan) and sign in ("+", "-"):
        return left.plus(right if sign == "+" else right.times(-1))
    if isinstance(right, datetime) and sign == "+":
        return move(right, left)
    if is_number(right) and sign in ("*", "/"):
        factor = calculate_numbers("/", 1, right) if sign == "/" else right
        return _scale(left, factor) if is_number(factor) else None
    return _join(left, right) if sign == "+" else None


def _scale(span: TimeSpan, factor: float) -> TimeSpan | None:
    scaled = span.seconds * factor, span.months * factor
    return span.times(factor) if all(math.isfinite(part) for part in scaled) else None


def _join(left: Value, right: Value) -> Value:
    """A text with whatever is added to it, or two lists as one."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return (*left, *right)
    if isinstance(left, str) or isinstance(right, str):
        return "".join(one if isinstance(one, str) else tell_value(one) for one in (left, right))
    return None
