"""Notes: a vault that is searched, for programs and faces alike."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from lamella.engine.checks import check_text, check_time
from lamella.errors import CallError
from lamella.holdings import IndexReport, NoteHit
from lamella.ports import Clock, Retriever

# More than anybody reads; whoever wants all of a vault reads its files.
MOST_HITS = 1_000


class NoteIndex:
    """The notes of one vault, found by what they say. Use it in a ``with`` block, or close it.

    ``file`` is where the index is kept; the vault itself is only read.
    """

    def __init__(self, retriever: Retriever, *, file: Callable[[], Path], clock: Clock) -> None:
        self._file = file
        self._retriever = retriever
        self._clock = clock

    @property
    def file(self) -> Path:
        return self._file()

    def refresh(
        self,
        *,
        tell: Callable[[int, int], None] | None = None,
        only: Collection[str] | None = None,
        anew: bool = False,
    ) -> IndexReport:
        """Take in what changed in the vault; ``tell`` hears how many of how many files are done.

        ``only`` names the paths that can have changed, so that no others are looked at. With ``anew`` everything is
        read again, also what could not be read before.
        """
        if isinstance(only, str):
            raise CallError("only is a text, not a list of paths.", hint="Give a list of them.")
        return self._retriever.refresh(tell=tell, only=only, anew=anew)

    def search(
        self, query: str, *, limit: int = 10, now: datetime | None = None, refresh: bool = True
    ) -> Sequence[NoteHit]:
        """The passages that fit best: one of every note that fits before the second of any.

        ``now`` is what "last week" is meant from, by default this moment where this machine stands. Unless ``refresh``,
        what changed in the vault since the last time is not looked for.
        """
        wanted = check_text(query, "query", may_be_empty=False)
        at, most = check_time(now) or self._clock.now().astimezone(), _check_limit(limit)
        if refresh:
            self._retriever.refresh()
        return self._retriever.search(wanted, now=at, limit=most)

    def rank_notes(self, question: str, *, among: Sequence[str]) -> Sequence[str]:
        """All of these paths, those first that fit the question best."""
        if isinstance(among, str):
            raise CallError("among is a text, not a list of paths.", hint="Give a list of them.")
        return self._retriever.rank_notes(check_text(question, "question"), among=list(among))

    def close(self) -> None:
        """Close the index; what is in it stays."""
        self._retriever.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit <= MOST_HITS:
        raise CallError(f"limit is {limit!r}.", hint=f"Give a number from 1 to {MOST_HITS:,}.")
    return limit
