"""An allowance is spent in steps, and what is over is refused with its number."""

import pytest

from lamella.sources.dataview.values import CHARS_PER_STEP, QueryBudget, QueryError


def test_budget_allows_exactly_its_steps() -> None:
    allowance = QueryBudget(3)
    allowance.spend()
    allowance.spend(2)
    with pytest.raises(QueryError, match="it takes more than 3 steps"):
        allowance.spend()


def test_long_text_costs_more_steps() -> None:
    QueryBudget(1).spend_for_text(CHARS_PER_STEP - 1)
    with pytest.raises(QueryError):
        QueryBudget(1).spend_for_text(CHARS_PER_STEP)
