"""Expressions by themselves: what they ask for, and what they spend."""

import pytest

from lamella.adapters.sources.dataview.language.allowance import Allowance, QueryRefusal
from lamella.adapters.sources.dataview.language.expressions import Chain, Constant, Expression, FieldName, Scope, take
from lamella.adapters.sources.dataview.language.values import FieldRecord, Value


class Row(FieldRecord):
    def find(self, name: str) -> Value:
        return {"a": 1, "this": 5}.get(name)

    def place(self) -> tuple[str, int]:
        return ("a.md", 1)

    def told(self) -> str:
        return "a"


def scope(steps: int = 100) -> Scope:
    return Scope(row=Row(), this=None, resolve=str, allowance=Allowance(steps))


def test_names_mean_fields_but_this_and_row() -> None:
    here = scope()
    assert [FieldName(name).value(here) for name in ("a", "b", "this")] == [1, None, None]
    assert FieldName("row").value(here) is here.row


def test_what_is_decided_is_not_looked_at_further() -> None:
    class Never:
        def value(self, scope: Scope) -> Value:
            raise AssertionError(scope)

    never: Expression = Never()
    assert Chain(Constant(False), (("and", never), ("or", Constant(1)))).value(scope()) is True
    assert Chain(Constant(True), (("or", never),)).value(scope()) is True


def test_every_value_is_paid_for() -> None:
    with pytest.raises(QueryRefusal):
        Chain(Constant(1), tuple(("+", Constant(1)) for _ in range(100))).value(scope())


def test_a_field_of_a_list_is_that_of_each_item() -> None:
    allowance = Allowance()
    assert take(({"a": 1}, {"a": (2, 3)}, None), "a", allowance) == (1, 2, 3, None)
    assert take((1, 2), 1, allowance) == 2
    assert take((1, 2), (1,), allowance) is None
    assert take(None, "a", allowance) is None
