"""Fields on a line: values of every sort, cut between words, sources with whole addresses."""

import pytest

from lamella.core.workflow.fields import cut_text, list_sources, render_sources, tell_data, tell_source, tell_value


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
def test_a_value_is_told_on_one_line(value: object, told: str) -> None:
    assert tell_value(value) == told


def test_data_is_told_within_its_room_and_never_empty() -> None:
    assert tell_data({"a": "b", "references": ["r"]}, room=280) == "a: b"
    assert tell_data({}, room=280) == "(nothing was written down for this stage)"
    assert len(tell_data({"a": "word " * 100, "b": "more " * 100}, room=280, each=200)) <= 280


def test_every_field_has_its_share_where_not_all_of_it_fits() -> None:
    told = tell_data({"long": "word " * 100, "short": "all of it", "other": "more " * 100}, room=280)
    assert len(told) <= 280
    first, short, other = told.split(" · ")
    assert short == "short: all of it"
    assert abs(len(first) - len(other)) < 12
    assert len(told) > 240
    many = tell_data({f"field {number}": "word " * 20 for number in range(40)}, room=280)
    assert 200 < len(many) <= 280


def test_an_address_that_is_too_long_to_be_cut_stays_whole() -> None:
    url = "https://example.org/" + "x" * 100
    assert cut_text(f"{url} and more", 50) == f"{url} …"
    assert cut_text(url, 50) == url
    assert cut_text(f"[Doe]({url}) and more", 50) == f"[Doe]({url}) …"
    assert cut_text("後" * 30 + url, 50) == "後" * 30 + "…"
    assert cut_text("後" * 60 + url, 50) == "後" * 49 + "…"
    assert cut_text("some words here", 10) == "some…"


def test_sources_are_read_as_they_were_written() -> None:
    assert list_sources("Doe") == [{"text": "Doe"}]
    assert list_sources("https://x.org/a") == [{"url": "https://x.org/a"}]
    assert list_sources({"url": "u"}) == [{"url": "u"}]
    assert list_sources(["Doe", {"url": "u"}]) == [{"text": "Doe"}, {"url": "u"}]
    assert list_sources(None) == []
    assert list_sources(3) == []


def test_a_source_is_told_with_every_address_it_has() -> None:
    told = tell_source({"authors": "Doe", "title": "A", "year": 2020, "url": "https://x.org/a", "doi": "doi:10.1/2"})
    assert told == 'Doe, "A", (2020), https://x.org/a, doi:10.1/2'
    assert tell_source({"title": "A", "url": None, "doi": None}) == '"A"'
    assert tell_source({}) == "(nothing is known of it)"
    assert render_sources({"a": "b"}) == []
