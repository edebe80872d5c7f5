"""Expressions: what stands in a condition, a column or a sort, each with the value it has for a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lamella.adapters.sources.dataview.language.allowance import Allowance
from lamella.adapters.sources.dataview.language.functions import QueryFunction
from lamella.adapters.sources.dataview.language.operators import combine, is_number, negate
from lamella.adapters.sources.dataview.language.values import FieldRecord, QueryLink, Value, find_field, is_true


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an expression may ask: a row, the note that the query stands in, where links lead, what is allowed."""

    row: FieldRecord
    this: FieldRecord | None
    resolve: Callable[[str], str]
    allowance: Allowance


class Expression(Protocol):
    """What has a value for every row."""

    def value(self, scope: Scope) -> Value: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same for every row."""

    of: Value

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return self.of


@dataclass(frozen=True, slots=True)
class LinkConstant:
    """A link that the query writes: the note that it leads to from where the query stands."""

    target: str
    subpath: str
    shown: str

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return QueryLink(path=scope.resolve(self.target), subpath=self.subpath, shown=self.shown)


@dataclass(frozen=True, slots=True)
class FieldName:
    """A field of the row; ``this`` is the note that the query stands in, and ``row`` the row itself."""

    name: str

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        if self.name == "this":
            return scope.this
        return scope.row if self.name == "row" else scope.row.find(self.name)


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Fields of fields, and items of lists: ``file.name``, ``row["a b"]``, ``authors[0]``."""

    of: Expression
    steps: tuple[Expression, ...]

    def value(self, scope: Scope) -> Value:
        found = self.of.value(scope)
        for step in self.steps:
            found = take(found, step.value(scope), scope.allowance)
        return found


def take(value: Value, at: Value, allowance: Allowance) -> Value:
    """A field or an item; of a list, by name, that field of each of its items."""
    allowance.spend()
    if is_number(at):
        return value[int(at)] if isinstance(value, tuple | str) and -1 < at < len(value) else None
    if not isinstance(at, str):
        return None
    if isinstance(value, tuple):
        found = (take(item, at, allowance) for item in value)
        # Of lists of lists one is made, as whoever asks for the tags of tasks wants them.
        return tuple(item for one in found for item in (one if isinstance(one, tuple) else (one,)))
    if isinstance(value, FieldRecord):
        return value.find(at)
    return find_field(value, at) if isinstance(value, Mapping) else None


@dataclass(frozen=True, slots=True)
class Inversion:
    """True where another is not."""

    of: Expression

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return not is_true(self.of.value(scope))


@dataclass(frozen=True, slots=True)
class Minus:
    """A number or a span with its sign turned round."""

    of: Expression

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return negate(self.of.value(scope))


@dataclass(frozen=True, slots=True)
class Chain:
    """Values with signs between them, taken from the left. It is as flat as it is written, however long."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]

    def value(self, scope: Scope) -> Value:
        found = self.first.value(scope)
        for sign, other in self.rest:
            if sign in ("and", "or") and is_true(found) is (sign == "or"):
                found = sign == "or"
                continue
            found = combine(sign, found, other.value(scope), allowance=scope.allowance)
        return found


@dataclass(frozen=True, slots=True)
class ListOf:
    """Several values as one."""

    items: tuple[Expression, ...]

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return tuple(item.value(scope) for item in self.items)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function with its arguments."""

    function: QueryFunction
    arguments: tuple[Expression, ...]

    def value(self, scope: Scope) -> Value:
        scope.allowance.spend()
        return self.function.call([one.value(scope) for one in self.arguments], scope.allowance)
