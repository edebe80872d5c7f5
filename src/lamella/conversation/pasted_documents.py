"""Documents that programs paste into messages, and references to repeated ones.

``find_documents`` finds documents by the frame that programs put around them: an XML-like tag or a code fence, on lines
of its own, which names its content by a path or a URL. ``plan_references_to_earlier_copies`` decides which of them
become references: the first copy stays whole, and each later identical copy becomes a line that names the first. What
happens to a text depends only on the texts before it, so a longer history begins with the same bytes.
``expand_references`` undoes it.
"""

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

# The rules by which the current version places references. Requests with signed reasoning record the version.
LAYOUT_VERSION = 1
# Fewest characters of a document that can become a reference. A shorter one costs less than a reference to it.
_MIN_DOCUMENT_CHARS = 200
# Most documents that are found in one text.
_MAX_DOCUMENTS = 100
_BLOCK_TAGS = (
    "note_context", "active_note", "url_content", "web_tab_context", "youtube_video_context", "pdf_context",
    "office_context", "canvas_context", "code_context", "embedded_note", "vault_note", "retrieved_document",
)  # fmt: skip
_DOCUMENT_TAGS = "|".join((*_BLOCK_TAGS, "document", "file"))
# The first line of a frame, from its beginning: a tag with or without attributes, or a fence with a file name.
_FRAME_OPENING = re.compile(
    rf"^(?:<(?P<tag>{_DOCUMENT_TAGS})(?P<attributes>(?: [^<>\n]{{0,400}})?)>"
    r"|(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]{1,300})$)",
    re.MULTILINE,
)
_NAME_ATTRIBUTE = re.compile(r'\b(?:path|name|source|filename|title|url)="([^"]{1,1000})"')
_NAME_FIELDS = re.compile(r"<(path|url|source|title)>([^<\n]{1,1000})</\1>")
_CONTENT_TAG = re.compile(r"<(content|document_content|document_contents)>\n?")
_FILE_NAME = re.compile(r"""(?:^|[\s:="'])((?:[\w.@-]+/)*[\w@-][\w.@-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?:["']|\s|$)""")
_REFERENCE = re.compile(
    r'\[Document "([^"\n]{1,1000})": identical to (?:the copy|version (\d{1,6}) of (\d{1,6})) above\]'
)


class FramedDocument(NamedTuple):
    """A document with its frame, as a range of characters of a text, and the name in the frame."""

    start: int
    end: int
    name: str


class DocumentReference(NamedTuple):
    """A repeated document, as a range of characters, and the line that replaces it."""

    start: int
    end: int
    line: str


