"""Formats by ending, styles and templates, and what a document says in each of them."""

import io
import zipfile
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument

from lamella.core.log.events.compaction import Exhibit, SectionKind
from lamella.core.values import replace
from lamella.core.workflow.document import DocumentSection, WorkflowDocument
from lamella.documents.export import (
    DocumentFormat,
    escape_markdown,
    export_document,
    find_style,
    format_of_file,
    list_styles,
    render_source,
)
from lamella.errors import DocumentError

ITEM = {
    "id": "doe2020",
    "type": "book",
    "title": "Desks",
    "author": [{"family": "Doe", "given": "Jane"}],
    "issued": {"date-parts": [[2020]]},
    "publisher": "Press",
}
TEXT = DocumentSection(id="sec:text", kind=SectionKind.CHAPTER, heading="Text *one*", text="As [@doe2020] says.")
END = DocumentSection(id="sec:end", kind=SectionKind.REFERENCES, heading="References", text="")
DOCUMENT = WorkflowDocument(title="Desks & chairs", language="en", sections=(TEXT, END), references=(ITEM,), cites=True)


def to_text(document: WorkflowDocument, **options: object) -> str:
    """The document as Markdown, on one line."""
    made = export_document(document, DocumentFormat.MARKDOWN, **options)  # type: ignore[arg-type]
    return " ".join(made.content.decode().split())


@pytest.mark.parametrize(
    ("name", "kind"), [("a.DOCX", "docx"), ("b.htm", "html"), ("c.markdown", "md"), ("d.tex", "tex")]
)
def test_ending_decides_the_format(name: str, kind: str) -> None:
    assert format_of_file(name) == kind


@pytest.mark.parametrize("name", ["paper", "paper.doc", "paper.pdf.bak", ".docx"])
def test_unknown_ending_is_refused(name: str) -> None:
    with pytest.raises(DocumentError, match="no format of a document"):
        format_of_file(name)


@pytest.mark.parametrize(
    ("style", "citation"),
    [("apa", "(Doe, 2020)"), ("ieee", "\\[1\\]"), ("chicago", "(Doe 2020)"), ("harvard", "(Doe, 2020)"), ("mla", "(Doe)"),
     ("ama", "¹"), ("chicago-notes", "[^1]")],
)  # fmt: skip
def test_style_formats_citations(style: str, citation: str) -> None:
    text = to_text(DOCUMENT, style=style)
    assert citation in text or (style == "ama" and "1" in text.partition("says")[0])
    assert "Doe" in text.partition("References")[2]


def test_styles_are_found_by_name_and_path(tmp_path: Path) -> None:
    assert set(list_styles()) == {"ama", "apa", "chicago", "chicago-notes", "harvard", "ieee", "mla"}
    own = tmp_path / "own.csl"
    own.write_bytes(find_style("IEEE").read_bytes())
    assert "\\[1\\]" in to_text(DOCUMENT, style=str(own))
    for wrong in ("gone", str(tmp_path / "gone.csl"), str(tmp_path)):
        with pytest.raises(DocumentError, match="no citation style"):
            find_style(wrong)


def test_headings_show_as_they_are_written() -> None:
    assert "## 1 Text \\*one\\*" in to_text(DOCUMENT)
    assert escape_markdown("a_b [c]") == "a\\_b \\[c\\]"
    assert render_source(DOCUMENT).startswith("# Text \\*one\\* {#sec:text}\n\nAs [@doe2020] says.")


def test_references_are_all_listed_if_nothing_is_cited() -> None:
    quiet = replace(DOCUMENT, cites=False, sections=(replace(TEXT, text="Nothing."), END))
    assert "Doe, J. (2020)" in to_text(quiet)
    assert "Doe" not in to_text(replace(DOCUMENT, sections=(replace(TEXT, text="See [@gone]."), END)))


def test_tables_are_numbered_in_the_order_of_the_text() -> None:
    tables = tuple(
        Exhibit(key=f"tbl:{name}", caption=f"Caption {name}", columns=("a", "b"), rows=(("1", "x"),)) for name in "ab"
    )
    section = replace(
        TEXT, text="First @tbl:b.\n\n![](tbl:b)\n\nThen @tbl:a and [@sec:text; @tbl:gone].", exhibits=("tbl:a",)
    )
    text = to_text(replace(DOCUMENT, sections=(section, END), exhibits=tables))
    assert "First Table 1." in text
    assert "Then Table 2 and Section 1, tbl:gone?." in text
    assert text.index("**Table 1.** Caption b") < text.index("Then") < text.index("**Table 2.** Caption a")


def test_template_must_fit_the_format(tmp_path: Path) -> None:
    for kind, name in (
        (DocumentFormat.DOCX, "a.typ"),
        (DocumentFormat.MARKDOWN, "a.md"),
        (DocumentFormat.PDF, "gone.typ"),
    ):
        with pytest.raises(DocumentError):
            export_document(DOCUMENT, kind, template=tmp_path / name)


def test_typst_template_decides_the_page(tmp_path: Path) -> None:
    own = tmp_path / "own.typ"
    own.write_text("#set page(width: 300pt, height: 400pt)\nTITLE: $title$\n\n$body$\n", encoding="utf-8")
    made = export_document(DOCUMENT, DocumentFormat.PDF, template=own)
    with PdfDocument(made.content) as document:
        assert [round(side) for side in document[0].get_size()] == [300, 400]
        assert "TITLE: Desks & chairs" in document[0].get_textpage().get_text_range()
    own.write_text("#set page(width: nonsense)\n$body$", encoding="utf-8")
    with pytest.raises(DocumentError, match="Typst cannot make the pdf"):
        export_document(DOCUMENT, DocumentFormat.PDF, template=own)


