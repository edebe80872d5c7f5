"""Rows: clauses work in the order they are written, and ties stay by path."""

import pytest
from tests.unit.sources.dataview.sample_vault import TextFiles, rows

from lamella.sources.dataview.notes import VaultNotes
from lamella.sources.dataview.queries import parse_query
from lamella.sources.dataview.results import DataviewCache, QueryRun, select_rows
from lamella.sources.dataview.values import QueryBudget, QueryError

TIES = {"b.md": "n:: 1", "a.md": "n:: 1", "c.md": "n:: 0"}


def select(query: str, *, steps: int = 1_000) -> list[str]:
    run = QueryRun(
        notes=VaultNotes(TextFiles(TIES), DataviewCache().parsed_notes), path="a.md", budget=QueryBudget(steps)
    )
    return [row.position()[0] for row in select_rows(parse_query(query, None), run)]


def test_ties_are_ordered_by_path_in_both_directions() -> None:
    assert select("LIST SORT n") == ["c.md", "a.md", "b.md"]
    assert select("LIST SORT n DESC") == ["a.md", "b.md", "c.md"]


def test_later_sort_keeps_the_order_of_an_earlier_one_among_equals() -> None:
    assert select("LIST SORT file.name DESC SORT n") == ["c.md", "b.md", "a.md"]
    assert select("LIST SORT n, file.name DESC") == ["c.md", "b.md", "a.md"]


def test_query_exceeding_step_budget_is_refused() -> None:
    with pytest.raises(QueryError, match="more than 10 steps"):
        select("LIST WHERE n + n + n + n = 4", steps=10)


def test_values_of_all_types_have_one_order() -> None:
    mixed = {
        f"{number}.md": f"x:: {value}"
        for number, value in enumerate(("text", "5", "true", "2026-01-01", "[[a]]", "1 day", '"a", "b"', ""))
    }
    order = ["7", "6", "2", "3", "5", "4", "1", "0"]
    assert rows("LIST WITHOUT ID file.name SORT x", mixed) == [f"- {name}" for name in order]
