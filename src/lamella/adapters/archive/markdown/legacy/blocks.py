"""Context blocks inside message text, as old exports of other programs have them.

This is the one place where text is read back into artifacts. What is not surely a known block stays whole: a block
nobody knows becomes an ``unknown`` artifact, verbatim, and everything else is what the user typed.
"""

import re
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
# No element of HTML has an underscore in its name, so such a tag is not what somebody typed about a web page.
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)(?: [^<>]*)?>")
_CLOSING = re.compile(r"</(\w+)>\s*$")
_CONTENT = re.compile(r"<content>(.*)</content>", re.DOTALL)
_FIELD = re.compile(r"<(title|path|url|start_line|end_line)>(.*?)</\1>", re.DOTALL)
_LABEL = "[User query]:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A message's own text, and what stood in it as blocks."""

    typed: str
    artifacts: tuple[Artifact, ...]


def extract_blocks(text: str) -> Extract:
    """Part a message into what the user typed and the context blocks around it."""
    lines = text.split("\n")
    code = [is_code for _, is_code in walk_lines(text)]
    last_closings = {match[1]: at for at, line in enumerate(lines) if (match := _CLOSING.search(line))}
    typed: list[str] = []
    artifacts: list[Artifact] = []
    at = 0
    while at < len(lines):
        tag = _opening(lines[at]) if not code[at] else None
        end = _closing(lines, at, tag) if tag and last_closings.get(tag, -1) >= at else None
        if tag and end is not None:
            artifacts.append(_read_block(tag, "\n".join(lines[at : end + 1])))
            at = end + 1
        else:
            typed.append(lines[at])
            at += 1
    if not artifacts:
        return Extract(typed=text, artifacts=())
    own = "\n".join(typed).strip()
    return Extract(typed=own.removeprefix(_LABEL).lstrip(), artifacts=tuple(artifacts))


def _opening(line: str) -> str | None:
    """The tag a line opens; one that nobody knows must stand on a line of its own."""
    match = _TAG.match(line)
    if match is None:
        return None
    return match[1] if match[1] in _KINDS or not line[match.end() :].strip() else None


def _closing(lines: list[str], start: int, tag: str) -> int | None:
    """The line that closes the block; blocks of the same tag inside it are part of it."""
    depth = 0
    first = None
    for at in range(start, len(lines)):
        depth += lines[at].startswith((f"<{tag}>", f"<{tag} "))
        if lines[at].rstrip().endswith(f"</{tag}>"):
            first = at if first is None else first
            depth -= 1
            if depth == 0:
                return at
    return first


def _read_block(tag: str, block: str) -> Artifact:
    content = _CONTENT.search(block)
    kind = _KINDS.get(tag)
    if kind is None or content is None:
        return _unknown(block)
    fields = {name: unescape(value.strip()) for name, value in _FIELD.findall(block[: content.start()])}
    text = content[1].removeprefix("\n").removesuffix("\n")
    source = Source(path=fields.get("path"), url=fields.get("url"), lines=_lines(fields))
    try:
        return make_artifact(kind, text=text, source=source, title=fields.get("title", ""))
    except BadInputError:
        return _unknown(block)


def _unknown(block: str) -> Artifact:
    return make_artifact(Kind.UNKNOWN, text=block, source=Source())


def _lines(fields: dict[str, str]) -> tuple[int, int] | None:
    first, last = fields.get("start_line", ""), fields.get("end_line", "")
    return (int(first), int(last)) if first.isdecimal() and last.isdecimal() else None
