"""Read references from BibTeX, RIS and CSL-JSON, and look up DOIs.

``read_references`` returns CSL-JSON items from a file or a text. ``fetch_reference`` asks doi.org for the item of a DOI.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from lamella.core.workflow.references import parse_doi
from lamella.documents.pandoc import run_pandoc
from lamella.errors import DocumentError
from lamella.files import read_regular_file

_MAX_FILE_BYTES = 10_000_000
_FORMAT_BY_SUFFIX = {".bib": "bibtex", ".bibtex": "bibtex", ".ris": "ris", ".json": "csljson", ".csljson": "csljson"}
_CSL_MEDIA_TYPE = "application/vnd.citationstyles.csl+json"
_RESOLVER = "https://doi.org/"
# Fetches an address with headers, and returns the body of the answer.
FetchBody = Callable[[str, Mapping[str, str]], bytes]


def is_bibliography(name: str) -> bool:
    """Return whether a name is that of a file that references can be read from."""
    return Path(name).suffix.casefold() in _FORMAT_BY_SUFFIX


def read_references(path: Path) -> list[Mapping[str, object]]:
    """Return the references in a file as CSL-JSON items; its ending decides the format."""
    kind = _FORMAT_BY_SUFFIX.get(path.suffix.casefold())
    if kind is None:
        raise DocumentError(
            f"{path} is no file of references.", hint="Use BibTeX (.bib), RIS (.ris) or CSL-JSON (.json)."
        )
    try:
        data = read_regular_file(path.expanduser(), limit=_MAX_FILE_BYTES)
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror or error}.", hint="Check the path.") from error
    return parse_references(data, kind, name=str(path))


def parse_references(data: bytes, kind: str, *, name: str) -> list[Mapping[str, object]]:
    """Return the references in BibTeX, RIS or CSL-JSON."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{name} is not UTF-8.", hint="Save it as UTF-8.") from error
    if kind != "csljson":
        with TemporaryDirectory(prefix="lamella-references-") as folder:
            text = run_pandoc(["--from", kind, "--to", "csljson"], text=text.encode(), folder=Path(folder)).decode()
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{name} is not JSON: {error}.", hint="Export it as CSL-JSON again.") from error
    items = [items] if isinstance(items, dict) else items
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise DocumentError(f"{name} has no list of references.", hint="CSL-JSON is a list of objects.")
    if not items:
        raise DocumentError(f"{name} contains no references.", hint="Name a file that contains some.")
    return items


def fetch_reference(doi: str, fetch: FetchBody) -> Mapping[str, object]:
    """Return the CSL-JSON item of a DOI, from doi.org."""
    found = parse_doi(doi)
    if found is None:
        raise DocumentError(f"{doi!r} is no DOI.", hint="A DOI begins with 10., as in 10.1000/182.")
    body = fetch(_RESOLVER + quote(found, safe="/.()-_;:"), {"Accept": _CSL_MEDIA_TYPE})
    (item,) = parse_references(body, "csljson", name=f"The answer of doi.org for {found}")[:1]
    # The registrars' own ids are URLs, which are no keys. The DOI is the one that was asked for.
    return {**{name: value for name, value in item.items() if name != "id"}, "DOI": found}
