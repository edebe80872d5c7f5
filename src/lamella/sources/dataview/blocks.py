"""Queries in notes and as attachments.

``expand_queries`` finds the query blocks of a note and puts each answer, or the reason for none, below its block.
``QueryReader`` reads an attached query as an artifact whose text is the answer. ``CatalogFiles`` provides the notes of
a vault with the disk state of each.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import NamedTuple, Protocol

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, UnresolvedAttachment
from lamella.errors import ArtifactError, SourceUnreadableError
from lamella.files import to_file_stat
from lamella.ports import NoteList
from lamella.sources.dataview.notes import FileState
from lamella.sources.dataview.results import QueryAnswer

RESULT_LANGUAGE = "dataview-result"
MOST_BLOCKS = 50
_QUERY_LANGUAGES = ("dataview", "dataviewjs")
# A block may be inside a quotation, as in callouts. The quotation signs then begin each of its lines.
_FENCE_OPENING = re.compile(r"(?P<lead>(?: {0,3}>){0,10} {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<words>[^`\n]*)$")
# A quick test for notes that may contain a query. Few do, and only those are searched line by line.
MAY_CONTAIN_QUERY = re.compile(r"dataview|`\$?=", re.IGNORECASE)
_INLINE_QUERY = re.compile(r"(?<!`)`\$?=[^`\n]+`(?!`)")

# Returns the answer of a query in the note.
AnswerQuery = Callable[[str], QueryAnswer]


class _Fence(NamedTuple):
    """An open code block: the quotation signs before its lines, its fence, its language, and its lines so far."""

    line_prefix: str
    fence: str
    language: str
    lines: list[str]

    def is_closed_by(self, line: str) -> bool:
        end = _strip_line_prefix(line, self.line_prefix).strip()
        return len(end) >= len(self.fence) and set(end) == {self.fence[0]}


def expand_queries(text: str, answer: AnswerQuery) -> str:
    """Return a note's text with the answer below each query; a text without queries is returned unchanged."""
    return "\n".join(_QueryExpander(answer).expand_lines(text))


class _QueryExpander:
    """One walk through a note; counts answered query blocks and inline queries."""

    def __init__(self, answer: AnswerQuery) -> None:
        self._answer = answer
        self._answered_count = 0
        self._inline_count = 0

    def expand_lines(self, text: str) -> Iterator[str]:
        fence: _Fence | None = None
        for line in text.split("\n"):
            yield line
            if fence is None:
                fence = _open_fence(line)
                self._inline_count += 0 if fence else len(_INLINE_QUERY.findall(line))
            elif fence.is_closed_by(line):
                yield from self._render_answer_block(fence)
                fence = None
            else:
                fence.lines.append(_strip_line_prefix(line, fence.line_prefix))
        if fence is not None and fence.language in _QUERY_LANGUAGES:
            yield from _render_result_block("Not run: the block has no end.", fence.line_prefix)
        if self._inline_count:
            one = self._inline_count == 1
            yield from _render_result_block(
                f"{self._inline_count:,} quer{'y' if one else 'ies'} within lines, left as text.", ""
            )

    def _render_answer_block(self, fence: _Fence) -> Iterator[str]:
        if fence.language not in _QUERY_LANGUAGES:
            return
        if fence.language == "dataviewjs":
            yield from _render_result_block("Not run: DataviewJS is a program.", fence.line_prefix)
            return
        self._answered_count += 1
        if self._answered_count > MOST_BLOCKS:
            yield from _render_result_block(
                f"Not run: the note has more than {MOST_BLOCKS} queries.", fence.line_prefix
            )
            return
        answer = self._answer("\n".join(fence.lines))
        yield from _render_result_block(f"Not run: {answer.error}" if answer.error else answer.text, fence.line_prefix)


def _open_fence(line: str) -> _Fence | None:
    found = _FENCE_OPENING.match(line)
    if found is None:
        return None
    language = found["words"].split(maxsplit=1)
    return _Fence(found["lead"], found["fence"], language[0].lower() if language else "", [])


def _strip_line_prefix(line: str, prefix: str) -> str:
    """Return a line without the quotation signs of the block it is in."""
    for _ in range(prefix.count(">")):
        line = line.lstrip(" ").removeprefix(">")
    return line.removeprefix(" ") if ">" in prefix else line


def _render_result_block(text: str, line_prefix: str) -> Iterator[str]:
    """Yield the lines of a result block, with a fence longer than any run of backticks in the text."""
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    for line in ("", f"{marks}{RESULT_LANGUAGE}", *text.split("\n"), marks):
        yield f"{line_prefix}{line}".rstrip(" ") if not line else f"{line_prefix}{line}"


# Attached queries. They are answered again when files are read again.


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReader:
    """Answers attached queries with ``answer_query``, which gets the query and the path of the note it belongs to."""

    answer_query: Callable[[str, str], QueryAnswer]

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        if not attachment.query:
            raise ArtifactError(f"A {attachment.kind} attachment has no query.", hint="Give it a `query`.")
        answer = self.answer_query(attachment.query, attachment.name)
        if answer.error:
            raise SourceUnreadableError(
                f"The query in {attachment.name} is not answered: {answer.error}",
                hint="Ask for what docs/reference/formats/dataview.md lists, or give the attachment its `text`.",
            )
        source = ArtifactSource(path=attachment.name, query=attachment.query, via=attachment.via, is_rereadable=True)
        return make_artifact(
            attachment.kind, text=answer.text, source=source, title=attachment.title, policy=attachment.policy
        )


# The files of a vault.


class NoteCatalog(Protocol):
    """A snapshot of a vault."""

    def list_notes(self, kind: ArtifactKind, name: str) -> NoteList: ...

    def stat_file(self, path: str) -> os.stat_result: ...

    def read_text(self, path: str) -> str: ...


class CatalogFiles:
    """The notes of a catalog. ``now`` returns the time in nanoseconds, to detect notes written just now."""

    def __init__(self, catalog: NoteCatalog, now: Callable[[], int] = time_ns) -> None:
        self._catalog, self._now = catalog, now

    def list_states(self) -> Sequence[FileState]:
        now = self._now()
        return [self._file_state(path, now) for path in self._catalog.list_notes(ArtifactKind.FOLDER, ".").paths]

    def list_unreadable(self) -> Sequence[str]:
        return self._catalog.list_notes(ArtifactKind.FOLDER, ".").left_out

    def _file_state(self, path: str, now: int) -> FileState:
        try:
            found = self._catalog.stat_file(path)
        except OSError:
            # A dangling link, or a file that is being removed. Reading it gives the error message.
            return FileState(path=path, is_settled=False)
        disk = to_file_stat(found)
        return FileState(path=path, file_stat=disk, is_settled=disk.is_settled(now))

    def read_text(self, path: str) -> str:
        return self._catalog.read_text(path)
