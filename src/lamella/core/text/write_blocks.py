"""Write blocks: notes that an answer gives in its text, to be written, by the marks of programs people come from.

There are two: ``<writeToFile>`` with a path and a content, and a fenced block of JSON of type ``composer``. What stands
in any other fence, or in code marks, is shown and not meant; what has no end yet is no block.
"""

import json
import re
from collections.abc import Iterator

from lamella.core.text.fences import INLINE_CODE, find_opening, is_closing

_TAG, _END = "<writeToFile>", "</writeToFile>"
_HEAD = re.compile(r"<writeToFile>\s*<path>([^<>\n]*)</path>\s*<content>")
_INNER_END = "</content>"
_CODE = re.compile(INLINE_CODE, re.DOTALL)
_COMPOSER = "composer"
# Where one of these is not, there is no block: most answers are done with a look.
_HINTS = (_TAG, f'"{_COMPOSER}"')


def find_write_blocks(text: str) -> tuple[tuple[str, str, str], ...]:
    """Each block of an answer, in order: the path, the content, and the block as it stands."""
    if not any(hint in text for hint in _HINTS):
        return ()
    return tuple(_walk(text))


def _walk(text: str) -> Iterator[tuple[str, str, str]]:
    at, end = 0, len(text)
    while at < end:
        stop = _find_line_end(text, at)
        line = text[at:stop].rstrip("\n")
        fence = find_opening(line)
        if fence is not None:
            at, body, whole = _skip_fence(text, at, stop, fence=fence)
            if line.strip(" `~").lower() in ("json", "") and (found := _read_composer(body)) is not None:
                yield (*found, whole)
            continue
        block = _find_block(text, at, stop)
        if block is None:
            at = stop
            continue
        path, content, whole, at = block
        yield path, content, whole


def _find_line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _skip_fence(text: str, at: int, inner: int, *, fence: str) -> tuple[int, str, str]:
    """Where a fence is over, what stands in it, and all of it; one without an end goes to the end and holds nothing."""
    begun = at
    at = inner
    while at < len(text):
        stop = _find_line_end(text, at)
        if is_closing(text[at:stop].rstrip("\n"), fence):
            return stop, text[inner:at], text[begun:stop]
        at = stop
    return len(text), "", text[begun:]


def _find_block(text: str, at: int, stop: int) -> tuple[str, str, str, int] | None:
    """A block that begins on this line, outside of code marks: path, content, all of it, and where it ends."""
    codes = [match.span() for match in _CODE.finditer(text, at, stop)]
    while (at := text.find(_TAG, at, stop)) >= 0:
        if not any(first <= at < last for first, last in codes):
            return _read_block(text, at)
        at += len(_TAG)
    return None


def _read_block(text: str, at: int) -> tuple[str, str, str, int] | None:
    head = _HEAD.match(text, at)
    if head is None:
        return None
    end = text.find(_END, head.end())
    while end >= 0:
        # A content may speak of both tags; together they end it.
        content = text[head.end() : end].rstrip()
        if content.endswith(_INNER_END):
            last = end + len(_END)
            return head[1].strip(), _trim(content.removesuffix(_INNER_END)), text[at:last], last
        end = text.find(_END, end + 1)
    return None


def _trim(content: str) -> str:
    """The content without the ends of lines that set it off from its tags; a note ends with one."""
    text = content.removeprefix("\r").removeprefix("\n")
    return text if not text or text.endswith("\n") else f"{text}\n"


def _read_composer(body: str) -> tuple[str, str] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("type") != _COMPOSER or not isinstance(found.get("path"), str):
        return None
    content, canvas = found.get("content"), found.get("canvas_json")
    if isinstance(canvas, dict):
        content = json.dumps(canvas, ensure_ascii=False, indent=2)
    return (found["path"].strip(), _trim(content)) if isinstance(content, str) else None
