"""The past of a conversation: its turns, the ids of their messages, and what was compacted since the last of them."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import UTC, datetime

from lamella.core.budget.counting import Measure
from lamella.core.log.receipt import Receipt, find_voided
from lamella.core.log.turn import Turn, TurnRun, list_turns
from lamella.core.prompt.advance import Planner
from lamella.core.prompt.state import State
from lamella.core.prompt.telling import advance_all
from lamella.core.values import replace
from lamella.errors import CallError


class Past:
    """Turns with their replies, the ids of all messages, and the receipts committed since the last turn.

    ``turns`` are the last ones, as far as they are looked at and changed; those before them stay as they are. Where a
    state is known that the first of them led to, it has ``begun`` with that, and they are read only if somebody asks.
    ``number`` is how many there are of all of them. ``find_time`` tells when a message was said, for those that
    were not said here. Only the last turn ever changes.
    """

    def __init__(
        self,
        turns: Iterable[Turn | TurnRun] = (),
        *,
        path: Iterable[str] = (),
        receipts: Iterable[Receipt] = (),
        find_time: Callable[[str], str | None] | None = None,
        begun: tuple[State, Callable[[], Iterable[Turn | TurnRun]]] | None = None,
    ) -> None:
        self._begun = begun
        self._first: list[Turn | TurnRun] | None = None
        self._earlier = list(turns)
        self.number = sum([1 if isinstance(part, Turn) else len(part.names) // 2 for part in self._earlier])
        self.number += 0 if begun is None else begun[0].turns
        self.turns: list[Turn] = []
        last = self._earlier.pop() if self._earlier else None
        if isinstance(last, TurnRun):
            self._earlier += [before] if (before := last.before_last()) else []
        if last is not None:
            self.turns.append(last if isinstance(last, Turn) else last.last())
        self.path = list(path)
        self.receipts = tuple(receipts)
        self._find_time = find_time
        self._times: dict[str, datetime] = {}

    def fold(self, start: State, place: Planner, *, measure: Measure, but: int = 0) -> State:
        """The state that these turns lead to, but for the last so many, all of them counted by one measure."""
        begun = start if self._begun is None else self._begun[0]
        turns = [*self._earlier, *self.turns[: len(self.turns) - but]]
        return advance_all(begun, turns, place, measure=measure)

    @property
    def waiting(self) -> Sequence[Turn]:
        """The last turn, where it waits for its reply."""
        return [turn for turn in self.turns[-1:] if turn.reply is None]

    def list_turns(self) -> list[Turn]:
        """Every turn."""
        return list_turns(self._list_parts())

    def _list_parts(self) -> list[Turn | TurnRun]:
        """Every turn, runs as they are."""
        if self._first is None:
            self._first = [] if self._begun is None else list(self._begun[1]())
        return [*self._first, *self._earlier, *self.turns]

    def ask(self, turn: Turn, *, message: str, at: datetime | None = None) -> None:
        """A turn, under the receipts committed before it."""
        self.turns.append(turn)
        self.number += 1
        self.path.append(message)
        self.receipts = ()
        if at is not None:
            self._times[message] = at

    def answer(self, text: str, *, message: str, at: datetime | None = None) -> None:
        """What the turn asked last was answered with."""
        self.turns[-1] = replace(self.turns[-1], reply=text, reply_id=message)
        self.path.append(message)
        if at is not None:
            self._times[message] = at

    def find_time(self, message: str) -> str | None:
        """When a message was said, as it is written down; none where nobody said when."""
        if self._find_time is not None:
            return self._find_time(message)
        at = self._times.get(message)
        return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")

    def commit(self, receipt: Receipt) -> None:
        """A compaction after everything said so far."""
        self.receipts = (*self.receipts, receipt)

    def committed(self) -> list[Receipt]:
        """Every receipt in force, oldest first."""
        turns = (part for part in self._list_parts() if isinstance(part, Turn))
        return [*(receipt for turn in turns for receipt in turn.receipts), *self.receipts]

    def find_undone(self, receipt: str | None) -> Sequence[Receipt]:
        """The compaction named, by default the last, and all after it; an error if there is none."""
        committed = self.committed()
        names = [one.id for one in committed]
        found = find_voided(names, receipt)
        if found is None:
            raise CallError(
                "There is no compaction to undo." if receipt is None else f"There is no compaction {receipt!r} here.",
                hint=f"Receipts in force: {', '.join(names)}." if names else "Nothing was compacted on this branch.",
            )
        return committed[found:]

    def without(self, voided: Iterable[Receipt]) -> "Past":
        """The same past, had these compactions never been."""
        gone = {receipt.id for receipt in voided}
        if not gone:
            past = copy(self)
            past._earlier, past.turns, past.path = list(self._earlier), list(self.turns), list(self.path)
            return past
        turns = [_without(part, gone) if isinstance(part, Turn) else part for part in self._list_parts()]
        receipts = [receipt for receipt in self.receipts if receipt.id not in gone]
        past = Past(turns, path=self.path, receipts=receipts, find_time=self._find_time)
        past._times = self._times
        return past


def _without(turn: Turn, gone: set[str]) -> Turn:
    if not turn.receipts:
        return turn
    return replace(turn, receipts=tuple(receipt for receipt in turn.receipts if receipt.id not in gone))
