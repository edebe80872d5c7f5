"""Lines of a memory file: what of a markdown text is a fact, and the same text with one more, less or changed.

Each line is a fact, with or without a bullet, and lines that are indented below it belong to it. Headings, rules, blank
lines and comments are the reader's: they stay where they are, and are not facts.
"""

import re
from collections.abc import Iterator
from hashlib import sha256

from lamella.core.prompt.layers.memory import clean_fact
from lamella.holdings import Fact, FactKind

_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|$)")
_NOTED = "noted by a model"
_CHAT = "chat "
_ID_DIGITS = 8

# A fact, and the lines of its file that it takes: the first, and the first behind it.
Found = tuple[Fact, int, int]


def find_facts(text: str, *, recent: bool) -> list[Found]:
    """Every fact of a file's text; of ``recent`` conversations each line is one."""
    found: list[Found] = []
    for start, end, raw in _find_lines(text):
        said = clean_fact(_BULLET.sub("", _COMMENT.sub(" ", raw), count=1))
        if any(character.isalnum() for character in said):
            found.append((_make_fact(said, raw, recent=recent), start, end))
    return found


def _find_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """What may be facts: where each begins and ends, and its lines as one."""
    start, parts, in_comment = 0, [""], False
    for number, line in enumerate(text.split("\n")):
        goes_on = bool(parts[0]) and line[:1].isspace() and line.strip() and not _BULLET.match(line)
        if goes_on and not in_comment:
            parts.append(line)
            continue
        if parts[0]:
            yield start, number, " ".join(parts)
        in_comment, plain = _leave_comment(line, in_comment=in_comment)
        start, parts = number, ["" if not plain.strip() or _HEADING.match(plain) else line if plain == line else plain]
    if parts[0]:
        yield start, start + len(parts), " ".join(parts)


def _leave_comment(line: str, *, in_comment: bool) -> tuple[bool, str]:
    """Whether a comment is open after a line, and what of the line stands outside of those of several lines."""
    if in_comment:
        _, ends, line = line.partition("-->")
        if not ends:
            return True, ""
    open_at = line.rfind("<!--")
    opens = open_at >= 0 and "-->" not in line[open_at:]
    return opens, line[:open_at] if opens else line


def _make_fact(said: str, raw: str, *, recent: bool) -> Fact:
    told = [comment.strip() for comment in _COMMENT.findall(raw)]
    chat = next((one.removeprefix(_CHAT).strip() for one in told if one.startswith(_CHAT)), "")
    kind = FactKind.RECENT if recent else FactKind.NOTED if _NOTED in told else FactKind.SAVED
    return Fact(id=sha256(said.encode()).hexdigest()[:_ID_DIGITS], kind=kind, text=said, chat=chat)


def make_fact(text: str, kind: FactKind, *, chat: str = "") -> Fact:
    """A fact as its line would be read back."""
    return find_facts(_write_line(_hide_comments(text), kind, chat), recent=kind is FactKind.RECENT)[0][0]


def write_fact(fact: Fact) -> str:
    """The line of a fact."""
    return _write_line(fact.text, fact.kind, fact.chat)


def _write_line(text: str, kind: FactKind, chat: str) -> str:
    # A key is letters and digits, or a name of old: what would end the comment is no part of it.
    mark = _NOTED if kind is FactKind.NOTED else f"{_CHAT}{chat.replace('--', '')}" if chat else ""
    line = f"- {' '.join(text.split())}"
    return f"{line} <!-- {mark} -->" if mark else line


def _hide_comments(text: str) -> str:
    """The same words; what looks like a comment stays readable, and is none."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def append_line(text: str, line: str, *, heading: str) -> str:
    """A file's text with one more line at its end; an empty one gets a heading first."""
    before = text.rstrip("\n") or f"# {heading}\n"
    return f"{before}\n{line}\n"


def replace_lines(text: str, found: Found, line: str | None) -> str:
    """A file's text with another line in place of a fact, or without it; all else stays as it was."""
    _, start, end = found
    lines = text.split("\n")
    return "\n".join((*lines[:start], *([] if line is None else [line]), *lines[end:]))
