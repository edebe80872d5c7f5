"""The page on Dataview names every function, field and bound of the language, with their true values."""

from tests.contracts.places import doc
from tests.contracts.tables import names, rows

from lamella.adapters.sources.dataview.blocks import MOST_BLOCKS
from lamella.adapters.sources.dataview.language.allowance import MOST_STEPS
from lamella.adapters.sources.dataview.language.functions import FUNCTIONS
from lamella.adapters.sources.dataview.language.parsing import DEEPEST, FILE_FIELDS
from lamella.adapters.sources.dataview.language.spans import DAY_WORDS
from lamella.adapters.sources.dataview.language.tokens import LONGEST_QUERY, MOST_TOKENS
from lamella.adapters.sources.dataview.rendering import MOST_IN_CELL, MOST_LETTERS, MOST_ROWS

PAGE = doc("sources.md")


def cell(under: str, name: str) -> str:
    """What a table under a heading says of something."""
    (found,) = [cells[1] for cells in rows(PAGE, under=under) if cells[0] == name]
    return found


def test_every_function_and_field_of_a_file_is_on_the_page_and_no_other() -> None:
    assert set(names_in(cell("Grammar", "function"))) == set(FUNCTIONS)
    assert set(names_in(cell("Grammar", "of a file"))) - {"date"} == {f"file.{name}" for name in FILE_FIELDS}


def names_in(text: str) -> list[str]:
    return names(f"| {text} |")


def test_every_short_word_for_a_day_is_on_the_page() -> None:
    assert [
        word for word in DAY_WORDS if "-" not in word and f"`{word}`" not in PAGE.replace("date(today)", "today")
    ] == []


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    assert cell("Bounds", "a query") == (
        f"{LONGEST_QUERY:,} characters, {MOST_TOKENS:,} words and signs, {DEEPEST} levels of nesting"
    )
    assert cell("Bounds", "its work").startswith(f"{MOST_STEPS:,} steps")
    assert cell("Bounds", "its answer").startswith(
        f"{MOST_ROWS} rows, {MOST_LETTERS:,} characters, {MOST_IN_CELL} in each cell"
    )
    assert cell("Bounds", "queries of a note") == str(MOST_BLOCKS)
