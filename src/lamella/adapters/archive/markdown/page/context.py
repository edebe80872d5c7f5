"""The ``[Context: …]`` line: what a message had attached, by name, for people; and the names in such a line."""

import json
import re
from collections.abc import Iterable

from lamella.adapters.archive.markdown.refs import Ref
from lamella.core.artifacts.kinds import KINDS, BlockForm

_START, _END = "[Context: ", "]"
_EXPANDED = {kind.value: spec.group for kind, spec in KINDS.items() if spec.block is BlockForm.EXPANDS}
_ORDER = tuple(dict.fromkeys(spec.group for spec in KINDS.values()))

# Written as it is: whatever needs no quotes to be told from the names beside it.
_PLAIN = re.compile(r'(?! )[^"\\|,\x00-\x1f\x7f\x85\u2028\u2029]+(?<! )')
_NAME = re.compile(r'("(?:[^"\\]|\\.)*"|.*?)(, | \| |$)')
_GROUP = re.compile(r"([A-Z][A-Za-z ]*): ")


def render_context(refs: Iterable[Ref]) -> str:
    """The line for a message's attachments; no line for none."""
    named: dict[str, dict[str, None]] = {}
    for ref in refs:
        group, name = _show(ref)
        named.setdefault(group, {}).setdefault(name)
    groups = [f"{group}: {', '.join(map(_quote, named[group]))}" for group in _ORDER if group in named]
    return f"{_START}{' | '.join(groups)}{_END}" if groups else ""


def is_context(line: str) -> bool:
    """Whether a line is one that tells a message's context."""
    return line.startswith(_START) and line.rstrip().endswith(_END)


def parse_context(line: str) -> dict[str, list[str]]:
    """The names in a context line, by group; names outside any group come under the empty one."""
    inner = line.rstrip()[len(_START) : -len(_END)]
    groups: dict[str, list[str]] = {}
    group, at = "", 0
    while at < len(inner):
        label = _GROUP.match(inner, at)
        if label is not None and (at == 0 or inner.endswith(" | ", 0, at)):
            group, at = label[1], label.end()
        found = _NAME.match(inner, at)
        if found is None:
            break
        groups.setdefault(group, []).append(_unquote(found[1]))
        at = found.end()
    return groups


def _show(ref: Ref) -> tuple[str, str]:
    """The group and the name people know it by; what came in with a folder or tag is shown as that."""
    source = ref.stored.source
    kind, _, name = (source.via or "").partition(":")
    if kind in _EXPANDED and name:
        return _EXPANDED[kind], name
    place = source.path or source.url or source.tool or ref.stored.title or ref.id
    if source.lines is not None:
        place = f"{place}#L{source.lines[0]}-L{source.lines[1]}"
    return KINDS[ref.kind].group, place


def _quote(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _unquote(written: str) -> str:
    if not (written.startswith('"') and written.endswith('"')):
        return written
    try:
        name = json.loads(written)
    except ValueError:
        return written
    return name if isinstance(name, str) else written
