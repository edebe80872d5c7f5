"""The bibliography has each source once, with the best known data, under any of its addresses."""

import pytest
from tests.unit.core.workflow.working import Desk

from lamella.core.log.events.compaction import SectionKind
from lamella.core.workflow.document import DocumentSection, WorkflowDocument, list_shown_references
from lamella.core.workflow.references import (
    add_references,
    author_names,
    find_citations,
    find_cross_references,
    format_reference,
    index_references,
    is_same_source,
    list_missing_details,
    make_reference_key,
    normalize_url,
    parse_name,
    reference_year,
    to_reference,
)
from lamella.core.workflow.session import WorkflowSession, add_references_event, collect_references, remove_event
from lamella.errors import WorkflowError


def build_bibliography(session: WorkflowSession) -> list[str]:
    return sorted((format_reference(item) for item in collect_references(session).values()), key=str.casefold)


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
    # The same title and year are the same source, also where one of the two names no author.
    assert len(listed(one, {name: text for name, text in one.items() if name != field})) == (
        1 if field == "authors" else 2
    )


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


def test_typed_reference_is_divided_into_its_parts() -> None:
    item = to_reference(
        "Sari, R., & Budi, A. (2021). Coffee and sleep. Journal of Sleep, 3(2), 1-10. https://doi.org/10.1000/abc"
    )
    assert author_names(item) == ["Sari", "Budi"]
    assert (reference_year(item), item["title"], item["DOI"]) == ("2021", "Coffee and sleep", "10.1000/abc")
    assert item["container-title"] == "Journal of Sleep, 3(2), 1-10"
    assert to_reference("Just a title")["title"] == "Just a title"
    assert to_reference("https://example.org/a") == {"type": "webpage", "URL": "https://example.org/a"}
    assert to_reference("doi:10.1000/ABC")["DOI"] == "10.1000/ABC"


def test_usual_field_names_become_those_of_csl() -> None:
    item = to_reference(
        {"title": "A", "authors": "Sari, Rina; Budi", "year": 2021, "journal": "J", "pages": "1-2", "doi": "doi:10.1/x"}
    )
    assert item["author"] == [{"family": "Sari", "given": "Rina"}, {"literal": "Budi"}]
    assert item["issued"] == {"date-parts": [[2021]]}
    assert (item["container-title"], item["page"]) == ("J", "1-2")
    assert parse_name("Rina Sari") == {"family": "Sari", "given": "Rina"}
    assert parse_name("{World Health Organization}") == {"literal": "World Health Organization"}


@pytest.mark.parametrize(
    "wrong", [{}, {"id": "a b", "title": "A"}, {"title": "A", "type": "novel"}, {"title": "A", "author": [3]}, 7, "  "]
)
def test_wrong_reference_is_refused(wrong: object) -> None:
    with pytest.raises(WorkflowError):
        to_reference(wrong)


def test_reference_added_twice_keeps_its_key_and_gets_list_missing_details() -> None:
    first = add_references({}, [{"title": "Coffee and Sleep", "author": ["Sari, Rina"], "year": 2021}])
    known = {str(item["id"]): item for item in first.items}
    again = add_references(known, [{"title": "Coffee and sleep.", "year": "2021", "doi": "10.1000/abc"}])
    assert first.keys == again.keys == ("sari2021",)
    assert [item["DOI"] for item in again.items] == ["10.1000/abc"]
    other = {"title": "Other", "author": ["Sari, B."], "year": 2021}
    assert add_references({"sari2021": again.items[0]}, [other]).keys == ("sari2021b",)


BY_DOI = {"id": "t1", "title": "One", "DOI": "10.1000/abc"}
BY_URL = {"id": "t2", "title": "Two", "URL": "https://example.org/two"}
BY_BOTH = {"id": "t3", "title": "One", "DOI": "10.1000/abc", "URL": "https://example.org/two"}


def test_reference_that_connects_two_of_one_call_keeps_both_keys() -> None:
    added = add_references({}, [BY_DOI, BY_URL, BY_BOTH])
    assert added.keys == ("t1", "t2", "t1")
    assert [item["id"] for item in added.items] == ["t1"]
    by_key = index_references(added.items)
    assert by_key["t1"] is by_key["t2"]
    # The other key is not given to another source, also in a later call.
    later = add_references({"t1": added.items[0]}, [{"id": "t2", "title": "Unlike"}, BY_URL])
    assert later.keys == ("t2b", "t1")


def test_reference_that_connects_two_known_ones_keeps_both_keys() -> None:
    desk = Desk()
    for given in ([BY_DOI, BY_URL], [BY_BOTH]):
        desk.do(add_references_event(desk.session, given, after_message="")[0])
    assert list(desk.session.references) == list(collect_references(desk.session)) == ["t1"]
    assert desk.session.references["t1"]["other-ids"] == "t2"
    document = WorkflowDocument(
        title="T",
        language="en",
        sections=(DocumentSection(id="sec:a", kind=SectionKind.CHAPTER, heading="A", text="See @t2."),),
        references=tuple(desk.session.references.values()),
        cites=True,
    )
    assert [item["id"] for item in list_shown_references(document)] == ["t1"]
    desk.do(remove_event(desk.session, "t2", after_message=""))
    assert not desk.session.references


def test_type_that_is_no_text_is_named() -> None:
    with pytest.raises(WorkflowError, match="type"):
        to_reference({"title": "A", "type": ["a"]})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"DOI": "10.1000/A"}, {"DOI": "10.1000/a"}, True),
        ({"DOI": "10.1000/a", "title": "T"}, {"DOI": "10.1000/b", "title": "T"}, False),
        ({"URL": "https://x.org/?utm_source=a"}, {"URL": "https://X.org/#b"}, True),
        ({"title": "T", "issued": {"date-parts": [[2020]]}}, {"title": "t.", "issued": {"literal": "2020"}}, True),
        ({"title": "T", "issued": {"date-parts": [[2020]]}}, {"title": "T", "issued": {"date-parts": [[2021]]}}, False),
    ],
)
def test_same_source_is_recognised(one: dict[str, object], other: dict[str, object], *, same: bool) -> None:
    assert is_same_source(one, other) is same


def test_citations_are_read_as_pandoc_reads_them() -> None:
    text = "As @doe2020 says [see @roe-1999, pp. 3; -@{odd key} @a.b.]. me@x.org `@no` \\@no\n```\n@no\n```\n@fig:a and @sec:b."
    assert find_citations(text) == ["doe2020", "roe-1999", "a.b"]
    assert find_cross_references(text) == ["fig:a", "sec:b"]


def test_key_is_made_of_author_and_year_or_title() -> None:
    assert (
        make_reference_key({"author": [{"family": "Müller-Łuk"}], "issued": {"date-parts": [[2020]]}})
        == "mullerłuk2020"
    )
    assert make_reference_key({"title": "The coffee book"}) == "coffee"
    assert list_missing_details({"title": "The coffee book"}) == ["author", "year"]
