"""Properties of queries: any text is answered or refused, within limits; LIMIT and WHERE only remove rows."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sources.dataview.sample_vault import BOOKS, ask, open_answers, rows

from lamella.sources.dataview.blocks import RESULT_LANGUAGE, expand_queries
from lamella.sources.dataview.expressions import QUERY_FUNCTIONS
from lamella.sources.dataview.results import MAX_RESULT_CHARS, QueryAnswer

DESK = open_answers()
WORDS = st.sampled_from(
    (
        "LIST", "TABLE", "TASK", "FROM", "WHERE", "SORT", "LIMIT", "GROUP BY", "WITHOUT ID", "AS", "and", "or", "not",
        "DESC", "(", ")", "[", "]", ",", ".", "=", "!=", "<", ">", "+", "-", "*", "/", "%", "!", "#book", '"Books"',
        "[[Dune]]", "outgoing([[Home]])", "rating", "pages", "file.name", "file.tasks", "file", "this", "row", "due",
        "5", "0", "2.5", "null", "true", '"x"', "date(today)", "dur(1 day)", "date(2026-01-01)",
        *(f"{name}(" for name in QUERY_FUNCTIONS),
    )
)  # fmt: skip
QUERIES = st.one_of(
    st.text(max_size=200),
    st.lists(WORDS, max_size=25).map(" ".join),
    st.lists(WORDS, max_size=25).map(lambda words: "LIST WHERE " + " ".join(words)),
)
CONDITIONS = st.sampled_from(
    ("rating", "!rating", "pages > 350", 'contains(file.path, "o")', "file.tasks", "true", "null", "rating < pages")
)


@given(query=QUERIES, path=st.sampled_from((*BOOKS, "nowhere.md", "")))
def test_query_of_any_text_is_answered_or_refused_consistently(query: str, path: str) -> None:
    answer = DESK.answer(query, path=path)
    assert bool(answer.text) is not bool(answer.error)
    assert len(answer.text) <= MAX_RESULT_CHARS + 1_000
    assert open_answers().answer(query, path=path) == answer


@given(text=st.text(max_size=300))
def test_any_text_is_a_note_to_queries(text: str) -> None:
    found = ask("TABLE file.tags, file.tasks, file.outlinks, file.aliases, a, b", {"a.md": text}).text
    assert found.startswith("1 row\n")


@given(condition=CONDITIONS, limit=st.integers(0, 8))
def test_query_limit_and_condition_keep_order(condition: str, limit: int) -> None:
    every = rows("LIST")
    assert rows(f"LIST LIMIT {limit}") == every[:limit]
    chosen = rows(f"LIST WHERE {condition}")
    assert [row for row in every if row in chosen] == chosen
    assert rows(f"LIST WHERE !({condition})") == [row for row in every if row not in chosen]
    assert rows(f"LIST WHERE {condition} LIMIT {limit}") == chosen[:limit]


@given(first=CONDITIONS, second=CONDITIONS)
def test_two_conditions_equal_their_conjunction(first: str, second: str) -> None:
    assert rows(f"LIST WHERE {first} WHERE {second}") == rows(f"LIST WHERE ({first}) and ({second})")
    either = rows(f"LIST WHERE ({first}) or ({second})")
    assert set(either) == {*rows(f"LIST WHERE {first}"), *rows(f"LIST WHERE {second}")}


@given(key=st.sampled_from(("rating", "pages", "file.name", "author", "file.tags", "file.day", "nothing", "file")))
def test_sort_loses_nothing_and_keeps_ties_by_path(key: str) -> None:
    for order in ("", "DESC"):
        found = rows(f"LIST SORT {key} {order}")
        assert sorted(found) == sorted(rows("LIST"))
        assert found == rows(f"LIST SORT {key} {order} SORT {key} {order}")
    assert rows("LIST SORT nothing DESC") == rows("LIST")


@given(
    text=st.lists(
        st.sampled_from(("```", "````dataview", "```dataview", "~~~dataview", "> ", "LIST", "`= x`", "\n", "a"))
    ).map("".join)
)
def test_expanded_note_keeps_its_own_lines(text: str) -> None:
    found = iter(expand_queries(text, lambda _: QueryAnswer(text="1 row")).split("\n"))
    assert all(line in found for line in text.split("\n"))
    if RESULT_LANGUAGE not in expand_queries(text, lambda _: QueryAnswer(text="1 row")):
        assert expand_queries(text, lambda _: QueryAnswer(text="1 row")) == text


HOSTILE = {
    "deep brackets": "LIST WHERE " + "(" * 4_000 + "1" + ")" * 4_000,
    "deep lists": "LIST WHERE " + "[" * 4_000,
    "many signs": "LIST WHERE " + "!" * 9_000 + "a",
    "a megabyte": "LIST WHERE " + "a" * 1_000_000,
    "a megabyte of brackets": "(" * 1_000_000,
    "open texts": 'LIST WHERE "' + "\\" * 9_000,
    "many sorts": "LIST" + " SORT file.tasks, file.inlinks, file.outlinks DESC" * 100,
    "many conditions": "LIST" + " WHERE contains(this.file.inlinks, file.link) or true" * 60,
    "many tags": "LIST FROM " + " or ".join(["#a"] * 900),
    "large numbers": "LIST " + "9" * 30 + " * 9" * 400,
    "long lists": "LIST length([" + ", ".join(["file.tasks"] * 400) + "])",
    "texts that grow": "LIST " + " + ".join(["string(file.tasks)"] * 200),
    "types that do not fit": 'LIST WHERE date(2026-01-01) * "a" / [[b]] % [1] - dur(1 day) < null + true',
    "spans without end": "LIST date(2026-01-01) + dur(999999999 years) * 999999999",
}
CROWD = {f"{number:04}.md": f"[[0000]] n:: {number}\n" + "- [ ] a #b [x:: 1]\n" * 5 for number in range(200)}


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_query_over_many_notes_is_fast_and_never_crashes(query: str) -> None:
    desk = open_answers(CROWD)
    desk.answer("LIST FROM #b", path="0000.md")
    start = time.process_time()
    answer = desk.answer(query, path="0000.md")
    assert time.process_time() - start < 10
    assert bool(answer.text) is not bool(answer.error)
