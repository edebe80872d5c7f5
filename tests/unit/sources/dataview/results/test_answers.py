"""A table of queries with their results over a small vault; refusals, dates, and caching between turns."""

from datetime import date

import pytest
from tests.unit.sources.dataview.sample_vault import BOOKS, TextFiles, ask, open_answers, rows

from lamella.sources.dataview.results import DataviewCache, DataviewEngine

D, E, U = "- [[Books/Dune]]", "- [[Books/Emma]]", "- [[Books/Unread/Ulysses]]"
H, P, N = "- [[Home]]", "- [[People/Frank Herbert]]", "- [[daily/2026-11-15]]"
EVERY = [D, E, U, H, P, N]

# fmt: off
LISTED = {
    "LIST": EVERY,
    "list": EVERY,
    "LIST FROM #book": [D, E, U],
    "LIST FROM #BOOK/SciFi": [D],
    "LIST FROM #boo": [],
    'LIST FROM "Books"': [D, E, U],
    'LIST FROM "Books/"': [D, E, U],
    'LIST FROM "Books/Unread"': [U],
    'LIST FROM "Books/Emma"': [E],
    'LIST FROM "Books/Emma.md"': [E],
    'LIST FROM "Boo"': [],
    'LIST FROM ""': EVERY,
    "LIST FROM [[Dune]]": [E, P, N],
    "LIST FROM [[]]": [],
    "LIST FROM outgoing([[2026-11-15]])": [D, E],
    "LIST FROM outgoing([[]])": [E],
    "LIST FROM outgoing([[Nobody]])": [],
    "LIST FROM -#book": [H, P, N],
    "LIST FROM !#book": [H, P, N],
    "LIST FROM not #book": [H, P, N],
    'LIST FROM #book and -"Books/Unread"': [D, E],
    'LIST FROM #person or (#book and "Books/Unread")': [U, P],
    'LIST FROM #person or #book and "Books/Unread"': [U],
    'LIST FROM #person | "Home"': [H, P],
    "LIST WHERE rating": [D, E],
    "LIST WHERE !rating": [U, H, P, N],
    "LIST WHERE not rating": [U, H, P, N],
    "LIST WHERE rating = 5": [D],
    "LIST WHERE rating != 5": [E, U, H, P, N],
    "LIST WHERE rating > 4": [D],
    "LIST WHERE rating >= 4": [D, E],
    "LIST WHERE rating < 5": [E, U, H, P, N],
    "LIST WHERE rating and rating < 5": [E],
    "LIST WHERE rating <= 4 & pages": [E, U],
    "LIST WHERE pages + 1 = 413": [D],
    "LIST WHERE pages - 12 = 100 * 4": [D],
    "LIST WHERE pages / 2 = 160": [E],
    "LIST WHERE pages % 100 = 12": [D],
    "LIST WHERE pages and -pages < -700": [U],
    "LIST WHERE (pages > 400 and rating) or file.name = \"Home\"": [D, H],
    "LIST WHERE author = [[Frank Herbert]]": [D],
    "LIST WHERE author": [D],
    "LIST WHERE read < date(2026-04-01) and read": [D],
    "LIST WHERE read + dur(1 month) = date(2026-04-01)": [D],
    "LIST WHERE read - date(2026-02-01) = dur(28 days)": [D],
    "LIST WHERE died-on > date(1986-01)": [P],
    'LIST WHERE row["Died On"]': [P],
    "LIST WHERE born": [P],
    'LIST WHERE contains(file.name, "m")': [E, H],
    'LIST WHERE icontains(file.name, "UN")': [D],
    'LIST WHERE econtains(file.tags, "#book")': [D, E, U],
    'LIST WHERE econtains(file.etags, "#book")': [E, U],
    'LIST WHERE startswith(file.name, "U")': [U],
    'LIST WHERE endswith(file.path, "a.md")': [E],
    "LIST WHERE length(file.tasks) = 3": [D],
    'LIST WHERE lower(file.name) = "emma"': [E],
    'LIST WHERE upper(file.name) = "EMMA"': [E],
    "LIST WHERE contains(file.outlinks, [[Emma]])": [H, N],
    "LIST WHERE contains(file.inlinks, this.file.link)": [E],
    "LIST WHERE file.day = date(today)": [N],
    "LIST WHERE file.aliases": [E],
    'LIST WHERE file.folder = ""': [H],
    'LIST WHERE contains(file.tasks.text, "call")': [N],
    "LIST WHERE file.tasks[0].due": [D],
    "LIST LIMIT 2": [D, E],
    "LIST LIMIT 0": [],
    "LIST SORT file.name": [N, D, E, P, H, U],
    "LIST SORT file.name DESC": [U, H, P, E, D, N],
    "LIST SORT rating": [U, H, P, N, E, D],
    "LIST SORT rating DESC": [D, E, U, H, P, N],
    "LIST SORT rating ascending, file.name descending": [U, H, P, N, E, D],
    "LIST LIMIT 2 SORT file.name DESC": [E, D],
    "LIST SORT file.name DESC LIMIT 2": [U, H],
    "LIST LIMIT 3 WHERE rating": [D, E],
    "LIST\n// what was read\nWHERE rating\nWHERE rating = 4": [E],
    "LIST WITHOUT ID file.name LIMIT 1": ["- Dune"],
    "LIST WITHOUT ID LIMIT 1": [D],
    "LIST rating FROM #book": [f"{D}: 5", f"{E}: 4", f"{U}: -"],
    'LIST "has " + pages + " pages" FROM "Books/Emma"': [f"{E}: has 320 pages"],
    "LIST [1, \"a\", true, null] LIMIT 1": [f"{D}: 1, a, true, -"],
    "LIST author FROM #book/scifi": [f"{D}: [[People/Frank Herbert]]"],
    "LIST file.size LIMIT 1": [f"{D}: {len(BOOKS['Books/Dune.md'])}"],
    "LIST file.mtime LIMIT 1": [f"{D}: 2023-11-14 22:13:20"],
    "LIST this.file.name LIMIT 1": [f"{D}: Home"],
}
TABLES = {
    'TABLE rating AS "Stars", pages AS Length FROM #book': [
        "| File | Stars | Length |", "| --- | --- | --- |", "| [[Books/Dune]] | 5 | 412 |",
        "| [[Books/Emma]] | 4 | 320 |", "| [[Books/Unread/Ulysses]] | - | 732 |",
    ],
    "TABLE WITHOUT ID file.name,  pages *\n 2 FROM #book/scifi": [
        "| file.name | pages * 2 |", "| --- | --- |", "| Dune | 824 |",
    ],
    'TABLE FROM "Home"': ["| File |", "| --- |", "| [[Home]] |"],
    "TABLE pages FROM #nothing": [],
    'TABLE "a|b" FROM "Home"': ["| File | \"a\\|b\" |", "| --- | --- |", "| [[Home]] | a\\|b |"],
}
TASKS = {
    "TASK": [
        "[[Books/Dune]]", "- [ ] Lend it to Jo [due:: 2026-11-20]", "- [x] Find it", "- [x] Buy it ✅ 2026-01-02",
        "[[daily/2026-11-15]]", "- [ ] call #phone", "- [/] think 📅 2026-11-16",
    ],
    "TASK WHERE completed": ["[[Books/Dune]]", "- [x] Find it", "- [x] Buy it ✅ 2026-01-02"],
    "TASK WHERE completion": ["[[Books/Dune]]", "- [x] Buy it ✅ 2026-01-02"],
    'TASK WHERE status = "/"': ["[[daily/2026-11-15]]", "- [/] think 📅 2026-11-16"],
    "TASK WHERE due and due <= date(tomorrow)": ["[[daily/2026-11-15]]", "- [/] think 📅 2026-11-16"],
    "TASK WHERE contains(tags, \"#phone\")": ["[[daily/2026-11-15]]", "- [ ] call #phone"],
    "TASK WHERE rating = 5 AND !completed": ["[[Books/Dune]]", "- [ ] Lend it to Jo [due:: 2026-11-20]"],
    'TASK FROM "daily" SORT text DESC LIMIT 1': ["[[daily/2026-11-15]]", "- [/] think 📅 2026-11-16"],
    "TASK WHERE due SORT due ASC": [
        "[[daily/2026-11-15]]", "- [/] think 📅 2026-11-16", "[[Books/Dune]]", "- [ ] Lend it to Jo [due:: 2026-11-20]",
    ],
    "TASK WHERE children": ["[[Books/Dune]]", "- [ ] Lend it to Jo [due:: 2026-11-20]"],
    "TASK WHERE fullyCompleted SORT line DESC LIMIT 1": ["[[Books/Dune]]", "- [x] Buy it ✅ 2026-01-02"],
}
REFUSED = {
    "": "empty",
    "FROM #a": "begins with LIST, TABLE or TASK (line 1, column 1)",
    "LIST GROUP BY rating": "GROUP BY is not read here (line 1, column 6)",
    "LIST\n FLATTEN pages": "FLATTEN is not read here (line 2, column 2)",
    "CALENDAR file.day": "CALENDAR",
    "LIST WHERE": "a value is missing (line 1, column 11)",
    "LIST WHERE a = ": "a value is missing",
    "LIST WHERE (a": "')' is missing",
    "LIST WHERE a b": "there is 'b'",
    "LIST FROM": "FROM takes",
    "LIST FROM #a #b": "there is 'b'",
    "LIST FROM csv(\"a\")": "FROM takes",
    "LIST FROM outgoing(#a)": "takes a link",
    "LIST WHERE a FROM #b": "FROM stands once",
    "LIST LIMIT a": "whole number",
    "LIST LIMIT 1.5": "whole number",
    "LIST LIMIT -1": "whole number",
    "LIST WITHOUT x": "followed by ID",
    "TABLE a AS 5": "followed by a name",
    "LIST WHERE file.ctime": "file.ctime is not known here",
    "LIST WHERE regexmatch(a, b)": "regexmatch is not known here",
    "LIST WHERE contains(a)": "takes 2 arguments and has 1",
    "LIST WHERE any(map(a, (x) => x))": "map is not known",
    "LIST WHERE any((x) => x)": "not read here",
    "LIST {a: 1}": "objects are not read here",
    'LIST WHERE a = "b': "is no part of a query (line 1, column 16)",
    "LIST WHERE date(2026-13-01)": "is no date",
    "LIST WHERE dur(3 parsecs)": "no span of time",
    "LIST WHERE date(now) > a": "the time of day is not told",
}
# fmt: on


