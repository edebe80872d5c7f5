"""Queries: filters are extracted, and the rest are words."""

from datetime import date

from lamella.retrieval.search import MAX_QUERY_CHARS, parse_vault_query

TODAY = date(2026, 11, 17)


def test_query_is_parsed_into_filters_and_words() -> None:
    asked = parse_vault_query(
        '[[My Note#Part|words]] #Project/Alpha path:"My Folder/" folder:daily "exact words" beans #12 last week',
        today=TODAY,
    )
    assert asked.links == ("my note",)
    assert asked.tags == ("project/alpha",)
    assert asked.folders == ("My Folder", "daily")
    assert asked.phrases == ("exact words",)
    assert asked.days is not None
    assert asked.words.split() == ["beans", "#12"]
    assert asked.has_filters


def test_plain_words_have_no_filters() -> None:
    asked = parse_vault_query("what of last week", today=None)
    assert not asked.has_filters
    assert asked.words == "what of last week"


def test_link_is_compared_in_any_case_and_unicode_form() -> None:
    asked = [parse_vault_query(text, today=None).links for text in ("[[CAFE\u0301]]", "[[/caf\u00e9.md]]")]
    assert asked[0] == asked[1] == ("caf\u00e9",)


def test_link_by_path_has_no_extension() -> None:
    assert parse_vault_query("[[folder/Note.md]]", today=TODAY).links == ("folder/note",)


def test_endless_query_is_cut() -> None:
    assert len(parse_vault_query("x" * (MAX_QUERY_CHARS * 3), today=TODAY).words) == MAX_QUERY_CHARS
