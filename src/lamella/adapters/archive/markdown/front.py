"""Front matter: who a file is, in YAML that people and their editors may add to."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from lamella.errors import BadInputError

FORMAT = 1

_BLOCK = re.compile(r"\A---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*)$")
_OURS = ("lamella", "conversation", "name", "title", "created")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_PLAIN = re.compile(r"[A-Za-z0-9][\w .()-]*(?<! )")
# What YAML refuses or changes when it stands there as it is.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# YAML takes a hundred times as long to read as the messages do. Of a longer text only plain lines are read.
_MOST_YAML = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The fields of a file's front matter, all as text, and the lines of those that are not ours."""

    fields: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether the file says that it is an archive of Lamella."""
        return "lamella" in self.fields


def split_front(text: str) -> tuple[Front, str]:
    """A file's front matter and the rest of it; a file need not have any."""
    block = _BLOCK.match(text)
    if block is None:
        return Front(), text
    lines = (block[1] or "").split("\n")
    front = Front(fields=_read_fields(block[1] or "", lines), others=tuple(_other_lines(lines)))
    return front, text[block.end() :]


def render_front(
    *, conversation: str, title: str, created: str, name: str | None = None, others: Sequence[str] = ()
) -> str:
    """Front matter with our fields first, a name if it is not the key; ``others`` are lines that people have added."""
    ours = [
        f"lamella: {FORMAT}",
        f"conversation: {_scalar(conversation)}",
        *([f"name: {_scalar(name)}"] if name and name != conversation else []),
        f"title: {_scalar(title)}",
        f"created: {created if _TIME.fullmatch(created) else _scalar(created)}",
    ]
    return "\n".join(["---", *ours, *others, "---", ""])


def check_format(front: Front) -> None:
    """Refuse an archive of a format that this version does not read."""
    if front.fields["lamella"] != str(FORMAT):
        raise BadInputError(
            f"The archive is in format {front.fields['lamella'][:40]!r}; this version reads format {FORMAT}.",
            hint="Use a newer version of Lamella.",
        )


def _read_fields(block: str, lines: Sequence[str]) -> dict[str, str]:
    """All fields with one value. Every value is text: an id such as ``0180`` is no number."""
    if len(block) > _MOST_YAML:
        return _read_entries(lines)
    try:
        loaded = yaml.load(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        entries = _read_entries(lines)
        if "lamella" in entries:
            raise BadInputError(
                f"The front matter is not YAML: {' '.join(str(error).split())[:200]}.",
                hint="Mend it; a title with a colon or a quote needs quotes around it.",
            ) from error
        # Files of other programs quote badly now and then; their lines still say what they say.
        return entries
    if not isinstance(loaded, dict):
        return {}
    return {str(name): value for name, value in loaded.items() if isinstance(value, str)}


def _read_entries(lines: Sequence[str]) -> dict[str, str]:
    """The fields that stand on a line each."""
    return {match[1]: _unquote(match[2].strip()) for line in lines if (match := _ENTRY.match(line))}


def _unquote(written: str) -> str:
    try:
        value = json.loads(written) if written.startswith('"') else written
    except ValueError:
        value = written
    return value.strip("\"'") if value is written else str(value)


def _other_lines(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    name = ""
    for line in lines:
        entry = _ENTRY.match(line)
        name = entry[1] if entry else "" if line.startswith("#") else name
        if name not in _OURS:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _scalar(text: str) -> str:
    """A text as YAML: as it is where that reads as the same text, else in quotes."""
    if _PLAIN.fullmatch(text) and text.isprintable() and yaml.safe_load(text) == text:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