@pytest.mark.parametrize("query", [*LISTED, *TABLES, *TASKS])
def test_query_gives_expected_rows(query: str) -> None:
    assert rows(query) == (LISTED | TABLES | TASKS)[query]


@pytest.mark.parametrize("query", REFUSED)
def test_unsupported_query_is_refused_with_reason(query: str) -> None:
    answer = ask(query)
    assert REFUSED[query] in answer.error
    assert answer.text == ""


def test_result_starts_with_row_count() -> None:
    assert ask("LIST FROM #person").text.startswith("1 row\n")
    assert ask("LIST").text.startswith("6 rows\n")
    assert ask("LIST FROM #nothing").text == "0 rows"


def test_result_names_day_given_by_caller() -> None:
    query = "TASK WHERE due < date(today)"
    assert ask(query).text.split("\n")[0] == "3 rows, asked on 2026-11-15"
    refused = open_answers(today=None).answer(query, path="Home.md").error
    assert refused == "no day is known that date(today) could mean; write one out (line 1, column 18)."
    assert open_answers(today=None).answer("LIST", path="Home.md").text == ask("LIST").text


def test_query_in_no_note_of_the_vault_has_no_this() -> None:
    assert rows("LIST this.file.name LIMIT 1", path="nowhere.md") == [f"{D}: -"]


