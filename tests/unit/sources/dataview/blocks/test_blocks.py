"""Queries in a note: each block stays, its result follows it, and no result can close its block."""

import pytest
from tests.unit.sources.dataview.sample_vault import open_answers

from lamella.sources.dataview.blocks import MOST_BLOCKS, expand_queries
from lamella.sources.dataview.results import QueryAnswer


def expand(text: str) -> str:
    return expand_queries(text, lambda query: open_answers().answer(query, path="Home.md"))


def echo(text: str) -> str:
    return expand_queries(text, lambda query: QueryAnswer(text=f"<{query}>"))


def test_query_result_follows_its_block() -> None:
    assert expand("Read:\n```dataview\nLIST FROM #person\n```\nmore") == (
        "Read:\n```dataview\nLIST FROM #person\n```\n\n```dataview-result\n1 row\n- [[People/Frank Herbert]]\n```\nmore"
    )


def test_unsupported_query_says_why() -> None:
    found = expand("```dataview\nLIST\nGROUP BY a\n```")
    assert found.endswith("\n```dataview-result\nNot run: GROUP BY is not read here (line 2, column 1).\n```")
    assert "Not run: DataviewJS is a program." in expand("```dataviewjs\ndv.list()\n```")


@pytest.mark.parametrize(
    "text",
    [
        "no query, and the word dataview",
        "```python\n# dataview\n```",
        "````markdown\n```dataview\nLIST\n```\n````",
        "    ```dataview\n    LIST\n    ```",
        "`dataview`",
        "",
    ],
)
def test_note_without_a_query_is_the_very_same_text(text: str) -> None:
    assert expand(text) == text


def test_fences_of_any_length_and_kind_and_words_after_the_language_are_read() -> None:
    for opening, closing in (("~~~dataview", "~~~"), ("`````  Dataview x", "``````"), ("  ```dataview", " ```")):
        assert f"{closing}\n\n{opening[:2] if opening[0] == ' ' else ''}```dataview-result" in echo(
            f"{opening}\nLIST\n{closing}"
        )


def test_query_in_quotation_is_answered_in_it() -> None:
    assert echo("> ```dataview\n> LIST\n>LIMIT 1\n> ```\nout") == (
        "> ```dataview\n> LIST\n>LIMIT 1\n> ```\n>\n> ```dataview-result\n> <LIST\n> LIMIT 1>\n> ```\nout"
    )


def test_unclosed_query_block_is_not_run() -> None:
    assert echo("```dataview\nLIST").endswith("Not run: the block has no end.\n```")


def test_inline_queries_are_counted_once_and_kept() -> None:
    found = echo("a `= this.x` b `$= 1`\n```\n`= no`\n```\nc `= x`\nd `x = 1`")
    assert found.count("```dataview-result") == 1
    assert found.endswith("\n```dataview-result\n3 queries within lines, left as text.\n```")
    assert "1 query within lines" in echo("`= this.file.name`")


def test_result_cannot_close_its_block() -> None:
    told = "1 row\n- ```\n# Heading"
    found = expand_queries("```dataview\nLIST\n```", lambda _: QueryAnswer(text=told))
    assert found.endswith(f"\n````dataview-result\n{told}\n````")


def test_queries_per_note_are_limited() -> None:
    found = echo("```dataview\nLIST\n```\n" * (MOST_BLOCKS + 2))
    assert found.count("<LIST>") == MOST_BLOCKS
    assert found.count(f"Not run: the note has more than {MOST_BLOCKS} queries.") == 2
