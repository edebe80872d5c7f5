"""Documents that a host glued into a message: found by the frames that hosts put around them, and by nothing else.

A frame stands on lines of its own and says what it holds by a path or an address. What is short, in no frame, or in one
without a name stays where it is: then it is what was typed.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

from lamella.attach import Attachment, Code, Note, Picture, describe_file, describe_page
from lamella.core.text.addresses import is_page

# Shorter ones cost less where they stand than a name for them does.
_LEAST = 200
_MOST = 500
_BLOCKS = (
    "note_context", "active_note", "url_content", "web_tab_context", "youtube_video_context", "pdf_context",
    "office_context", "canvas_context", "code_context", "embedded_note", "vault_note", "retrieved_document",
)  # fmt: skip
_TAGGED = "|".join((*_BLOCKS, "document", "file"))
# What opens a frame, at the beginning of a line: a tag with or without attributes, or a fence with a file's name.
_OPENING = re.compile(
    rf"^(?:<(?P<tag>{_TAGGED})(?P<attributes>(?: [^<>\n]{{0,400}})?)>"
    r"|(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]{1,300})$)",
    re.MULTILINE,
)
_ATTRIBUTE = re.compile(r'\b(?:path|name|source|filename|title|url)="([^"]{1,1000})"')
_FIELDS = re.compile(r"<(path|url|source|title)>([^<\n]{1,1000})</\1>")
_CONTENT = re.compile(r"<(content|document_content|document_contents)>\n?")
_WORD = re.compile(r"""(?:^|[\s:="'])((?:[\w.@-]+/)*[\w@-][\w.@-]*\.[A-Za-z][A-Za-z0-9]{0,7})(?:["']|\s|$)""")
_WRAPPER = re.compile(r"^</?documents>\n?", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")


def part_message(text: str, *, beside: bool = False) -> tuple[str, list[Attachment]]:
    """What was typed, and the documents that were glued to it.

    All of it is typed where nothing else would be left, unless it stands ``beside`` what was.
    """
    found: list[Attachment] = []
    kept: list[str] = []
    missing: set[str] = set()
    at = 0
    while len(found) < _MOST and (opening := _OPENING.search(text, at)):
        end, attachment = _read_frame(text, opening, missing)
        if attachment is not None:
            kept.append(text[at : opening.start()])
            found.append(attachment)
        else:
            kept.append(text[at:end])
        at = end
    typed = _GAP.sub("\n\n", _WRAPPER.sub("", "".join((*kept, text[at:])))).strip() if found else text
    return (typed, found) if typed or beside else (text, [])


def _read_frame(text: str, opening: re.Match[str], missing: set[str]) -> tuple[int, Attachment | None]:
    """Where a frame ends, and what it holds; the end of its first line where it is none."""
    closing = f"</{opening['tag']}>" if opening["tag"] else f"\n{opening['fence']}"
    # What is not found from here is not found from any later place either.
    end = -1 if closing in missing else text.find(closing, opening.end())
    if end < 0:
        missing.add(closing)
        return opening.end(), None
    after = end + len(closing)
    if text[after : after + 1] not in ("", "\n"):
        return opening.end(), None
    inner = text[opening.end() : end]
    made = _read_tagged(opening, inner) if opening["tag"] else _read_fenced(opening["info"], inner.removeprefix("\n"))
    return after if made is not None or opening["fence"] else opening.end(), made


def _read_tagged(opening: re.Match[str], inner: str) -> Attachment | None:
    content = _CONTENT.search(inner)
    head = inner if content is None else inner[: content.start()]
    given = dict(_FIELDS.findall(head[:5_000])) if content is not None else {}
    attribute = _ATTRIBUTE.search(opening["attributes"])
    name = given.get("path") or given.get("url") or given.get("source") or (attribute[1] if attribute else None)
    if name is None or not name.strip():
        return None
    body = inner if content is None else inner[content.end() :].rpartition(f"</{content[1]}>")[0]
    return _make(unescape(name.strip()), body, title=unescape(given.get("title", "")))


def _read_fenced(info: str, inner: str) -> Attachment | None:
    named = _WORD.search(info)
    return None if named is None else _make(named[1], inner, make=lambda path: Code(path=path, text=inner))


def _make(
    name: str, text: str, *, title: str = "", make: Callable[[str], Attachment] | None = None
) -> Attachment | None:
    body = text.strip("\n")
    if len(body) < _LEAST:
        return None
    if make is not None:
        return make(name)
    wanted = describe_page(name) if is_page(name) else describe_file(name)
    # A picture has no text: what stands in a frame of that name is about one.
    return replace(Note(path=name) if isinstance(wanted, Picture) else wanted, text=body, title=title)
