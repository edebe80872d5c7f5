"""The finished work is markdown: stages whole and in order, one bibliography, and what is not approved yet."""

from tests.unit.core.workflow.working import STAGES, Desk

from lamella.core.log.events.compaction import Exhibit
from lamella.core.values import replace
from lamella.core.workflow.document import build_document, render_document, with_sections_of
from lamella.core.workflow.session import WorkflowSession, add_references_event, exhibit_event
from lamella.wiring.workflows import get_workflow


def render_approved_stages(session: WorkflowSession, *, title: str) -> str:
    return render_document(build_document(session, title=title))


def test_every_approved_stage_is_written_whole_with_one_bibliography() -> None:
    long = "A sentence of the text. " * 200
    desk = Desk().finish(fields={"references": [{"title": "A", "url": "https://x.org/a"}]})
    desk.finish("planned").finish(fields={"body": long, "citations": [{"title": "A", "url": "https://x.org/a#2"}]})
    desk.finish(fields={"chosen": "Desks for all", "options": ["One", {"b": 2}], "count": 3})
    text = render_approved_stages(desk.session, title="")
    assert text.startswith(
        "# Desks for all\n\n## Idea\n\n### What\n\nidea data\n\n### Why\n\nidea data\n\n## Plan\n\nplanned\n"
    )
    assert f"## Text\n\n{long.strip()}\n" in text
    assert "### Options\n\n- One\n- b: 2\n\n" in text
    assert "## References\n\n1. A. https://x.org/a#2\n" in text
    assert [one.message for one in build_document(desk.session).problems if one.code == "stage_not_approved"] == [
        "The stage End is not approved yet."
    ]
    assert render_approved_stages(desk.session, title="Mine").startswith("# Mine\n")


def test_untitled_export_is_named_by_workflow() -> None:
    desk = Desk()
    assert render_approved_stages(desk.session, title="").startswith("# Tiny work\n")
    for _ in STAGES:
        desk.finish()
    assert "stage_not_approved" not in [one.code for one in build_document(desk.session).problems]


def write_paper(*, language: str = "id", **fields: dict[str, object]) -> Desk:
    """A paper with the fields of some of its stages; all stages are approved."""
    desk = Desk(get_workflow("paper", language=language))
    for stage in desk.session.workflow.stages:
        texts = {name: f"isi {name}" for name in stage.required if name != "totalWordCount"}
        desk.finish(
            fields={**texts, **({"totalWordCount": 3000} if stage.id == "outline" else {}), **fields.get(stage.id, {})}
        )
    return desk


def codes(desk: Desk) -> list[str]:
    return [one.code for one in build_document(desk.session).problems]


def test_working_fields_and_field_names_are_not_in_the_document() -> None:
    text = render_approved_stages(write_paper().session, title="")
    for name in ("ideKasar", "angleSpesifik", "opsiJudul", "isi sections", "temuanUtama\n"):
        assert name not in text.replace(f"isi {name}", "") or name == "isi sections"
    assert "isi ideKasar" not in text
    assert "isi sections" not in text
    assert "isi opsiJudul" not in text
    assert text.startswith(
        "# isi judulTerpilih\n\n## Abstrak\n\nisi ringkasanPenelitian\n\n**Kata kunci**: isi keywords\n"
    )
    assert "### Latar Belakang\n\nisi latarBelakang" in text


def test_sections_are_in_order_with_abstract_first_and_appendix_last() -> None:
    document = build_document(write_paper(lampiran={"isiLampiran": "Kuesioner."}).session)
    assert [section.kind for section in document.sections] == ["abstract", *["chapter"] * 6, "references", "appendix"]
    english = build_document(write_paper(language="en").session)
    assert [section.heading for section in english.sections] == [
        "Abstract", "Introduction", "Literature Review", "Methodology", "Results", "Discussion", "Conclusion", "References",
    ]  # fmt: skip


def test_headings_and_open_code_blocks_in_a_text_stay_inside_their_section() -> None:
    text = "# Big\n\nOne\n===\n\n```python\n# no heading\nopen"
    shown = render_approved_stages(write_paper(pendahuluan={"latarBelakang": text}).session, title="")
    assert "#### Big\n\n#### One\n\n```python\n# no heading\nopen\n```\n\n### Rumusan Masalah" in shown


def test_citations_and_references_are_compared() -> None:
    desk = write_paper(
        diskusi={"interpretasiTemuan": "As [@doe2020, p. 3] and @nobody1999 say; mail me@example.org. `@code`"}
    )
    event, keys = add_references_event(
        desk.session, [{"title": "Desks", "author": ["Doe, Jane"], "year": 2020}, {"title": "Chairs"}], after_message=""
    )
    assert keys == ["doe2020", "chairs"]
    problems = {one.code: one.message for one in build_document(desk.do(event).session).problems}
    assert problems["citation_unknown"] == "nobody1999 dikutip di Diskusi, tetapi tidak ada referensi dengan kunci itu."
    uncited = [one.message for one in build_document(desk.session).problems if one.code == "reference_uncited"]
    assert [line.split()[1] for line in uncited] == ["chairs", "isi"]
    desk = write_paper(language="en", daftar_pustaka={"entries": ["Doe, J. (2020). Desks. Journal of Desks, 3."]})
    document = build_document(desk.session)
    assert [item["id"] for item in document.references] == ["doe2020"]
    assert "nothing_cited" in [one.code for one in document.problems]


def test_exhibits_go_where_the_text_refers_to_them() -> None:
    desk = write_paper(
        hasil={"temuanUtama": "Lihat @tbl:hours dan @fig:none."}, diskusi={"interpretasiTemuan": "![](tbl:again)"}
    )
    for key in ("tbl:hours", "tbl:again", "tbl:lost"):
        table = Exhibit(key=key, caption="Hours", columns=("a",), rows=(("1",),))
        desk.do(exhibit_event(desk.session, table, after_message=""))
    document = build_document(desk.session)
    assert {section.id: section.exhibits for section in document.sections if section.exhibits} == {
        "sec:hasil": ("tbl:hours",)
    }
    assert codes(desk).count("exhibit_unplaced") == 1
    assert codes(desk).count("exhibit_unmentioned") == 1
    assert codes(desk).count("cross_reference_unknown") == 1
    assert "*Tabel tbl:again: Hours*\n\n| a |\n| --- |\n| 1 |" in render_document(document)


def test_paper_started_before_there_were_sections_gets_those_of_the_current_file() -> None:
    current = get_workflow("paper", language="id")
    old = replace(current, stages=tuple(replace(one, section=None, fields=(), headings={}) for one in current.stages))
    assert with_sections_of(old, current) == current
    other = replace(old, stages=(*old.stages[1:], replace(old.stages[0], id="mine")))
    assert with_sections_of(other, current) == other
