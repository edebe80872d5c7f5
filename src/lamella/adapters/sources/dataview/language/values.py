"""Values: what fields and expressions come to, how any two compare, and how each is written.

Nothing is an error: every two values have an order, whatever they are, and a missing one comes before all others.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lamella.adapters.sources.dataview.language.allowance import LETTERS_OF_A_STEP
from lamella.adapters.sources.dataview.language.spans import TimeSpan

# A list in a list in a list is read as deep as this; below it there is nothing.
DEEPEST_VALUE = 8
_BETWEEN_WORDS = re.compile(r"\s+")
_NOT_IN_NAMES = re.compile(r"[^\w-]")
_SORTED_BY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLink:
    """A link: the path of a note of the vault, or what was written where there is no such note."""

    path: str
    subpath: str = ""
    shown: str = ""

    def order(self) -> tuple[object, ...]:
        return ("link", self.path.casefold(), self.path, self.subpath)

    def told(self) -> str:
        target = self.path.removesuffix(".md") + self.subpath
        return f"[[{target}|{self.shown}]]" if self.shown and self.shown != target else f"[[{target}]]"


class FieldRecord(ABC):
    """Something with fields that are found when they are asked for: a note, its file, a task."""

    @abstractmethod
    def find(self, name: str) -> "Value":
        """The field of a name; nothing where there is none."""
        ...

    @abstractmethod
    def place(self) -> tuple[str, int]:
        """Where it stands: a path, and a line."""
        ...

    def order(self) -> tuple[object, ...]:
        return ("object", *self.place())

    @abstractmethod
    def told(self) -> str:
        """What stands for it where a text is wanted."""
        ...


Value = (
    None
    | bool
    | int
    | float
    | str
    | datetime
    | TimeSpan
    | QueryLink
    | FieldRecord
    | tuple["Value", ...]
    | Mapping[str, "Value"]
)
OrderKey = tuple[object, ...]


def fold_name(name: str) -> str:
    """A field's name as queries may write it: in small letters, with ``-`` for blanks."""
    return _NOT_IN_NAMES.sub("", _BETWEEN_WORDS.sub("-", name.strip().lower()))


def find_field(fields: Mapping[str, "Value"], name: str) -> "Value":
    """The field of a name as it is written, else of one that folds to the same."""
    if name in fields:
        return fields[name]
    wanted = fold_name(name)
    return next((value for key, value in fields.items() if fold_name(key) == wanted), None)


def type_of(value: Value) -> str:
    """The name of a value's type."""
    # A bool is an int to Python, so it is asked for first.
    for kinds, name in _TYPES:
        if isinstance(value, kinds):
            return name
    return "object"


_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "string"),
    (datetime, "date"),
    (TimeSpan, "duration"),
    (QueryLink, "link"),
    (tuple, "array"),
)


def order_key(value: Value, *, cut: int | None = None) -> OrderKey:
    """What a value is compared by: values of two types by the names of those, texts in any case before their case."""
    match value:
        case None:
            return ()
        case bool() | int() | float() | datetime():
            return (type_of(value), value)
        case str():
            return ("string", value[:cut].casefold(), value[:cut])
        case TimeSpan():
            return ("duration", value.length)
        case QueryLink() | FieldRecord():
            return value.order()
        case tuple():
            return ("array", *(order_key(item, cut=cut) for item in value[:cut]))
        case _:
            pairs = sorted(value.items())[:cut]
            return ("object", *((key, order_key(item, cut=cut)) for key, item in pairs))


def sort_key(value: Value) -> OrderKey:
    """The same, of the beginnings of texts and lists: rows are sorted by what people see of them."""
    return order_key(value, cut=_SORTED_BY)


def is_true(value: Value) -> bool:
    """Whether a value is something: not nothing, false, zero or empty."""
    if isinstance(value, TimeSpan):
        return value.length != 0
    if isinstance(value, FieldRecord | QueryLink | datetime):
        return True
    return bool(value)


def tell_value(value: Value, *, inner: bool = False) -> str:
    """A value as text on one line."""
    match value:
        case None:
            return "-"
        case bool() | int() | float():
            return _tell_number(value)
        case str():
            return " ".join(value.split())
        case datetime():
            return _tell_date(value)
        case TimeSpan() | QueryLink() | FieldRecord():
            return value.told()
        case tuple():
            told = ", ".join(tell_value(item, inner=True) for item in value)
            return f"[{told}]" if inner else told
        case _:
            return "{" + ", ".join(f"{key}: {tell_value(item, inner=True)}" for key, item in value.items()) + "}"


def _tell_number(number: float) -> str:
    return str(number).lower() if isinstance(number, int) else f"{number:.12g}"  # a bool is an int: true, false


def _tell_date(moment: datetime) -> str:
    if moment.hour == moment.minute == moment.second == 0:
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="seconds" if moment.second else "minutes")


def weigh_value(value: Value) -> int:
    """About how many letters working with a value is worth; an item of a list is a step of its own."""
    match value:
        case str():
            return len(value)
        case tuple():
            return sum(LETTERS_OF_A_STEP + weigh_value(item) for item in value)
        case Mapping():
            return sum(LETTERS_OF_A_STEP + len(key) + weigh_value(item) for key, item in value.items())
        case _:
            return 1
