"""Mentions: what a typed text names to be attached, told from all its other words.

``@path``, ``@"a path"``, ``@#tag``, ``@[[Note]]`` and ``[[Note]]``. A name may end in lines (``plan.md:10-20``) or in a
heading or a block (``plan.md#Costs``, ``plan.md#^id``). What stands in code is code, and what stands in braces belongs
to templates.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lamella.core.text.fences import walk_lines

# A path that is longer names no file anywhere.
_LONGEST = 1_000
_MOST_READINGS = 8
_CODE = re.compile(r"`+[^`\n]*`+")
# An address has a letter before its @; whatever opens a bracket, a quotation or an emphasis may stand there.
_MENTION = re.compile(
    r"""(?:(?<![^\s(\[<"'\u201c\u2018\u00ab\u201e*,;:|\u2014\u2013])@(?:
            "(?P<quoted>[^"\n]+)"
          | !?\[\[(?P<link>[^\[\]\n]+)\]\]
          | \#(?P<tag>[\w/-]*[^\W\d_][\w/-]*)
          | (?P<bare>(?:(?![,;]@)[^\s"`])+)
        )
      | (?<![{\w\]])!?\[\[(?P<lone>[^\s\[\]](?:[^\[\]\n]*[^\s\[\]])?)\]\](?!\}))""",
    re.VERBOSE,
)
_LETTER = re.compile(r"[^\W\d_]")
_STOPS = re.compile(r"[,;:!?)\]}'\u2019\u201d\u00bb>*|]")
_ENDS = ".,;:!?)]}'\u2019\u201d\u00bb>*|"
_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")


class MentionForm(StrEnum):
    """How something is named: by a path, by a path in quotation marks, as a linked note, or by a tag."""

    PATH = "path"
    QUOTED = "quoted"
    LINK = "link"
    TAG = "tag"


class Mention(NamedTuple):
    """One thing that a text names: the words as typed, and what its name may be, the longest reading first."""

    token: str
    form: MentionForm
    readings: tuple[str, ...]


class MentionPart(NamedTuple):
    """A name taken as a part of something: its lines, or what stands under a heading."""

    path: str
    lines: tuple[int, int] | None = None
    heading: str = ""


def find_mentions(text: str) -> list[Mention]:
    """Everything that a text names, each once, in order."""
    if "@" not in text and "[[" not in text:
        return []
    found: dict[str, Mention] = {}
    for match in _MENTION.finditer(_without_code(text)):
        mention = _read(match)
        if mention is not None:
            found.setdefault(mention.token, mention)
    return list(found.values())


def read_name(name: str) -> Mention:
    """A name by itself, as a command takes it: a path, ``#tag`` or ``[[Note]]``, with or without an @."""
    match = _MENTION.fullmatch(f"@{name.removeprefix('@')}")
    mention = None if match is None else _read(match)
    if mention is None or mention.form is MentionForm.PATH:
        return Mention(token=name, form=MentionForm.QUOTED, readings=(name,))
    return mention._replace(token=name)


def split_parts(name: str) -> Iterator[MentionPart]:
    """What a name may mean besides a whole file: lines of one, else a heading in one, the longest path first."""
    lines = _LINES.fullmatch(name)
    if lines is not None:
        first = int(lines["first"])
        yield MentionPart(path=lines["path"], lines=(first, int(lines["last"] or first)))
    path, mark, heading = name.rpartition("#")
    for _ in range(_MOST_READINGS):
        if not mark or not path:
            return
        yield MentionPart(path=path, heading=heading)
        path, mark, above = path.rpartition("#")
        heading = f"{above}#{heading}"


def _read(match: re.Match[str]) -> Mention | None:
    token = match.group()
    if match["tag"]:
        tag = match["tag"].strip("/")
        return Mention(token=token, form=MentionForm.TAG, readings=(tag,)) if tag else None
    if match["quoted"]:
        return Mention(token=token, form=MentionForm.QUOTED, readings=(match["quoted"],))
    if match["bare"]:
        return _read_bare(match["bare"])
    name = (match["link"] or match["lone"]).partition("|")[0].strip()
    # Numbers in brackets are a matrix.
    return Mention(token=token, form=MentionForm.LINK, readings=(name,)) if _LETTER.search(name) else None


def _read_bare(word: str) -> Mention | None:
    """A word after an @: what ends it may belong to the sentence, and so may what follows a stop within it."""
    if len(word) > _LONGEST:
        return None
    cuts = [stop.start() for stop in _STOPS.finditer(word)][::-1]
    shorter = (word[:cut].rstrip(_ENDS) for cut in cuts)
    readings = [name for name in dict.fromkeys((word, word.rstrip(_ENDS), *shorter)) if name]
    if not readings or not _LETTER.search(readings[-1]):
        return None
    shown = readings[1] if len(readings) > 1 and word.rstrip(_ENDS) == readings[1] else readings[0]
    return Mention(token=f"@{shown}", form=MentionForm.PATH, readings=tuple(readings[:_MOST_READINGS]))


def _without_code(text: str) -> str:
    """The text with its code blotted out, in as many characters."""
    if "`" not in text and "~~~" not in text:
        return text
    return "\n".join(
        "`" * len(line) if is_code else _CODE.sub(lambda code: "`" * len(code.group()), line)
        for line, is_code in walk_lines(text)
    )
