"""Links: what ``[[Note#Part|words]]`` and ``[words](note.md#part)`` lead to."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from lamella.adapters.sources.markdown.model import NoteLink

_WIKI = re.compile(r"\[\[[^\[\]\n]+\]\]")
# In a table the bar between name and words is written with a backslash.
_BAR = re.compile(r"\\?\|")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def make_wiki_link(source: str, start: int) -> NoteLink | None:
    """The link that a source in double brackets is; none where it breaks over lines or names nothing."""
    is_embed = source.startswith("!")
    inner = source[2 + is_embed : -2]
    name, *words = _BAR.split(inner, maxsplit=1)
    target, _, subpath = name.partition("#")
    if "\n" in inner or not (target.strip() or subpath.strip()):
        return None
    return NoteLink(
        target=target.strip(),
        subpath=f"#{subpath.strip()}" if subpath.strip() else "",
        alias=words[0].strip() if words else "",
        start=start,
        end=start + len(source),
        is_embed=is_embed,
        is_wiki=True,
    )


def make_markdown_link(source: str, start: int, *, target: str, is_embed: bool) -> NoteLink | None:
    """The link that a source with an address is; an address of the world stays whole, as it is written."""
    is_external = _ADDRESS.match(target) is not None
    path, _, subpath = (target, "", "") if is_external else target.partition("#")
    if not path and not subpath:
        return None
    return NoteLink(
        target=path if is_external else unquote(path),
        subpath=f"#{unquote(subpath)}" if subpath else "",
        alias=_find_words(source[2 if is_embed else 1 :]),
        start=start,
        end=start + len(source),
        is_embed=is_embed,
        is_wiki=False,
        is_external=is_external,
    )


def find_front_links(text: str, begin: int, end: int) -> Iterator[NoteLink]:
    """Links among properties. None of them is an embed: nothing is shown there."""
    for match in _WIKI.finditer(text, begin, end):
        link = make_wiki_link(match.group(), match.start())
        if link is not None:
            yield link


def _find_words(source: str) -> str:
    """What stands before the bracket that closes the one before it."""
    depth = 0
    for at, sign in enumerate(source):
        if sign == "[":
            depth += 1
        elif sign == "]":
            if not depth:
                return source[:at]
            depth -= 1
    return ""
