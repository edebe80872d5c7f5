"""Rows as markdown, within bounds; what is left out is counted."""

from tests.unit.sources.dataview.sample_vault import ask, rows

from lamella.sources.dataview.results import MAX_CELL_CHARS, MAX_RESULT_CHARS, MOST_ROWS


def test_rows_beyond_the_bound_are_counted_and_not_shown() -> None:
    many = {f"{number:04}.md": "- [ ] a" for number in range(MOST_ROWS + 2)}
    for query in ("LIST", "TABLE file.name", "TASK"):
        told = ask(query, many).text
        assert told.startswith(f"{MOST_ROWS + 2} rows")
        assert told.endswith("\n… and 2 more rows, left out here")


def test_result_length_is_limited() -> None:
    long = {f"{number:03}.md": f"x:: {'y' * 400}" for number in range(200)}
    told = ask("LIST x", long).text
    assert MAX_RESULT_CHARS - 500 < len(told) < MAX_RESULT_CHARS + 100
    assert told.endswith("more rows, left out here")


def test_cell_is_one_line_and_is_cut() -> None:
    text = {"a.md": f"---\nx: |-\n  one\n  two\ny: {'z' * 600}\n---\n"}
    assert rows("TABLE WITHOUT ID x, y", text)[2] == f"| one two | {'z' * MAX_CELL_CHARS}… |"


def test_table_cell_cannot_break_row() -> None:
    found = rows("TABLE x", {"a|b.md": 'x:: "1 | 2"\n'})
    assert found[2] == "| [[a\\|b]] | 1 \\| 2 |"
