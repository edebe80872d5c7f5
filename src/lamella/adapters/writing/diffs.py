"""Diffs: a change as people see it before they say yes, whole: nothing that would be written is left out of it."""

from collections.abc import Iterator, Sequence

from lamella.core.text.alignment import Span, find_changes
from lamella.core.text.content import normalise

_CONTEXT = 3
_NO_END = "\\ No newline at end of file"


def render_diff(path: str, before: str | None, after: str) -> str:
    """A unified diff; a note that is new is one from nothing."""
    old, new = _split(normalise(before or "")), _split(normalise(after))
    head = [f"--- {'/dev/null' if before is None else path}", f"+++ {path}"]
    hunks = (line for hunk in _group(list(find_changes(old, new))) for line in _render(hunk, old, new))
    return "\n".join((*head, *hunks)) + "\n"


def _split(text: str) -> list[str]:
    """Its lines; the last one says so where it does not end."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_END}"]


def _group(changes: Sequence[Span]) -> Iterator[list[Span]]:
    group: list[Span] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _render(hunk: Sequence[Span], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    at, to = max(0, hunk[0][0] - _CONTEXT), min(len(old), hunk[-1][1] + _CONTEXT)
    at_new, to_new = hunk[0][2] - (hunk[0][0] - at), hunk[-1][3] + (to - hunk[-1][1])
    yield f"@@ -{_tell(at, to)} +{_tell(at_new, to_new)} @@"
    for i, i_end, j, j_end in hunk:
        yield from (f" {line}" for line in old[at:i])
        yield from (f"-{line}" for line in old[i:i_end])
        yield from (f"+{line}" for line in new[j:j_end])
        at = i_end
    yield from (f" {line}" for line in old[at:to])


def _tell(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"
