"""Mentions: names in typed text that ask Lamella to attach something.

The forms are ``@path``, ``@"a path"``, ``@#tag``, ``@[[Note]]`` and ``[[Note]]``. A name may end in line numbers
(``plan.md:10-20``), a heading or a block (``plan.md#Costs``, ``plan.md#^id``). Text in code is skipped, and text in
braces belongs to templates. Words such as ``@vault`` are directives, which request a tool and name no file.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from lamella.core.text.content import iter_lines_with_code_flag

# Longer words are not read as paths.
_MAX_MENTION_CHARS = 1_000
_MAX_CANDIDATE_NAMES = 8
_INLINE_CODE = re.compile(r"`+[^`\n]*`+")
# An e-mail address has a letter before its @. Opening brackets, quotation marks and emphasis may precede a mention.
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
# Folders whose names have no letter: the parent, the home directory, the root, folders named after years and days.
_LETTERLESS_FOLDER = re.compile(r"(?:(?:\.\.?|~|\d+)?[/\\]\S*|\.\.|~)")
_LETTER = re.compile(r"[^\W\d_]")
_PUNCTUATION = re.compile(r"[,;:!?)\]}'\u2019\u201d\u00bb>*|]")
_TRAILING_PUNCTUATION = ".,;:!?)]}'\u2019\u201d\u00bb>*|"
_PATH_WITH_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")


# Words after ``@`` that are directives. A folder of such a name is mentioned as ``@vault/`` or ``@"vault"``.
TOOL_MENTIONS = frozenset({"vault", "web", "websearch", "memory", "composer"})


class MentionForm(StrEnum):
    """The syntax of a mention: a path, a path in quotation marks, a linked note, or a tag."""

    PATH = "path"
    QUOTED = "quoted"
    LINK = "link"
    TAG = "tag"


class Mention(NamedTuple):
    """A mention in a text: ``token`` as typed, and the names it may mean, the longest first."""

    token: str
    form: MentionForm
    candidate_names: tuple[str, ...]


class FilePart(NamedTuple):
    """A name read as a part of a file: its lines, or the section under a heading."""

    path: str
    lines: tuple[int, int] | None = None
    heading: str = ""


def find_mentions(text: str) -> list[Mention]:
    """Return the mentions in a text, in order and without duplicates."""
    if "@" not in text and "[[" not in text:
        return []
    found: dict[str, Mention] = {}
    for match in _MENTION.finditer(_mask_code(text)):
        mention = _parse_match(match)
        if mention is not None:
            found.setdefault(mention.token, mention)
    return list(found.values())


def parse_mention(name: str) -> Mention:
    """Parse a single name given to a command: a path, ``#tag`` or ``[[Note]]``, with or without ``@``."""
    match = _MENTION.fullmatch(f"@{name.removeprefix('@')}")
    mention = None if match is None else _parse_match(match)
    if mention is None or mention.form is MentionForm.PATH:
        return Mention(token=name, form=MentionForm.QUOTED, candidate_names=(name,))
    return mention._replace(token=name)


def iter_file_part_readings(name: str) -> Iterator[FilePart]:
    """Yield the ways to read a name as a part of a file: line numbers, then headings, longest path first."""
    lines = _PATH_WITH_LINES.fullmatch(name)
    if lines is not None:
        first = int(lines["first"])
        yield FilePart(path=lines["path"], lines=(first, int(lines["last"] or first)))
    path, mark, heading = name.rpartition("#")
    for _ in range(_MAX_CANDIDATE_NAMES):
        if not mark or not path:
            return
        yield FilePart(path=path, heading=heading)
        path, mark, above = path.rpartition("#")
        heading = f"{above}#{heading}"


def _parse_match(match: re.Match[str]) -> Mention | None:
    token = match.group()
    if match["tag"]:
        tag = match["tag"].strip("/")
        return Mention(token=token, form=MentionForm.TAG, candidate_names=(tag,)) if tag else None
    if match["quoted"]:
        return Mention(token=token, form=MentionForm.QUOTED, candidate_names=(match["quoted"],))
    if match["bare"]:
        return _parse_bare_word(match["bare"])
    name = (match["link"] or match["lone"]).partition("|")[0].strip()
    # Double brackets around numbers are a matrix, not a link.
    return Mention(token=token, form=MentionForm.LINK, candidate_names=(name,)) if _LETTER.search(name) else None


def _parse_bare_word(word: str) -> Mention | None:
    """Parse a word after ``@``.

    Punctuation at its end may belong to the sentence, and so may everything after a punctuation mark inside the word.
    Therefore the mention gets several readings.
    """
    if len(word) > _MAX_MENTION_CHARS:
        return None
    cuts = [stop.start() for stop in _PUNCTUATION.finditer(word)][::-1]
    shorter = (word[:cut].rstrip(_TRAILING_PUNCTUATION) for cut in cuts)
    readings = [name for name in dict.fromkeys((word, word.rstrip(_TRAILING_PUNCTUATION), *shorter)) if name]
    if not readings or not _LETTER.search(readings[-1]):
        # The name may consist of dots only, so dots are not stripped here.
        path = word.rstrip(_TRAILING_PUNCTUATION.replace(".", ""))
        found = _LETTERLESS_FOLDER.fullmatch(path) is not None
        return Mention(token=f"@{path}", form=MentionForm.PATH, candidate_names=(path,)) if found else None
    if any(name.casefold() in TOOL_MENTIONS for name in readings):
        return None
    shown = readings[1] if len(readings) > 1 and word.rstrip(_TRAILING_PUNCTUATION) == readings[1] else readings[0]
    return Mention(token=f"@{shown}", form=MentionForm.PATH, candidate_names=tuple(readings[:_MAX_CANDIDATE_NAMES]))


def _mask_code(text: str) -> str:
    """Replace code with backticks; the length of the text does not change."""
    if "`" not in text and "~~~" not in text:
        return text
    return "\n".join(
        "`" * len(line) if is_code else _INLINE_CODE.sub(lambda code: "`" * len(code.group()), line)
        for line, is_code in iter_lines_with_code_flag(text)
    )
