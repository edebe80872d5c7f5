"""Documents of workflows as files, and references from files and DOIs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import InvalidOperationError
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.setting_checks import USER_ONLY_SETTINGS

if TYPE_CHECKING:
    from lamella.core.workflow.document import DocumentProblem, WorkflowDocument
    from lamella.documents.export import ExportedDocument


def list_citation_styles() -> list[str]:
    """Return the names of the citation styles that come with Lamella; any other is a ``.csl`` file."""
    from lamella.documents.export import list_styles  # imported late: only exports need it

    return list_styles()


def render_document_file(
    document: "WorkflowDocument",
    file_name: str,
    *,
    style: str | None = None,
    template: Path | None = None,
    date: str = "",
) -> "ExportedDocument":
    """Return a document in the format that the ending of a file name means, with citations in a style.

    Markdown without citations, figures and tables needs no converter.
    """
    from lamella.core.workflow.document import render_document
    from lamella.documents.export import (
        DEFAULT_STYLE,
        DocumentFormat,
        ExportedDocument,
        export_document,
        format_of_file,
    )

    found = format_of_file(file_name)
    is_plain = style is None and template is None and not document.cites and not document.exhibits
    if found is DocumentFormat.MARKDOWN and is_plain:
        text = render_document(document)
        return ExportedDocument(format=found, content=text.encode(), problems=document.problems)
    return export_document(
        document,
        found,
        style=style or DEFAULT_STYLE,
        template=template,
        date=date,
        image_folder=f"{Path(file_name).stem}-figures",
    )


def write_document(
    document: "WorkflowDocument",
    path: Path,
    *,
    style: str | None = None,
    template: Path | None = None,
    date: str = "",
) -> "Sequence[DocumentProblem]":
    """Write a document to a new file and return what it lacks; the ending of the file decides the format.

    ``style`` is a citation style by name (``apa`` unless given) or a ``.csl`` file. ``template`` is a Word document (docx),
    a Typst template (pdf), or a template of Pandoc (html, tex). LaTeX and Markdown get a folder with their figures.
    """
    from lamella.files import write_new_file

    path = Path(path).expanduser()
    if path.exists():
        raise InvalidOperationError(f"{path} is there already.", hint="Name a new file, or move that one away.")
    exported = render_document_file(document, path.name, style=style, template=template, date=date)
    try:
        for name, data in exported.images.items():
            image = path.parent / name
            image.parent.mkdir(parents=True, exist_ok=True)
            if not (image.is_file() and image.read_bytes() == data):
                write_new_file(image, data)
        write_new_file(path, exported.content)
    except FileExistsError as error:
        raise InvalidOperationError(
            f"{error.filename or path} is there already.", hint="Name a new file, or move that one away."
        ) from error
    except OSError as error:
        raise InvalidOperationError(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file that may be written."
        ) from error
    return exported.problems


def read_references(*sources: str, services: ServiceContainer | None = None) -> list[Mapping[str, object] | str]:
    """Return references from bibliographies, DOIs and typed lines, for ``chat.add_references``.

    A file ends in ``.bib``, ``.ris`` or ``.json``. DOIs are looked up if the setting ``doi_lookup`` is on.
    """
    from lamella.core.workflow.references import parse_doi
    from lamella.documents.bibliography import is_bibliography
    from lamella.documents.bibliography import read_references as read_file

    found: list[Mapping[str, object] | str] = []
    for source in sources:
        if parse_doi(source):
            found.append(_look_up_doi(source, services or read_services()))
        elif is_bibliography(source) and "\n" not in source:
            found += read_file(Path(source))
        else:
            found.append(source)
    return found


def _look_up_doi(doi: str, services: ServiceContainer) -> Mapping[str, object] | str:
    """Return the item of a DOI; the DOI itself if the user did not allow to look it up."""
    for error in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise error
    if not services.settings.doi_lookup:
        return doi
    from lamella.documents.bibliography import fetch_reference
    from lamella.sources.web import Fetcher, FetchLimits, check_status

    limits = FetchLimits(max_bytes=services.settings.page_bytes, max_seconds=services.settings.page_seconds)

    def fetch(url: str, headers: Mapping[str, str]) -> bytes:
        response = Fetcher(limits).fetch(url, headers)
        check_status(response, url)
        return response.body

    return fetch_reference(doi, fetch)
