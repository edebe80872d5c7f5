"""Functions that queries may call. None of them knows of anything but its arguments."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lamella.adapters.sources.dataview.language.allowance import Allowance
from lamella.adapters.sources.dataview.language.operators import as_number, compare, is_number
from lamella.adapters.sources.dataview.language.spans import TimeSpan, find_day, parse_moment, parse_span
from lamella.adapters.sources.dataview.language.values import (
    FieldRecord,
    OrderKey,
    QueryLink,
    Value,
    fold_name,
    is_true,
    order_key,
    sort_key,
    tell_value,
    type_of,
    weigh_value,
)

_Made = Callable[..., Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFunction:
    """A function by its name: how many arguments it takes, and whether it does its work for each item of a list."""

    made: _Made
    least: int
    most: int
    each: bool = False

    def call(self, arguments: Sequence[Value], allowance: Allowance) -> Value:
        allowance.read(sum(map(weigh_value, arguments)))
        first = arguments[0] if arguments else None
        if self.each and isinstance(first, tuple):
            return tuple(self.call((item, *arguments[1:]), allowance) for item in first)
        return self.made(*arguments)


def _lower(value: Value) -> Value:
    return value.lower() if isinstance(value, str) else value


def _upper(value: Value) -> Value:
    return value.upper() if isinstance(value, str) else value


def _length(value: Value) -> Value:
    if value is None:
        return 0
    return len(value) if isinstance(value, str | tuple | Mapping) else 1


def _text_of(value: Value) -> str:
    return value if isinstance(value, str) else "" if value is None else tell_value(value)


def _contains(where: Value, what: Value) -> Value:
    """Whether a text holds a text, a list something that does, an object a field of that name."""
    if isinstance(where, tuple):
        return any(_contains(item, what) for item in where)
    if isinstance(where, str):
        return isinstance(what, str) and what in where
    if isinstance(where, Mapping):
        return isinstance(what, str) and fold_name(what) in map(fold_name, where)
    return where is not None and compare(where, what) == 0


def _contains_folded(where: Value, what: Value) -> Value:
    if isinstance(where, tuple):
        return any(_contains_folded(item, what) for item in where)
    if isinstance(where, str) and isinstance(what, str):
        return what.casefold() in where.casefold()
    return _contains(where, what)


def _contains_exactly(where: Value, what: Value) -> Value:
    if isinstance(where, tuple):
        return any(compare(item, what) == 0 for item in where)
    return _contains(where, what)


def _starts(value: Value, start: Value) -> Value:
    return value.startswith(start) if isinstance(value, str) and isinstance(start, str) else None


def _ends(value: Value, end: Value) -> Value:
    return value.endswith(end) if isinstance(value, str) and isinstance(end, str) else None


def _date(value: Value) -> Value:
    match value:
        case datetime():
            return value
        case str():
            return parse_moment(value)
        case QueryLink():
            return find_day(value.path)
        case _:
            return None


def _span(value: Value) -> Value:
    return value if isinstance(value, TimeSpan) else parse_span(value) if isinstance(value, str) else None


def _day(value: Value) -> Value:
    return value.replace(hour=0, minute=0, second=0, microsecond=0) if isinstance(value, datetime) else None


def _number(value: Value) -> Value:
    """The number, or the first one in a text."""
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
    return as_number(float(f"{sign}{whole}.{part.partition('.')[0] or 0}"))


def _round(value: Value, digits: Value = 0) -> Value:
    if not is_number(value) or not is_number(digits):
        return None
    scale = 10.0 ** max(0, min(12, int(digits)))
    # Halves go up, as they do where such queries come from.
    return as_number(math.floor(value * scale + 0.5) / scale) if abs(value) < 1e15 else value


def _list_of(*values: Value) -> Sequence[Value]:
    """The items of one list, or the arguments as they are."""
    return values[0] if len(values) == 1 and isinstance(values[0], tuple) else values


def _least(*values: Value) -> Value:
    return min((one for one in _list_of(*values) if one is not None), key=order_key, default=None)


def _most(*values: Value) -> Value:
    return max((one for one in _list_of(*values) if one is not None), key=order_key, default=None)


def _sum(*values: Value) -> Value:
    return as_number(math.fsum(one for one in _list_of(*values) if is_number(one)))


def _average(*values: Value) -> Value:
    numbers = [one for one in _list_of(*values) if is_number(one)]
    return as_number(math.fsum(numbers) / len(numbers)) if numbers else None


def _unique(value: Value) -> Value:
    if not isinstance(value, tuple):
        return value
    found: dict[OrderKey, Value] = {}
    for item in value:
        found.setdefault(order_key(item), item)
    return tuple(found.values())


def _join(value: Value, between: Value = ", ") -> Value:
    mark = _text_of(between)[:100]
    return mark.join(map(_text_of, value)) if isinstance(value, tuple) else _text_of(value)


def _reverse(value: Value) -> Value:
    return value[::-1] if isinstance(value, tuple | str) else value


def _sort(value: Value) -> Value:
    return tuple(sorted(value, key=sort_key)) if isinstance(value, tuple) else value


def _present(value: Value) -> Value:
    return tuple(item for item in value if item is not None) if isinstance(value, tuple) else value


def _default(value: Value, instead: Value) -> Value:
    return instead if value is None else value


def _choice(condition: Value, one: Value, other: Value) -> Value:
    return one if is_true(condition) else other


def _name(value: Value) -> Value:
    return "object" if isinstance(value, FieldRecord) else type_of(value)


# fmt: off
FUNCTIONS: Mapping[str, QueryFunction] = {
    "contains": QueryFunction(made=_contains, least=2, most=2),
    "icontains": QueryFunction(made=_contains_folded, least=2, most=2),
    "econtains": QueryFunction(made=_contains_exactly, least=2, most=2),
    "startswith": QueryFunction(made=_starts, least=2, most=2, each=True),
    "endswith": QueryFunction(made=_ends, least=2, most=2, each=True),
    "length": QueryFunction(made=_length, least=1, most=1),
    "lower": QueryFunction(made=_lower, least=1, most=1, each=True),
    "upper": QueryFunction(made=_upper, least=1, most=1, each=True),
    "join": QueryFunction(made=_join, least=1, most=2),
    "string": QueryFunction(made=_text_of, least=1, most=1),
    "number": QueryFunction(made=_number, least=1, most=1, each=True),
    "round": QueryFunction(made=_round, least=1, most=2, each=True),
    "date": QueryFunction(made=_date, least=1, most=1, each=True),
    "dur": QueryFunction(made=_span, least=1, most=1, each=True),
    "striptime": QueryFunction(made=_day, least=1, most=1, each=True),
    "min": QueryFunction(made=_least, least=1, most=20),
    "max": QueryFunction(made=_most, least=1, most=20),
    "sum": QueryFunction(made=_sum, least=1, most=20),
    "average": QueryFunction(made=_average, least=1, most=20),
    "default": QueryFunction(made=_default, least=2, most=2),
    "choice": QueryFunction(made=_choice, least=3, most=3),
    "list": QueryFunction(made=lambda *values: values, least=0, most=20),
    "nonnull": QueryFunction(made=_present, least=1, most=1),
    "reverse": QueryFunction(made=_reverse, least=1, most=1),
    "sort": QueryFunction(made=_sort, least=1, most=1),
    "unique": QueryFunction(made=_unique, least=1, most=1),
    "any": QueryFunction(made=lambda *values: any(map(is_true, _list_of(*values))), least=1, most=20),
    "all": QueryFunction(made=lambda *values: all(map(is_true, _list_of(*values))), least=1, most=20),
    "none": QueryFunction(made=lambda *values: not any(map(is_true, _list_of(*values))), least=1, most=20),
    "typeof": QueryFunction(made=_name, least=1, most=1),
}
# fmt: on
