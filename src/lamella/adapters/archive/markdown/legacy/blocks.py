"""Context blocks inside message text, as old exports of other programs have them.

This is the one place where text is read back into artifacts. What is not surely a known block stays whole: a block
nobody knows becomes an ``unknown`` artifact, verbatim, and everything else is what was typed or answered.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape

from lamella.core.artifacts.kinds import KINDS, BlockForm
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.text.fences import walk_lines
from lamella.errors import BadInputError

# A block that says where its text was taken from; one of a query's answer says less than its kind needs to know.
_KINDS = {
    spec.tag: kind for kind, spec in KINDS.items() if spec.block is BlockForm.LOCATED and "query" not in spec.fields
}
# What tools of Obsidian Copilot gave back stands in a tag of the tool's name.
_TOOLS = frozenset(
    {
        "convertTimeBetweenTimezones", "fetchUrl", "getCurrentTime", "getFileTree", "getTagList", "getTimeInfoByEpoch",
        "getTimeRangeMs", "indexVault", "localSearch", "readNote", "updateMemory", "webSearch", "youtubeTranscription",
    }
)  # fmt: skip
# The other tags that it wrote itself. Only such a block is taken out of an answer: others are what the model said.
_ITS_OWN = _TOOLS.union(
    _KINDS,
    {
        "active_note_error", "active_web_tab", "additionalMatches", "embedded_note", "embedded_pdf",
        "note_context_error", "prior_context", "prior_context_note", "retrieved_document", "twitter_content",
        "use_tool", "variable", "vault_note",
    },
)  # fmt: skip
# No element of HTML has an underscore in its name, so such a tag is not what somebody typed about a web page.
_WITHOUT_UNDERSCORE = "|".join(sorted(name for name in _ITS_OWN if "_" not in name))
_TAG = re.compile(rf"<([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|{_WITHOUT_UNDERSCORE})(?: [^<>]*)?>")
_OPENING = re.compile(r"<(\w+)[ >]")
# A closing tag ends its line or begins it; between other words it is quoted.
_CLOSING = re.compile(r"</(\w+)>\s*$")
_CLOSING_FIRST = re.compile(r"\s*</(\w+)>")
_RESULT = re.compile(rf"Tool '({'|'.join(sorted(_TOOLS))})' result: ")
_CONTENT, _CONTENT_END = "<content>", "</content>"
_FIELD = re.compile(r"<(title|path|url|start_line|end_line)>")
_SOURCE = re.compile(r'<\w+ [^<>]*?\bsource="([^"<>]*)"')
_LINE_DIGITS = 9
_LABEL = "[User query]:"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnparsedBlock:
    """A block that could not be read: its tag, what it says it was taken from, and the artifact that holds it whole."""

    tag: str
    source: str
    artifact: Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A message's own text, and what stood in it as blocks; some of those could not be read."""

    typed: str
    artifacts: tuple[Artifact, ...]
    unparsed: tuple[UnparsedBlock, ...] = ()


def extract_blocks(text: str, *, is_answer: bool = False) -> Extract:
    """Part a message into what was typed, or answered, and the context blocks around it."""
    if "</" not in text and "' result: " not in text:
        return Extract(typed=text, artifacts=())
    lines = text.split("\n")
    code = [is_code for _, is_code in walk_lines(text)]
    ends = _BlockEnds(lines)
    typed: list[str] = []
    artifacts: list[Artifact] = []
    unparsed: list[UnparsedBlock] = []
    at = 0
    while at < len(lines):
        tag = _find_opening(lines[at], is_answer=is_answer) if not code[at] else None
        end = ends.find(tag, at) if tag else None
        if tag and end is not None:
            last, cut = end
            block = "\n".join((*lines[at:last], lines[last][:cut])) if last > at else lines[at][:cut]
            artifacts.append(_read_block(tag, block))
            if artifacts[-1].kind is Kind.UNKNOWN:
                unparsed.append(UnparsedBlock(tag=tag, source=_find_source(block), artifact=artifacts[-1]))
            typed += [rest] if (rest := lines[last][cut:].strip()) else []
            at = last + 1
        else:
            typed.append(lines[at])
            at += 1
    if not artifacts:
        return Extract(typed=text, artifacts=())
    own = "\n".join(typed).strip()
    own = own if is_answer else own.removeprefix(_LABEL).lstrip()
    return Extract(typed=own, artifacts=tuple(artifacts), unparsed=tuple(unparsed))