def test_unreadable_note_is_reported_where_searched() -> None:
    broken = BOOKS | {"Books/Broken.md": "\x00"}
    assert rows('LIST FROM "daily"', broken) == [N]
    assert rows("LIST FROM #person", broken) == [P, "Not searched: Books/Broken.md is not UTF-8."]
    many = BOOKS | {f"z{number}.md": "\x00" for number in range(5)}
    assert rows("LIST FROM #person", many)[-1].endswith("z2.md is not UTF-8. And 2 more.")


def test_unreadable_note_of_one_query_is_not_reported_by_next() -> None:
    desk = open_answers(BOOKS | {"Books/Broken.md": "\x00"})
    desk.answer("LIST", path="Home.md")
    assert desk.answer('LIST FROM "daily"', path="Home.md").text == f"1 row\n{N}"


def test_results_and_notes_are_cached_until_file_changes() -> None:
    files, memory = TextFiles(), DataviewCache()
    first = DataviewEngine(files, memory).answer("LIST rating FROM #book", path="Home.md")
    read = len(files.reads)
    assert DataviewEngine(files, memory).answer("LIST rating FROM #book", path="Home.md") is first
    assert len(files.reads) == read == len(BOOKS)
    files.texts["Books/Emma.md"] = files.texts["Books/Emma.md"].replace("rating: 4", "rating: 3.5")
    files.times["Books/Emma.md"] = 1_800_000_000_000_000_000
    assert f"{E}: 3.5" in DataviewEngine(files, memory).answer("LIST rating FROM #book", path="Home.md").text
    assert files.reads[read:] == ["Books/Emma.md"]


def test_unsettled_files_are_not_cached() -> None:
    files, memory = TextFiles(), DataviewCache()
    files.is_settled = False
    for rating in (4, 3):
        files.texts["Books/Emma.md"] = BOOKS["Books/Emma.md"].replace("rating: 4", f"rating: {rating}")
        assert f"{E}: {rating}" in DataviewEngine(files, memory).answer("LIST rating FROM #book", path="Home.md").text


def test_unreadable_folder_is_reported_where_searched() -> None:
    files = TextFiles()
    files.left_out = ["attic cannot be read."]
    desk = DataviewEngine(files, DataviewCache())
    assert desk.answer("LIST FROM #person", path="Home.md").text.endswith("\nNot searched: attic cannot be read.")
    assert "attic" not in desk.answer('LIST FROM "Books"', path="Home.md").text


def test_one_moment_is_one_state_of_the_vault() -> None:
    files = TextFiles()
    desk = DataviewEngine(files, DataviewCache())
    before = desk.answer("LIST", path="Home.md")
    files.texts["new.md"] = "new"
    assert desk.answer("LIST ", path="Home.md").text == before.text


def test_other_day_gives_other_answer() -> None:
    files, memory = TextFiles(), DataviewCache()
    query = "TASK WHERE due = date(today)"
    assert "think" in DataviewEngine(files, memory, lambda: date(2026, 11, 16)).answer(query, path="a").text
    assert "Lend" in DataviewEngine(files, memory, lambda: date(2026, 11, 20)).answer(query, path="a").text
