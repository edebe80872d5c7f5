"""Queries: their kind, their columns with names, and their clauses in the order written."""

from datetime import date

from lamella.sources.dataview.queries import (
    AllNotes,
    LimitClause,
    QueryKind,
    SortClause,
    TagOrigin,
    WhereClause,
    parse_query,
)


def test_query_is_read_whole() -> None:
    query = parse_query('table without id a as "A b", length( b ) , c AS d from #x where a sort b desc limit 3', None)
    assert (query.kind, query.has_link_column, query.depends_on_today) == (QueryKind.TABLE, False, False)
    assert [column.name for column in query.columns] == ["A b", "length( b )", "d"]
    assert query.origin == TagOrigin("x")
    assert [type(clause) for clause in query.clauses] == [WhereClause, SortClause, LimitClause]


def test_query_may_be_one_word() -> None:
    query = parse_query(" task ", None)
    assert (query.kind, query.columns, query.clauses, query.origin) == (QueryKind.TASK, (), (), AllNotes())


def test_clauses_may_repeat_in_any_order() -> None:
    query = parse_query("LIST LIMIT 5 WHERE a SORT b, c DESC, d ASC LIMIT 2", date(2026, 1, 1))
    assert [type(clause) for clause in query.clauses] == [LimitClause, WhereClause, SortClause, LimitClause]
    (sort,) = [clause for clause in query.clauses if isinstance(clause, SortClause)]
    assert [is_down for _, is_down in sort.keys] == [False, True, False]


def test_query_naming_today_depends_on_it() -> None:
    assert parse_query("LIST WHERE a < date(today)", date(2026, 1, 1)).depends_on_today
