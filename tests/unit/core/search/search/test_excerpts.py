"""Excerpts: a short text whole, of a long one the part where something was found."""

import pytest

from lamella.core.search.search import EXCERPT_CHARS, make_excerpt

FILL = "word " * 200


def cut(text: str, *spans: str, terms: tuple[str, ...] = ()) -> str:
    return make_excerpt(text, spans, terms)


def test_text_that_fits_is_its_own_excerpt() -> None:
    whole = "x" * EXCERPT_CHARS
    assert cut(whole) == whole
    assert cut(f"{whole}y") == f"{whole} …"


def test_long_text_without_match_shows_beginning() -> None:
    assert cut(FILL) == f"{FILL[:EXCERPT_CHARS].strip()} …"


def test_phrase_is_found_in_any_case_with_context() -> None:
    text = f"{FILL}The Needle. {FILL}"
    shown = cut(text, "needle")
    before, _, after = shown.partition("Needle")
    assert shown.startswith("… word ")
    assert shown.endswith(" …")
    assert 50 <= len(before) <= 62
    assert len(after) > 120


def test_first_phrase_present_determines_excerpt() -> None:
    text = f"{FILL}second {FILL}first {FILL}"
    assert "first" in cut(text, "absent", "first", "second")
    assert "second" not in cut(text, "absent", "first", "second")


def test_pattern_characters_are_literal() -> None:
    assert "a.*b" in cut(f"{FILL}axxb {FILL}a.*b {FILL}", "a.*b")


def test_place_with_most_distinct_terms_is_shown() -> None:
    text = f"red red red {FILL}Red and green {FILL}"
    assert "Red and green" in cut(text, terms=("red", "green"))
    assert cut(text, terms=("red",)).startswith("red red red word")


@pytest.mark.parametrize(("apart", "shown"), [(120, "green one"), (121, "green two"), (360, "green two")])
def test_terms_count_together_within_one_excerpt(apart: int, shown: str) -> None:
    far = "red ".ljust(apart, ".") + "green one"
    assert far.index("green") == apart
    assert shown in cut(f"{FILL}{far} {FILL}red green two {FILL}", terms=("red", "green"))


def test_distant_term_does_not_count() -> None:
    text = f"red {FILL}green one {FILL}red green two {FILL}"
    assert "green two" in cut(text, terms=("red", "green"))


def test_of_equal_places_the_first_is_shown() -> None:
    text = f"{FILL}red one {FILL}red two {FILL}"
    assert "red one" in cut(text, terms=("red",))


def test_end_of_text_is_shown_without_ellipsis() -> None:
    shown = cut(f"{FILL}needle", "needle")
    assert shown.startswith("… ")
    assert shown.endswith("needle")


def test_excerpt_starts_at_whole_word() -> None:
    assert cut(f"{FILL}needle {FILL}", "needle").startswith("… word")
    assert cut("x" * 500 + "needle" + "x" * 100 + " y" * 400, "needle").startswith(f"… {'x' * 60}needle")
    assert cut("x" * 500 + "needle" + "x" * 500, "needle") == f"… {'x' * 60}needle{'x' * 174} …"


def test_span_is_found_over_the_end_of_a_line() -> None:
    assert "the blue\n  needle" in cut(f"{FILL}the blue\n  needle {FILL}", "the blue needle")


def test_many_or_long_phrases_are_limited() -> None:
    text = FILL * 40
    assert cut(text, *(f"span {number}" for number in range(50_000)), "x" * 1_000_000).startswith("word")
