"""Contents: what of a file goes into an index. A note has names, tags and properties; any other file has its text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamella.adapters.retrieval.chunks import Chunk, divide
from lamella.adapters.sources.markdown.front import read_front, split_front
from lamella.adapters.sources.markdown.model import PropertyValue
from lamella.adapters.sources.markdown.tags import fold_tag, read_aliases, read_front_tags
from lamella.core.text.content import normalise

# What is beyond this is data: it is in the vault, and nobody searches for all of its words.
MOST_CHARS = 4_000_000
_OWN = re.compile(
    r"^(?:title|tags?|alias(?:es)?)[ \t]*:.*(?:\n(?:[ \t]+|-|(?=\n)).*)*\n?", re.MULTILINE | re.IGNORECASE
)
_PLAIN_TITLE = re.compile(r"title:[ \t]+([A-Za-z][\w ,.()/-]*)\n?")


class NoteContents(NamedTuple):
    """A file as it is found: by its title and aliases, its tags, the rest of its front matter, and its chunks."""

    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    properties: str
    chunks: Sequence[Chunk]


def read_contents(path: str, text: str, *, markdown: bool) -> NoteContents:
    """What of a file goes into an index."""
    text = normalise(text[:MOST_CHARS]) if "\r" in text or text.startswith("\ufeff") else text[:MOST_CHARS]
    stem = name_stem(path)
    if not markdown:
        chunks, _ = divide(text)
        return NoteContents(stem, (), (), "", chunks)
    begin, end, start = split_front(text)
    front, rest = _read_properties(text[begin:end])
    chunks, inline = divide(text[start:])
    title = front.get("title")
    return NoteContents(
        title=title if isinstance(title, str) and title.strip() else stem,
        aliases=tuple(read_aliases(front)),
        tags=_fold_all([*read_front_tags(front), *inline]),
        properties=rest,
        chunks=chunks,
    )


def name_stem(path: str) -> str:
    """The name of a file without its folder and its ending."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _read_properties(block: str) -> tuple[Mapping[str, PropertyValue], str]:
    """Title, tags and aliases among properties, and the text of the others.

    YAML takes long, and what stands between these is not asked for: only they are parsed.
    """
    own = _OWN.findall(block)
    if not own and not block.lstrip().startswith("{"):
        return {}, block
    plain = _PLAIN_TITLE.fullmatch(own[0]) if len(own) == 1 else None
    if plain:
        return {"title": plain[1].strip()}, _OWN.sub("", block)
    found, warning = read_front("".join(own) if own else block)
    return {name.lower(): value for name, value in found.items()} if not warning else {}, _OWN.sub("", block)


def _fold_all(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(folded for tag in tags if (folded := fold_tag(tag))))
