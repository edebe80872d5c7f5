"""Excerpts: a short text whole, of a long one the part where something was found."""

import pytest

from lamella.core.search.search import EXCERPT_CHARS, make_excerpt

FILL = "word " * 200


def cut(text: str, *spans: str, terms: tuple[str, ...] = ()) -> str:
    return make_excerpt(text, spans, terms)


def test_a_text_that_fits_is_its_own_excerpt_and_one_character_more_is_cut() -> None:
    whole = "x" * EXCERPT_CHARS
    assert cut(whole) == whole
    assert cut(f"{whole}y") == f"{whole} …"


def test_a_long_text_without_a_place_shows_its_beginning() -> None:
    assert cut(FILL) == f"{FILL[:EXCERPT_CHARS].strip()} …"


def test_a_span_is_found_in_any_case_and_shown_with_what_leads_to_it() -> None:
    text = f"{FILL}The Needle. {FILL}"
    shown = cut(text, "needle")
    before, _, after = shown.partition("Needle")
    assert shown.startswith("… word ")
    assert shown.endswith(" …")
    assert 50 <= len(before) <= 62
    assert len(after) > 120


def test_the_first_span_that_stands_in_the_text_gives_the_place() -> None:
    text = f"{FILL}second {FILL}first {FILL}"
    assert "first" in cut(text, "absent", "first", "second")
    assert "second" not in cut(text, "absent", "first", "second")


def test_marks_of_patterns_in_a_span_are_only_characters() -> None:
    assert "a.*b" in cut(f"{FILL}axxb {FILL}a.*b {FILL}", "a.*b")


def test_without_a_span_the_place_with_the_most_different_terms_is_shown() -> None:
    text = f"red red red {FILL}Red and green {FILL}"
    assert "Red and green" in cut(text, terms=("red", "green"))
    assert cut(text, terms=("red",)).startswith("red red red word")


@pytest.mark.parametrize(("apart", "shown"), [(120, "green one"), (121, "green two"), (360, "green two")])
def test_terms_count_together_where_an_excerpt_can_show_both_with_what_leads_to_them(apart: int, shown: str) -> None:
    far = "red ".ljust(apart, ".") + "green one"
    assert far.index("green") == apart
    assert shown in cut(f"{FILL}{far} {FILL}red green two {FILL}", terms=("red", "green"))


def test_a_term_that_is_far_behind_does_not_count_any_more() -> None:
    text = f"red {FILL}green one {FILL}red green two {FILL}"
    assert "green two" in cut(text, terms=("red", "green"))


def test_of_equal_places_the_first_is_shown() -> None:
    text = f"{FILL}red one {FILL}red two {FILL}"
    assert "red one" in cut(text, terms=("red",))


def test_the_end_of_a_text_is_shown_without_a_mark_after_it() -> None:
    shown = cut(f"{FILL}needle", "needle")
    assert shown.startswith("… ")
    assert shown.endswith("needle")


def test_an_excerpt_begins_with_a_whole_word_where_one_begins_soon() -> None:
    assert cut(f"{FILL}needle {FILL}", "needle").startswith("… word")
    assert cut("x" * 500 + "needle" + "x" * 100 + " y" * 400, "needle").startswith(f"… {'x' * 60}needle")
    assert cut("x" * 500 + "needle" + "x" * 500, "needle") == f"… {'x' * 60}needle{'x' * 174} …"


def test_a_span_is_found_over_the_end_of_a_line() -> None:
    assert "the blue\n  needle" in cut(f"{FILL}the blue\n  needle {FILL}", "the blue needle")


def test_of_very_many_or_very_long_spans_as_many_are_looked_for_as_can_be_shown() -> None:
    text = FILL * 40
    assert cut(text, *(f"span {number}" for number in range(50_000)), "x" * 1_000_000).startswith("word")