def _find_opening(line: str, *, is_answer: bool) -> str | None:
    """The tag a line opens; one that nobody knows must stand on a line of its own, from its beginning."""
    own = line.lstrip(" \t")
    result, match = _RESULT.match(own), _TAG.match(own)
    if result is not None or match is None:
        return None if result is None else result[1]
    alone = _is_alone(match, own)
    if match[1] in _ITS_OWN:
        return match[1] if is_answer or match[1] in _KINDS or match[1] in _TOOLS or alone else None
    return match[1] if alone and own == line and not is_answer else None


def _is_alone(match: re.Match[str], line: str) -> bool:
    return not line[match.end() :].strip()


class _BlockEnds:
    """Where each block is closed, by line and place in it; blocks of the same tag inside it are part of it.

    All are found in one walk: a search for each of them would walk over the same lines again and again.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._matched: dict[int, tuple[int, int]] = {}
        self._closings: dict[str, list[tuple[int, int]]] = {}
        opened: dict[str, list[int]] = {}
        for at, line in enumerate(lines):
            own = line.lstrip(" \t")
            if opening := _OPENING.match(own):
                opened.setdefault(opening[1], []).append(at)
            elif _RESULT.match(own):
                self._matched[at] = (at, len(line))
            closed = _find_closing(line, opening[1] if opening else "")
            if closed is not None:
                tag, cut = closed
                self._closings.setdefault(tag, []).append((at, cut))
                if opened.get(tag):
                    self._matched[opened[tag].pop()] = (at, cut)

    def find(self, tag: str, start: int) -> tuple[int, int] | None:
        """Where the block that a line opens ends: where it is closed, else where any of its tag is."""
        if start in self._matched:
            return self._matched[start]
        closings = self._closings.get(tag, ())
        at = bisect_left(closings, (start, 0))
        return closings[at] if at < len(closings) else None


def _find_closing(line: str, opened: str) -> tuple[str, int] | None:
    """The tag that a line closes and where, if it does; ``opened`` is the one that it opens itself."""
    if "</" not in line:
        return None
    if closing := _CLOSING.search(line):
        return closing[1], len(line)
    if closing := _CLOSING_FIRST.match(line):
        return closing[1], closing.end()
    at = line.find(f"</{opened}>") if opened in _TOOLS else -1
    return (opened, at + len(f"</{opened}>")) if at >= 0 else None


def _read_block(tag: str, block: str) -> Artifact:
    kind = _KINDS.get(tag)
    start, end = block.find(_CONTENT), block.rfind(_CONTENT_END)
    if kind is None or not 0 <= start < end:
        return _unknown(block)
    fields = _read_fields(block[:start])
    text = block[start + len(_CONTENT) : end].removeprefix("\n").removesuffix("\n")
    source = Source(path=fields.get("path"), url=fields.get("url"), lines=_lines(fields))
    try:
        return make_artifact(kind, text=text, source=source, title=fields.get("title", ""))
    except BadInputError:
        return _unknown(block)


def _read_fields(head: str) -> dict[str, str]:
    """The fields before a block's content, each up to where it is closed."""
    fields: dict[str, str] = {}
    never_closed: set[str] = set()
    at = 0
    for opening in _FIELD.finditer(head):
        name = opening[1]
        if opening.start() < at or name in never_closed:
            continue
        end = head.find(f"</{name}>", opening.end())
        if end < 0:
            never_closed.add(name)
            continue
        fields[name] = unescape(head[opening.end() : end].strip())
        at = end
    return fields


def _find_source(block: str) -> str:
    """What a block says it was taken from, if it does."""
    said = _SOURCE.match(block)
    if said is not None:
        return unescape(said[1])
    fields = _read_fields(block)
    return fields.get("path") or fields.get("url") or ""


def _unknown(block: str) -> Artifact:
    return make_artifact(Kind.UNKNOWN, text=block, source=Source())


def _lines(fields: dict[str, str]) -> tuple[int, int] | None:
    first, last = fields.get("start_line", ""), fields.get("end_line", "")
    if not all(number.isdecimal() and len(number) <= _LINE_DIGITS for number in (first, last)):
        return None
    return int(first), int(last)
