"""Search the notes of a vault, and read the sources that replies cite.

``NoteIndex`` has the searchable notes of one vault. ``read_citations`` returns the passages cited in a reply as they
were when the reply was written.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from lamella.conversation.validation import check_text, check_time
from lamella.core.log.events.artifact import ContentsByHash, StoredArtifact
from lamella.core.log.turn_records import TurnRecord
from lamella.errors import InvalidOperationError
from lamella.ports import Clock, IndexReport, NoteHit, NoteRetriever

# Maximum number of hits. A program that wants more should read the files of the vault.
MAX_HITS = 1_000


class NoteIndex:
    """The searchable notes of one vault; use it in a ``with`` block or call ``close``.

    ``file`` is the path of the index. The vault itself is only read. ``on_progress`` is called with files done and files
    in total whenever the index is updated.
    """

    def __init__(
        self,
        retriever: NoteRetriever,
        *,
        find_file: Callable[[], Path],
        clock: Clock,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._find_file = find_file
        self._on_progress = on_progress
        self._retriever = retriever
        self._clock = clock

    @property
    def file(self) -> Path:
        """Return the path of the index."""
        return self._find_file()

    def refresh(
        self,
        *,
        on_progress: Callable[[int, int], None] | None = None,
        only_paths: Collection[str] | None = None,
        rebuild: bool = False,
    ) -> IndexReport:
        """Update the index with changes in the vault; ``on_progress`` is called with files done and files in total.

        ``only_paths`` limits the check to paths that can have changed. With ``rebuild`` every file is read again,
        including those that could not be read before.
        """
        if isinstance(only_paths, str):
            raise InvalidOperationError("only is a text, not a list of paths.", hint="Give a list of them.")
        return self._retriever.refresh(
            on_progress=on_progress or self._on_progress, only_paths=only_paths, rebuild=rebuild
        )

    def search(
        self, query: str, *, limit: int = 10, now: datetime | None = None, refresh: bool = True
    ) -> Sequence[NoteHit]:
        """Return the best matching passages; every matching note has one hit before any note has a second.

        ``now`` is the reference for phrases like "last week" and defaults to the current local time. With
        ``refresh=False`` the index is not updated first.
        """
        wanted = check_text(query, "query", may_be_empty=False)
        at, most = check_time(now) or self._clock.now().astimezone(), _check_limit(limit)
        if refresh:
            self._retriever.refresh(on_progress=self._on_progress)
        return self._retriever.search(wanted, now=at, limit=most)

    def rank_notes(self, question: str, *, paths: Sequence[str]) -> Sequence[str]:
        """Return all of these paths, best match for the question first."""
        if isinstance(paths, str):
            raise InvalidOperationError("among is a text, not a list of paths.", hint="Give a list of them.")
        return self._retriever.rank_notes(check_text(question, "question"), paths=list(paths))

    def close(self) -> None:
        """Close the index file."""
        self._retriever.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit <= MAX_HITS:
        raise InvalidOperationError(f"Invalid limit: {limit!r}", hint=f"Give a number from 1 to {MAX_HITS:,}.")
    return limit


# Citations.


class Citation(Struct, frozen=True, kw_only=True):
    """The source of ``[^number]`` in a reply: a passage, its location, and its text as it was sent.

    ``id`` is the id of its artifact. ``text`` is None if the content was erased since.
    """

    number: int
    id: str
    title: str
    path: str = ""
    place: str = ""
    text: str | None = None


def list_citation_hashes(record: TurnRecord) -> list[str]:
    """Return the content hashes from which the sources of a reply are read."""
    return [ref.hash for ref in _cited_artifacts(record).values()] if record.sources else []


def read_citations(record: TurnRecord, contents: ContentsByHash) -> tuple[Citation, ...]:
    """Return the sources of a turn's reply in order; ``contents`` has their texts."""
    refs = _cited_artifacts(record)
    erased = record.message.erased
    found: list[Citation] = []
    for number, cited in enumerate(record.sources, start=1):
        ref = refs.get(cited.id)
        data = None if ref is None or ref.hash in erased else contents.get(ref.hash)
        text = None if data is None else data.decode()
        start, end = cited.span or (0, len(text or ""))
        found.append(
            Citation(
                number=number,
                id=cited.id,
                title="" if ref is None else ref.title,
                path="" if ref is None else ref.source.path or "",
                place=cited.place,
                text=None if text is None else text[start:end],
            )
        )
    return tuple(found)


def _cited_artifacts(record: TurnRecord) -> dict[str, StoredArtifact]:
    """Return the artifacts of the question that the reply cites, by id."""
    cited = {source.id for source in record.sources}
    question = record.message.question_event
    came: Iterable[StoredArtifact] = () if question is None or not cited else question.artifacts()
    return {str(ref.id): ref for ref in came if ref.id in cited}
