"""Write the document of a workflow as docx, pdf, html, LaTeX or Markdown.

``export_document`` converts it with Pandoc, and for pdf with Typst. The ending of a file decides the format. Citations are
formatted by a style in CSL, figures and tables are numbered, and what is missing is part of the result.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from lamella.core.log.events.compaction import Exhibit, SectionKind
from lamella.core.workflow.document import (
    DocumentProblem,
    DocumentSection,
    WorkflowDocument,
    list_shown_references,
)
from lamella.core.workflow.phrases import get_phrases
from lamella.core.workflow.references import CslItem
from lamella.documents.pandoc import MAX_SECONDS, PAPER_EXTRA, find_pandoc, read_markdown, run_pandoc
from lamella.documents.syntax_tree import (
    REFERENCES_CLASS,
    UNNUMBERED_CLASS,
    Node,
    TreeOptions,
    complete_tree,
    make_citation,
    shift_headings,
    text_to_inlines,
)
from lamella.errors import DocumentError, ExtraNotInstalledError, install_hint
from lamella.files import read_regular_file

_FOLDER = Path(__file__).parent
_STYLES, _TEMPLATES = _FOLDER / "styles", _FOLDER / "templates"
DEFAULT_STYLE = "apa"
_MAX_FILE_BYTES = 20_000_000
_ADDRESS_FIELDS = ("URL", "DOI", "PMID", "PMCID")
_UNSAFE_ADDRESS = re.compile(r"\s*(?!https?:|doi:)[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_MARKUP_CHARACTER = re.compile(r"([!-/:-@\[-`{-~])")


class DocumentFormat(StrEnum):
    """The formats of documents, each with the ending of its files."""

    DOCX = "docx"
    PDF = "pdf"
    HTML = "html"
    LATEX = "tex"
    MARKDOWN = "md"


_FORMAT_BY_SUFFIX = {".htm": DocumentFormat.HTML, ".latex": DocumentFormat.LATEX, ".markdown": DocumentFormat.MARKDOWN}
_FORMAT_BY_SUFFIX |= {f".{one}": one for one in DocumentFormat}
# What Pandoc calls the formats. A pdf is made from Typst.
_PANDOC_FORMATS = {
    DocumentFormat.DOCX: "docx",
    DocumentFormat.PDF: "typst",
    DocumentFormat.HTML: "html5",
    DocumentFormat.LATEX: "latex",
    DocumentFormat.MARKDOWN: "gfm-raw_html",
}
_TEMPLATE_SUFFIXES = {
    DocumentFormat.DOCX: ".docx",
    DocumentFormat.PDF: ".typ",
    DocumentFormat.HTML: ".html",
    DocumentFormat.LATEX: ".tex",
}
_FORMATS_WITH_IMAGES_BESIDE = (DocumentFormat.LATEX, DocumentFormat.MARKDOWN)
_SUFFIX_BY_MEDIA_TYPE = {"image/png": ".png", "image/jpeg": ".jpg"}


class ExportedDocument(Struct, frozen=True, kw_only=True):
    """A document in a format.

    Attributes:
        content: The bytes of the file.
        images: Images that the file refers to, by their names beside it; most formats contain them.
        problems: What the document lacks.
    """

    format: DocumentFormat
    content: bytes
    images: Mapping[str, bytes] = {}
    problems: tuple[DocumentProblem, ...] = ()


def format_of_file(name: str) -> DocumentFormat:
    """Return the format of a file by the ending of its name; raise ``DocumentError`` for an unknown one."""
    suffix = Path(name).suffix.casefold()
    if suffix not in _FORMAT_BY_SUFFIX:
        known = ", ".join(f".{one}" for one in DocumentFormat)
        raise DocumentError(
            f"The ending of {name} is {suffix!r}, which is no format of a document.", hint=f"Use one of: {known}."
        )
    return _FORMAT_BY_SUFFIX[suffix]


def list_styles() -> list[str]:
    """Return the names of the citation styles that come with Lamella."""
    return sorted(path.stem for path in _STYLES.glob("*.csl"))


def find_style(style: str) -> Path:
    """Return the file of a citation style: one that comes with Lamella by its name, or any ``.csl`` file."""
    if style.casefold() in list_styles():
        return _STYLES / f"{style.casefold()}.csl"
    path = Path(style).expanduser()
    if path.suffix.casefold() != ".csl" or not path.is_file():
        raise DocumentError(
            f"There is no citation style {style!r}.",
            hint=f"Use one of: {', '.join(list_styles())}; or the path of a .csl file.",
        )
    return path.resolve()


def export_document(
    document: WorkflowDocument,
    format_: DocumentFormat,
    *,
    style: str = DEFAULT_STYLE,
    template: Path | None = None,
    date: str = "",
    image_folder: str = "",
    max_seconds: float = MAX_SECONDS,
) -> ExportedDocument:
    """Return a document in a format, with citations in a style.

    ``template`` is a reference document (docx), a Typst template (pdf), or a template of Pandoc (html, LaTeX). LaTeX and
    Markdown refer to images in ``image_folder``. A pdf that is not made within ``max_seconds`` raises ``DocumentError``.
    """
    find_pandoc()
    style_path = find_style(style)
    template_path = _find_template(format_, template)
    with TemporaryDirectory(prefix="lamella-document-") as made:
        folder = Path(made)
        beside = image_folder if format_ in _FORMATS_WITH_IMAGES_BESIDE else ""
        images = _write_images(document, folder, beside)
        tree = complete_tree(
            read_markdown(render_source(document), folder),
            TreeOptions(
                phrases=get_phrases(document.language),
                exhibits={one.key: one for one in document.exhibits},
                image_names={key: name for key, (name, _) in images.items()},
                numbers_captions=format_ is not DocumentFormat.LATEX,
                numbers_headings=format_ is DocumentFormat.MARKDOWN,
                links=format_ is not DocumentFormat.MARKDOWN,
            ),
        )
        tree["meta"] = _make_metadata(document, format_, date)
        if format_ is DocumentFormat.MARKDOWN:
            tree["blocks"] = [*_make_title_blocks(document, date), *shift_headings(tree["blocks"])]
        arguments = _list_arguments(document, format_, style_path, template_path, folder)
        content = run_pandoc(arguments, text=json.dumps(tree).encode(), folder=folder, may_read_files=True)
        if format_ is DocumentFormat.DOCX:
            content = (folder / _DOCX_NAME).read_bytes()
        elif format_ is DocumentFormat.PDF:
            content = _compile_pdf(content, folder, max_seconds=max_seconds)
    return ExportedDocument(
        format=format_,
        content=content,
        images=dict(images.values()) if format_ in _FORMATS_WITH_IMAGES_BESIDE else {},
        problems=document.problems,
    )


# The text that Pandoc reads.


def render_source(document: WorkflowDocument) -> str:
    """Return the sections of a document as Markdown for Pandoc, with figures and tables as images."""
    keywords = get_phrases(document.language).keywords
    parts: list[str] = []
    for section in document.sections:
        parts += [_render_heading(section), section.text]
        if section.kind is SectionKind.ABSTRACT and document.keywords:
            parts.append(f"**{escape_markdown(keywords)}**: {escape_markdown(', '.join(document.keywords))}")
        parts += [f"![]({key})" for key in section.exhibits]
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_heading(section: DocumentSection) -> str:
    classes = [] if section.kind is SectionKind.CHAPTER else [UNNUMBERED_CLASS]
    classes += [REFERENCES_CLASS] if section.kind is SectionKind.REFERENCES else []
    attributes = " ".join((f"#{section.id}", *(f".{name}" for name in classes)))
    return f"# {escape_markdown(section.heading)} {{{attributes}}}"


def escape_markdown(text: str) -> str:
    """Escape a plain text so that Markdown shows it as it is."""
    return _MARKUP_CHARACTER.sub(r"\\\1", " ".join(text.split()))


def _write_images(document: WorkflowDocument, folder: Path, image_folder: str) -> dict[str, tuple[str, bytes]]:
    """Write the images of figures into a folder; return the name and the bytes of each by the key of its figure."""
    images: dict[str, tuple[str, bytes]] = {}
    for exhibit in document.exhibits:
        data = document.images.get(exhibit.image) if exhibit.image else None
        if data is not None:
            name = f"{image_folder}/{_image_name(exhibit)}" if image_folder else _image_name(exhibit)
            (folder / image_folder).mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
            images[exhibit.key] = name, data
    return images


def _image_name(exhibit: Exhibit) -> str:
    return exhibit.key.replace(":", "-") + _SUFFIX_BY_MEDIA_TYPE.get(exhibit.media_type, ".png")


# How Pandoc writes it.

_DOCX_NAME, _REFERENCES_NAME, _SOURCE_NAME = "document.docx", "references.json", "document.typ"
_PDF_NAME = "document.pdf"


def _make_metadata(document: WorkflowDocument, format_: DocumentFormat, date: str) -> dict[str, object]:
    authors = document.authors
    if document.institution and format_ is not DocumentFormat.PDF:
        # Only our own template for Typst has a place for the institution.
        authors = (*authors, document.institution)
    metadata: dict[str, object] = {
        "title": text_to_inlines(document.title),
        "lang": text_to_inlines(document.language),
        "link-citations": {"t": "MetaBool", "c": format_ is not DocumentFormat.MARKDOWN},
        "institution": text_to_inlines(document.institution),
        "date": text_to_inlines(date),
        "author": {"t": "MetaList", "c": [text_to_inlines(one) for one in authors]},
    }
    if document.references and not document.cites:
        every = make_citation("*", "@*")
        metadata["nocite"] = {"t": "MetaInlines", "c": [every]}
    return metadata


def _make_title_blocks(document: WorkflowDocument, date: str) -> list[Node]:
    """Return title and authors as blocks, for a format that has no place for them."""
    lines = ["; ".join(document.authors), document.institution, date]
    return [
        {"t": "Header", "c": [1, ["", [], []], text_to_inlines(document.title)["c"]]},
        *({"t": "Para", "c": text_to_inlines(line)["c"]} for line in lines if line),
    ]


def _list_arguments(
    document: WorkflowDocument, format_: DocumentFormat, style: Path, template: Path | None, folder: Path
) -> list[str]:
    items = [_without_unsafe_links(item) for item in list_shown_references(document)]
    (folder / _REFERENCES_NAME).write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    arguments = ["--from", "json", "--to", _PANDOC_FORMATS[format_]]
    arguments += [] if format_ is DocumentFormat.MARKDOWN else ["--standalone"]
    arguments += ["--citeproc", "--bibliography", _REFERENCES_NAME, "--csl", str(style)]
    if format_ in (DocumentFormat.DOCX, DocumentFormat.HTML, DocumentFormat.LATEX):
        arguments.append("--number-sections")
    if format_ is DocumentFormat.HTML:
        arguments.append("--embed-resources")
    if format_ is DocumentFormat.DOCX:
        arguments += ["--output", _DOCX_NAME, "--reference-doc", str(template or _TEMPLATES / "paper.docx")]
    elif format_ is DocumentFormat.PDF:
        arguments += ["--template", str(template or _TEMPLATES / "paper.typ")]
    elif template is not None:
        arguments += ["--template", str(template)]
    return arguments


def _without_unsafe_links(item: CslItem) -> CslItem:
    """Return a reference without addresses such as ``javascript://``, because citation styles turn addresses into links."""
    return {
        name: value
        for name, value in item.items()
        if name not in _ADDRESS_FIELDS or not isinstance(value, str) or not _UNSAFE_ADDRESS.match(value)
    }


