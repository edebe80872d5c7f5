"""Write blocks: notes that a reply contains for Lamella to save, in the syntax of two other programs.

The two forms are ``<writeToFile>`` with a path and a content, and a fenced JSON block of type ``composer``. Blocks
inside other fences or inline code are examples and are skipped. A block without an end is not complete yet and is
skipped, too.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from lamella.core.text.content import INLINE_CODE, is_closing_fence, opening_fence

_OPENING_TAG, _CLOSING_TAG = "<writeToFile>", "</writeToFile>"
_BLOCK_HEAD = re.compile(r"<writeToFile>\s*<path>([^<>\n]*)</path>\s*<content>")
_CONTENT_CLOSING_TAG = "</content>"
_INLINE_CODE_SPAN = re.compile(INLINE_CODE, re.DOTALL)
_COMPOSER_TYPE = "composer"
# A text that contains neither of these has no block, which is cheap to check for most replies.
_BLOCK_HINTS = (_OPENING_TAG, f'"{_COMPOSER_TYPE}"')


class _WriteBlock(NamedTuple):
    """A ``<writeToFile>`` block: its path, its content, its complete source text, and the position after it."""

    path: str
    content: str
    source: str
    end: int


def parse_write_blocks(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return the blocks of a reply in order, each as path, content and the complete source text of the block."""
    if not any(hint in text for hint in _BLOCK_HINTS):
        return ()
    return tuple(_iter_blocks(text))


def _iter_blocks(text: str) -> Iterator[tuple[str, str, str]]:
    at, end = 0, len(text)
    while at < end:
        stop = _find_line_end(text, at)
        line = text[at:stop].rstrip("\n")
        fence = opening_fence(line)
        if fence is not None:
            at, body, whole = _skip_fence(text, at, stop, fence=fence)
            if line.strip(" `~").lower() in ("json", "") and (found := _parse_composer(body)) is not None:
                yield (*found, whole)
            continue
        block = _find_write_block_in_line(text, at, stop)
        if block is None:
            at = stop
            continue
        yield block.path, block.content, block.source
        at = block.end


def _find_line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _skip_fence(text: str, at: int, inner: int, *, fence: str) -> tuple[int, str, str]:
    """Return the position after a fence, its body, and its complete text.

    A fence without an end extends to the end of the text and has an empty body.
    """
    begun = at
    at = inner
    while at < len(text):
        stop = _find_line_end(text, at)
        if is_closing_fence(text[at:stop].rstrip("\n"), fence):
            return stop, text[inner:at], text[begun:stop]
        at = stop
    return len(text), "", text[begun:]


def _find_write_block_in_line(text: str, at: int, stop: int) -> _WriteBlock | None:
    """Return the block that begins on this line outside of inline code, or None."""
    codes = [match.span() for match in _INLINE_CODE_SPAN.finditer(text, at, stop)]
    while (at := text.find(_OPENING_TAG, at, stop)) >= 0:
        if not any(first <= at < last for first, last in codes):
            return _parse_write_block(text, at)
        at += len(_OPENING_TAG)
    return None


def _parse_write_block(text: str, at: int) -> _WriteBlock | None:
    """Return the block that begins at this position, or None if it has no path or no end."""
    head = _BLOCK_HEAD.match(text, at)
    if head is None:
        return None
    end = text.find(_CLOSING_TAG, head.end())
    while end >= 0:
        # The content may mention either closing tag. Only both in a row end it.
        content = text[head.end() : end].rstrip()
        if content.endswith(_CONTENT_CLOSING_TAG):
            last = end + len(_CLOSING_TAG)
            return _WriteBlock(
                path=head[1].strip(),
                content=_strip_line_break_after_tag(content.removesuffix(_CONTENT_CLOSING_TAG)),
                source=text[at:last],
                end=last,
            )
        end = text.find(_CLOSING_TAG, end + 1)
    return None


def _strip_line_break_after_tag(content: str) -> str:
    """Return the content without the line break after its opening tag, ending with a line break."""
    text = content.removeprefix("\r").removeprefix("\n")
    return text if not text or text.endswith("\n") else f"{text}\n"


def _parse_composer(body: str) -> tuple[str, str] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("type") != _COMPOSER_TYPE or not isinstance(found.get("path"), str):
        return None
    content, canvas = found.get("content"), found.get("canvas_json")
    if isinstance(canvas, dict):
        content = json.dumps(canvas, ensure_ascii=False, indent=2)
    return (found["path"].strip(), _strip_line_break_after_tag(content)) if isinstance(content, str) else None
