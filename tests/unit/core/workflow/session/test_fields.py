"""Fields on a line: values of every sort, cut between words, sources with whole addresses."""

import pytest

from lamella.core.workflow.session import (
    format_field_value,
    format_source,
    format_stage_data,
    list_sources,
    render_sources,
    truncate_keeping_urls,
)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("two\n  lines", "two lines"),
        (3, "3"),
        (True, "yes"),
        (False, "no"),
        (["a", {"b": 1, "c": ["d"]}], "a; b: 1, c: d"),
        (None, ""),
        (["a", None, {"b": None, "c": 0}], "a; c: 0"),
    ],
)
def test_field_value_is_formatted_on_one_line(value: object, told: str) -> None:
    assert format_field_value(value) == told


def test_stage_data_is_formatted_within_limit() -> None:
    assert format_stage_data({"a": "b", "references": ["r"]}, max_chars=280) == "a: b"
    assert format_stage_data({}, max_chars=280) == "(nothing was written down for this stage)"
    assert len(format_stage_data({"a": "word " * 100, "b": "more " * 100}, max_chars=280, max_field_chars=200)) <= 280


def test_each_field_gets_a_share_of_limit() -> None:
    told = format_stage_data({"long": "word " * 100, "short": "all of it", "other": "more " * 100}, max_chars=280)
    assert len(told) <= 280
    first, short, other = told.split(" · ")
    assert short == "short: all of it"
    assert abs(len(first) - len(other)) < 12
    assert len(told) > 240
    many = format_stage_data({f"field {number}": "word " * 20 for number in range(40)}, max_chars=280)
    assert 200 < len(many) <= 280


def test_url_longer_than_limit_stays_whole() -> None:
    url = "https://example.org/" + "x" * 100
    assert truncate_keeping_urls(f"{url} and more", 50) == f"{url} …"
    assert truncate_keeping_urls(url, 50) == url
    assert truncate_keeping_urls(f"[Doe]({url}) and more", 50) == f"[Doe]({url}) …"
    assert truncate_keeping_urls("後" * 30 + url, 50) == "後" * 30 + "…"
    assert truncate_keeping_urls("後" * 60 + url, 50) == "後" * 49 + "…"
    assert truncate_keeping_urls("some words here", 10) == "some…"


def test_sources_are_parsed_as_written() -> None:
    assert list_sources("Doe") == [{"text": "Doe"}]
    assert list_sources("https://x.org/a") == [{"url": "https://x.org/a"}]
    assert list_sources({"url": "u"}) == [{"url": "u"}]
    assert list_sources(["Doe", {"url": "u"}]) == [{"text": "Doe"}, {"url": "u"}]
    assert list_sources(None) == []
    assert list_sources(3) == []


def test_source_is_formatted_with_every_address() -> None:
    told = format_source({"authors": "Doe", "title": "A", "year": 2020, "url": "https://x.org/a", "doi": "doi:10.1/2"})
    assert told == 'Doe, "A", (2020), https://x.org/a, doi:10.1/2'
    assert format_source({"title": "A", "url": None, "doi": None}) == '"A"'
    assert format_source({}) == "(nothing is known of it)"
    assert render_sources({"a": "b"}) == []