def _find_template(format_: DocumentFormat, template: Path | None) -> Path | None:
    if template is None:
        return None
    wanted = _TEMPLATE_SUFFIXES.get(format_)
    if wanted is None:
        raise DocumentError("Markdown takes no template.", hint="Leave out the template.")
    if template.suffix.casefold() != wanted:
        raise DocumentError(
            f"{template} is no template for {format_}.", hint=f"A template for {format_} is a {wanted} file."
        )
    try:
        read_regular_file(template.expanduser(), limit=_MAX_FILE_BYTES)
    except OSError as error:
        raise DocumentError(
            f"The template {template} cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    return template.expanduser().resolve()


# Typst runs in a process of its own, because its function in Python has no limit of time.
_COMPILE = """
import sys, typst
try:
    typst.compile(sys.argv[1], output=sys.argv[2], root=sys.argv[3])
except typst.TypstError as error:
    sys.exit(str(error))
"""


def _compile_pdf(source: bytes, folder: Path, *, max_seconds: float) -> bytes:
    if find_spec("typst") is None:
        raise ExtraNotInstalledError("The package typst is not installed.", hint=install_hint(PAPER_EXTRA))
    path, made = folder / _SOURCE_NAME, folder / _PDF_NAME
    path.write_bytes(source)
    # -P: Python imports nothing from the folder in which the user works.
    command = [sys.executable, "-P", "-c", _COMPILE, str(path), str(made), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=max_seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise DocumentError(
            f"Typst did not finish within {max_seconds} seconds.", hint="Shorten the work, or leave out its figures."
        ) from error
    if done.returncode:
        reason = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
        raise DocumentError(f"Typst cannot make the pdf: {reason}", hint="Check the template.")
    return made.read_bytes()
