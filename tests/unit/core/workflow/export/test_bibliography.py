"""The bibliography has each source once, with the best known data, under any of its addresses."""

import pytest
from tests.unit.core.workflow.working import Desk

from lamella.core.workflow.export import build_bibliography, normalize_url


def listed(*sources: object) -> list[str]:
    return build_bibliography(Desk().write(references=list(sources)).session)


def test_one_page_under_several_addresses_is_one_source() -> None:
    pages = ["https://X.org/a/?utm_source=b", "https://x.org/a#part", "https://x.org/a"]
    assert len(listed(*({"url": one, "title": "A"} for one in pages))) == 1
    assert normalize_url("https://x.org/a?b=1&UTM_x=2") == "https://x.org/a?b=1"
    assert normalize_url("no address") == "no address"


def test_doi_notations_are_one_source() -> None:
    found = listed({"url": "https://doi.org/10.1000/xyz-123"}, {"doi": "DOI:10.1000/XYZ-123", "title": "A study"})
    assert found == ["A study. https://doi.org/10.1000/xyz-123"]


def test_invalid_doi_is_listed_verbatim() -> None:
    assert listed({"title": "A", "doi": "shelf 3"}) == ["A. shelf 3"]


def test_entry_with_both_addresses_merges_two_sources() -> None:
    doi, page = {"doi": "10.1000/x", "year": 2020}, {"url": "https://x.org/a", "title": "A"}
    assert listed(doi, page) == ["(2020). https://doi.org/10.1000/x", "A. https://x.org/a"]
    for order in ([doi, page, {**doi, **page}], [page, {**doi, **page}, doi], [page, doi, {**page, **doi}]):
        assert listed(*order) == ["(2020). A. https://x.org/a"]


def test_longer_text_of_merged_source_is_kept() -> None:
    found = listed(
        {"url": "https://x.org/a", "title": "Desks", "year": "n.d.", "authors": "unknown"},
        {"url": "https://x.org/a", "title": "Desks and their users", "year": 2020, "authors": "Doe, J."},
        {"url": "https://x.org/a", "year": "n.d."},
    )
    assert found == ["Doe, J. (2020). Desks and their users. https://x.org/a"]


def test_sources_without_address_are_compared_by_fields() -> None:
    assert listed({"title": "B", "year": 2020}, {"title": "b", "year": "2020"}, "Doe (2021). A.") == [
        "(2020). B.",
        "Doe (2021). A.",
    ]


@pytest.mark.parametrize("field", ["title", "authors", "year"])
def test_sources_differing_in_known_field_stay_separate(field: str) -> None:
    one = {"title": "A", "authors": "Doe", "year": "2020"}
    assert len(listed(one, {**one, field: "other"})) == 2
    assert len(listed(one, dict(one))) == 1
    assert len(listed(one, {name: text for name, text in one.items() if name != field})) == 2


@pytest.mark.parametrize("nowhere", [None, "", "n.d.", "Unknown"])
def test_sources_without_address_stay_separate(nowhere: str | None) -> None:
    found = listed({"title": "A", "url": nowhere, "doi": None}, {"title": "B", "url": nowhere, "year": None})
    assert [line.removesuffix(f" {nowhere}") for line in found] == ["A.", "B."]


def test_address_in_text_is_not_repeated() -> None:
    assert listed({"text": "Doe, at https://x.org/a since 2020.", "url": "https://x.org/a"}) == [
        "Doe, at https://x.org/a since 2020."
    ]


def test_empty_source_is_ignored() -> None:
    assert listed(None, {}, {"url": None}, "  ", "Doe (2021). A.") == ["Doe (2021). A."]


def test_sources_of_rewound_stages_are_omitted() -> None:
    desk = Desk().finish().finish(fields={"references": ["Plan source"]}).finish(fields={"citations": ["Text source"]})
    assert build_bibliography(desk.session) == ["Plan source.", "Text source."]
    assert build_bibliography(desk.rewind("plan").session) == ["Plan source."]
