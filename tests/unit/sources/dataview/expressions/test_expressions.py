"""Expressions by themselves: what they ask for, and what they spend."""

import pytest

from lamella.sources.dataview.expressions import (
    Constant,
    EvaluationScope,
    Expression,
    FieldReference,
    OperatorChain,
    get_item,
)
from lamella.sources.dataview.values import FieldRecord, QueryBudget, QueryError, Value


class Row(FieldRecord):
    def get(self, name: str) -> Value:
        return {"a": 1, "this": 5}.get(name)

    def position(self) -> tuple[str, int]:
        return ("a.md", 1)

    def display_text(self) -> str:
        return "a"


def scope(steps: int = 100) -> EvaluationScope:
    return EvaluationScope(row=Row(), this=None, resolve=str, budget=QueryBudget(steps))


def test_names_are_fields_except_this_and_row() -> None:
    here = scope()
    assert [FieldReference(name).evaluate(here) for name in ("a", "b", "this")] == [1, None, None]
    assert FieldReference("row").evaluate(here) is here.row


def test_operators_short_circuit() -> None:
    class Never:
        def evaluate(self, scope: EvaluationScope) -> Value:
            raise AssertionError(scope)

    never: Expression = Never()
    assert OperatorChain(Constant(False), (("and", never), ("or", Constant(1)))).evaluate(scope()) is True
    assert OperatorChain(Constant(True), (("or", never),)).evaluate(scope()) is True


def test_every_value_costs_steps() -> None:
    with pytest.raises(QueryError):
        OperatorChain(Constant(1), tuple(("+", Constant(1)) for _ in range(100))).evaluate(scope())


def test_field_of_a_list_is_that_of_each_item() -> None:
    allowance = QueryBudget()
    assert get_item(({"a": 1}, {"a": (2, 3)}, None), "a", allowance) == (1, 2, 3, None)
    assert get_item((1, 2), 1, allowance) == 2
    assert get_item((1, 2), (1,), allowance) is None
    assert get_item(None, "a", allowance) is None
