"""Ranking notes for a question: names before headings before text, rare words before common ones."""

from hypothesis import given
from hypothesis import strategies as st

from lamella.core.search.search import rank_texts

NOTES = (
    ("garden.md", "# Beans\n\nThey climb the fence. Water them."),
    ("tides.md", "# Times\n\nLow tide is at 14:10. Water is cold."),
    ("list.md", "Milk, beans and water."),
)


def rank(question: str) -> list[str]:
    return list(rank_texts(question, NOTES, key=str.casefold))


def test_the_name_of_a_note_counts_more_than_its_headings_and_those_more_than_its_text() -> None:
    assert rank("What of the tides?")[0] == "tides.md"
    assert rank("How are the BEANS?")[:2] == ["garden.md", "list.md"]


def test_a_word_that_every_note_has_says_less_than_one_that_few_have() -> None:
    assert rank("water and milk")[0] == "list.md"


def test_without_a_word_of_the_question_the_notes_stay_in_their_order() -> None:
    assert rank("") == rank("zebra") == [path for path, _ in NOTES]


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=5))
def test_whatever_is_asked_every_note_is_ranked_once(question: str, notes: dict[str, str]) -> None:
    assert sorted(rank_texts(question, list(notes.items()), key=str.casefold)) == sorted(notes)