def test_word_template_decides_the_margins(tmp_path: Path) -> None:
    first, own, second = (tmp_path / name for name in ("first.docx", "own.docx", "second.docx"))
    first.write_bytes(export_document(DOCUMENT, DocumentFormat.DOCX).content)
    with zipfile.ZipFile(first) as packed, zipfile.ZipFile(own, "w") as changed:
        for name in packed.namelist():
            data = packed.read(name)
            changed.writestr(
                name, data.replace(b'w:left="2268"', b'w:left="1111"') if name == "word/document.xml" else data
            )
    second.write_bytes(export_document(DOCUMENT, DocumentFormat.DOCX, template=own).content)
    with zipfile.ZipFile(second) as packed:
        assert b'w:left="1111"' in packed.read("word/document.xml")


NESTED_IMAGES = (
    "**![alt]({})**",
    "[![alt]({})](https://example.org)",
    "| a |\n|---|\n| ![alt]({}) |",
    "Note.[^1]\n\n[^1]: See ![alt]({}).",
    "## Heading ![alt]({})",
    "term\n: ![alt]({})",
    "| line ![alt]({})",
    "> - ~~![alt]({}){{width=5cm}}~~",
    "As [see ![alt]({}) @doe2020].",
)


def to_code(text: str, kind: DocumentFormat) -> str:
    """The document with this text in a format: HTML, LaTeX, or the XML and files of docx."""
    made = export_document(replace(DOCUMENT, sections=(replace(TEXT, text=text), END)), kind).content
    if kind is not DocumentFormat.DOCX:
        return made.decode()
    with zipfile.ZipFile(io.BytesIO(made)) as packed:
        return "\n".join(f"{name}\n{packed.read(name).decode('utf-8', 'replace')}" for name in packed.namelist())


@pytest.mark.parametrize("kind", [DocumentFormat.HTML, DocumentFormat.DOCX, DocumentFormat.LATEX])
@pytest.mark.parametrize("nested", NESTED_IMAGES)
def test_image_of_another_file_is_text_at_any_depth(nested: str, kind: DocumentFormat, tmp_path: Path) -> None:
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg xmlns='http://www.w3.org/2000/svg'><text>hidden words</text></svg>", encoding="utf-8")
    code = to_code(nested.format(secret), kind)
    assert "secret" not in code
    assert "hidden words" not in code
    assert "word/media" not in code
    assert "<img" not in code
    assert "includegraphics" not in code
    assert "[alt]" in code.replace("\\", "").replace("{[}", "[").replace("{]}", "]")


@pytest.mark.parametrize("kind", [DocumentFormat.HTML, DocumentFormat.DOCX, DocumentFormat.LATEX])
@pytest.mark.parametrize(
    "text",
    [
        '[x]{typst:text:fill="EVIL"}',
        '**[x](https://example.org){style="EVIL" onclick="EVIL"}**',
        '## x {typst:fill="EVIL" custom-style="EVIL"}',
        '`x`{typst:text:fill="EVIL" width="EVIL"}',
        '``` {.python startFrom="EVIL" data-x="EVIL"}\nx\n```',
        "[x](javascript:EVIL)",
        "**[x]( JavaScript:EVIL)**",
        "[x](file:///EVIL)",
        "[x](EVIL.md)",
    ],
)
def test_attributes_and_links_carry_no_code(text: str, kind: DocumentFormat) -> None:
    assert "EVIL" not in to_code(text, kind)


def test_typst_code_in_an_attribute_is_not_run() -> None:
    text = '[x]{typst:text:fill="{panic(1)}"}'
    made = export_document(replace(DOCUMENT, sections=(replace(TEXT, text=text), END)), DocumentFormat.PDF).content
    assert made.startswith(b"%PDF")


def test_links_to_the_web_stay() -> None:
    text = "[x](https://example.org/a) and [y](mailto:a@example.org) and [z](#sec:text)."
    code = to_code(text, DocumentFormat.HTML)
    assert all(f'href="{one}"' in code for one in ("https://example.org/a", "mailto:a@example.org", "#sec:text"))


def test_other_key_of_a_reference_cites_it() -> None:
    section = replace(TEXT, text="As [@other] and @doe2020 say.")
    text = to_text(replace(DOCUMENT, sections=(section, END), references=({**ITEM, "other-ids": "other"},)))
    assert "(Doe, 2020) and Doe (2020)" in text
    assert text.count("Press") == 1


def test_pdf_has_a_limit_of_time(tmp_path: Path) -> None:
    endless = tmp_path / "endless.typ"
    loop = "for a in range(99999) { for b in range(99999) { let c = b } }"
    endless.write_text(f"#{{ {loop} }}\n$body$\n", encoding="utf-8")
    with pytest.raises(DocumentError, match="Typst did not finish within 1 seconds"):
        export_document(DOCUMENT, DocumentFormat.PDF, template=endless, max_seconds=1)


@pytest.mark.parametrize("field", ["URL", "DOI", "PMID"])
@pytest.mark.parametrize("address", ["javascript://%0aEVIL", " JavaScript:EVIL", "file:///EVIL"])
def test_references_carry_no_code(field: str, address: str) -> None:
    document = replace(DOCUMENT, references=({**ITEM, field: address},))
    assert "EVIL" not in export_document(document, DocumentFormat.HTML).content.decode()
    kept = replace(DOCUMENT, references=({**ITEM, "URL": "https://example.org/a"},))
    assert 'href="https://example.org/a"' in export_document(kept, DocumentFormat.HTML).content.decode()


def test_address_without_a_scheme_becomes_one_of_the_web() -> None:
    document = replace(DOCUMENT, references=({**ITEM, "URL": "javascript:1;alert(1)"},))
    assert 'href="javascript' not in export_document(document, DocumentFormat.HTML).content.decode()
