"""Ranking notes for a question: names before headings before text, rare words before common ones."""

from hypothesis import given
from hypothesis import strategies as st

from lamella.core.search.search import rank_paths

NOTES = (
    ("garden.md", "# Beans\n\nThey climb the fence. Water them."),
    ("tides.md", "# Times\n\nLow tide is at 14:10. Water is cold."),
    ("list.md", "Milk, beans and water."),
)


def rank(question: str) -> list[str]:
    return list(rank_paths(question, NOTES, normalize=str.casefold))


def test_title_weighs_more_than_headings_and_text() -> None:
    assert rank("What of the tides?")[0] == "tides.md"
    assert rank("How are the BEANS?")[:2] == ["garden.md", "list.md"]


def test_word_in_every_note_weighs_less() -> None:
    assert rank("water and milk")[0] == "list.md"


def test_without_a_word_of_the_question_the_notes_stay_in_their_order() -> None:
    assert rank("") == rank("zebra") == [path for path, _ in NOTES]


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=5))
def test_every_note_is_ranked_once(question: str, notes: dict[str, str]) -> None:
    assert sorted(rank_paths(question, list(notes.items()), normalize=str.casefold)) == sorted(notes)