class DocumentVersions:
    """The different documents of each name, numbered in the order of their first copies."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._copies: dict[str, list[str]] = {}

    def add(self, name: str, copy: str) -> bool:
        """Add a document; return whether it is a new one."""
        numbers = self._numbers.setdefault(name, {})
        if copy in numbers:
            return False
        numbers[copy] = len(numbers) + 1
        self._copies.setdefault(name, []).append(copy)
        return True

    def get_number(self, name: str, copy: str) -> int:
        """Return the number of a document."""
        return self._numbers[name][copy]

    def count(self, name: str) -> int:
        """Return how many different documents of a name there are."""
        return len(self._copies.get(name, ()))

    def get_copy(self, name: str, number: int) -> str:
        """Return a document by its number."""
        return self._copies[name][number - 1]


def find_documents(text: str, start: int = 0, *, limit: int = _MAX_DOCUMENTS) -> list[FramedDocument]:
    """Return the documents in a text from a position, in order.

    A properly closed fence without a name is skipped as a whole: tags inside code are not frames.
    """
    found: list[FramedDocument] = []
    missing: set[str] = set()
    at = start
    while len(found) < limit and (opening := _FRAME_OPENING.search(text, at)):
        at, name = _parse_frame(text, opening, missing)
        if name is not None:
            found.append(FramedDocument(opening.start(), at, name))
    return found


def _parse_frame(text: str, opening: re.Match[str], missing: set[str]) -> tuple[int, str | None]:
    """Return the position after a frame, and the name of the document in it or None.

    If there is no frame, or only a tag without a usable document, the position is the end of the opening line, so that
    the search continues inside. ``missing`` collects closing tags that do not occur in the rest of the text.
    """
    closing = f"</{opening['tag']}>" if opening["tag"] else f"\n{opening['fence']}"
    # A closing tag that is not found from here is not found from any later position either. Without this set, a text
    # with many unclosed tags would be searched to its end for each of them.
    end = -1 if closing in missing else text.find(closing, opening.end())
    if end < 0:
        missing.add(closing)
        return opening.end(), None
    after = end + len(closing)
    if text[after : after + 1] not in ("", "\n"):
        return opening.end(), None
    inner = text[opening.end() : end]
    name = _find_tag_name(opening, inner) if opening["tag"] else _find_fence_name(opening["info"], inner)
    return after if name is not None or opening["fence"] else opening.end(), name


def _find_tag_name(opening: re.Match[str], inner: str) -> str | None:
    content = _CONTENT_TAG.search(inner)
    head = inner if content is None else inner[: content.start()]
    given = dict(_NAME_FIELDS.findall(head[:5_000])) if content is not None else {}
    attribute = _NAME_ATTRIBUTE.search(opening["attributes"])
    name = given.get("path") or given.get("url") or given.get("source") or (attribute[1] if attribute else None)
    body = inner if content is None else inner[content.end() :].rpartition(f"</{content[1]}>")[0]
    return _usable_name(name, body)


def _find_fence_name(info: str, inner: str) -> str | None:
    named = _FILE_NAME.search(info)
    return _usable_name(named[1] if named else None, inner)


def _usable_name(name: str | None, body: str) -> str | None:
    usable = name is not None and name.strip() and '"' not in name and len(body.strip("\n")) >= _MIN_DOCUMENT_CHARS
    return name if usable else None


def plan_references_to_earlier_copies(
    texts: Sequence[str], *, unchanged_count: int = 0
) -> list[list[DocumentReference]]:
    """Return for each text of a history, in order, the references that replace repeated documents.

    A reference names the earlier copy of the same document.

    The first ``unchanged_count`` texts stay as they are, and so do texts in which the client wrote such a reference. Their
    documents are first copies like any others.
    """
    versions = DocumentVersions()
    return [_plan_text(text, versions, is_unchanged=place < unchanged_count) for place, text in enumerate(texts)]


def _plan_text(text: str, versions: DocumentVersions, *, is_unchanged: bool) -> list[DocumentReference]:
    planned: list[DocumentReference] = []
    # Among references that the client wrote itself, nobody could tell which are Lamella's.
    is_unchanged = is_unchanged or _REFERENCE.search(text) is not None
    for document in find_documents(text):
        name, copy = document.name, text[document.start : document.end]
        if not versions.add(name, copy) and not is_unchanged:
            line = _format_reference(name, versions.get_number(name, copy), versions.count(name))
            if len(line) < len(copy):
                planned.append(DocumentReference(document.start, document.end, line))
    return planned


def _format_reference(name: str, version: int, versions: int) -> str:
    which = "the copy" if versions == 1 else f"version {version} of {versions}"
    return f'[Document "{name}": identical to {which} above]'


def apply_references(text: str, references: Sequence[DocumentReference]) -> str:
    """Return a text with its repeated documents replaced."""
    parts: list[str] = []
    at = 0
    for reference in references:
        parts += (text[at : reference.start], reference.line)
        at = reference.end
    return "".join((*parts, text[at:]))


def expand_references(texts: Sequence[str], *, as_written: Container[str] = ()) -> list[str] | None:
    """Return texts with each reference replaced by the document that it names.

    None if a reference names no earlier document of these texts. This reads only what is sent, so it can prove that
    nothing was lost. ``as_written`` are the texts of the client. One of them that is sent as it is may contain what
    looks like a reference.
    """
    versions = DocumentVersions()
    expanded: list[str] = []
    for text in texts:
        whole = _expand_text(text, versions, as_written)
        if whole is None:
            return None
        expanded.append(whole)
    return expanded


def _expand_text(text: str, versions: DocumentVersions, as_written: Container[str]) -> str | None:
    """Return a text with its documents, which are added to the versions."""
    has_references = '": identical to ' in text and text not in as_written
    whole, at, seen, number_seen = "", 0, 0, 0
    # References and first copies alternate within a text, so its documents are read up to each reference.
    for reference in _REFERENCE.finditer(text) if has_references else ():
        whole += text[at : reference.start()]
        seen, number_seen = _add_documents(whole, seen, number_seen, versions)
        name, number, count = reference[1], int(reference[2] or 1), int(reference[3] or 1)
        if count != versions.count(name) or not 1 <= number <= count:
            return None
        whole += versions.get_copy(name, number)
        at = reference.end()
    whole += text[at:]
    _add_documents(whole, seen, number_seen, versions)
    return whole


def _add_documents(text: str, start: int, number: int, versions: DocumentVersions) -> tuple[int, int]:
    """Add the documents from a position, before which there are so many; return the position and the number after them."""
    found = find_documents(text, start, limit=_MAX_DOCUMENTS - number)
    for document in found:
        versions.add(document.name, text[document.start : document.end])
    return found[-1].end if found else start, number + len(found)
