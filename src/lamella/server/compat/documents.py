"""Documents that programs paste into messages, and references to repeated ones.

``find_documents`` finds documents by the frame that programs put around them: an XML-like tag or a code fence, on lines
of its own, which names its content by a path or a URL. ``plan_references`` decides which of them become references:
the first copy stays whole, and each later identical copy becomes a line that names the first. What happens to a text
depends only on the texts before it, so a longer history begins with the same bytes. ``expand_references`` undoes it.
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


class Reference(NamedTuple):
    """A repeated document, as a range of characters, and the line that replaces it."""

    start: int
    end: int
    line: str


def find_documents(text: str) -> list[FramedDocument]:
    """Return the documents in a text, in order.

    A properly closed fence without a name is skipped as a whole: tags inside code are not frames.
    """
    found: list[FramedDocument] = []
    missing: set[str] = set()
    at = 0
    while len(found) < _MAX_DOCUMENTS and (opening := _FRAME_OPENING.search(text, at)):
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


def plan_references(texts: Sequence[str], *, unchanged: int = 0) -> list[list[Reference]]:
    """Return the references for each text of a history, in order.

    The first ``unchanged`` texts stay as they are, and so do texts in which the client wrote such a reference. Their
    documents are first copies like any others.
    """
    # The different documents of each name, in the order of their first copies.
    versions: dict[str, list[str]] = {}
    return [_plan_text(text, versions, is_unchanged=place < unchanged) for place, text in enumerate(texts)]


def _plan_text(text: str, versions: dict[str, list[str]], *, is_unchanged: bool) -> list[Reference]:
    planned: list[Reference] = []
    # Among references that the client wrote itself, nobody could tell which are Lamella's.
    is_unchanged = is_unchanged or _REFERENCE.search(text) is not None
    for document in find_documents(text):
        known, copy = versions.setdefault(document.name, []), text[document.start : document.end]
        if copy not in known:
            known.append(copy)
        elif not is_unchanged:
            line = _format_reference(document.name, known.index(copy) + 1, len(known))
            if len(line) < len(copy):
                planned.append(Reference(document.start, document.end, line))
    return planned


def _format_reference(name: str, version: int, versions: int) -> str:
    which = "the copy" if versions == 1 else f"version {version} of {versions}"
    return f'[Document "{name}": identical to {which} above]'


def apply_references(text: str, references: Sequence[Reference]) -> str:
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
    versions: dict[str, list[str]] = {}
    expanded: list[str] = []
    for text in texts:
        whole = text if text in as_written else _expand_text(text, versions)
        if whole is None:
            return None
        expanded.append(whole)
        for document in find_documents(whole):
            known, copy = versions.setdefault(document.name, []), whole[document.start : document.end]
            if copy not in known:
                known.append(copy)
    return expanded


def _expand_text(text: str, versions: dict[str, list[str]]) -> str | None:
    if '": identical to ' not in text:
        return text
    parts: list[str] = []
    at = 0
    # References and first copies alternate within a text, so versions are read up to each reference.
    for reference in _REFERENCE.finditer(text):
        before = text[at : reference.start()]
        parts.append(before)
        known = [*versions.get(reference[1], []), *_copies_of(reference[1], "".join(parts), versions)]
        number, count = int(reference[2] or 1), int(reference[3] or 1)
        if count != len(known) or not 1 <= number <= count:
            return None
        parts.append(known[number - 1])
        at = reference.end()
    return "".join((*parts, text[at:]))


def _copies_of(name: str, text: str, versions: dict[str, list[str]]) -> list[str]:
    """Return the documents of a name whose first copies are in a text."""
    copies = [text[one.start : one.end] for one in find_documents(text) if one.name == name]
    return [one for one in dict.fromkeys(copies) if one not in versions.get(name, [])]
