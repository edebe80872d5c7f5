"""The past of a conversation: its turns, the ids of their messages, and what was compacted since the last of them."""

from collections.abc import Callable, Iterable, Sequence
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

    ``turns`` are the last ones, as far as they are looked at and changed; of those ``earlier`` runs stay as they are.
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
    ) -> None:
        self.earlier = list(turns)
        self.number = sum([1 if isinstance(part, Turn) else len(part.names) // 2 for part in self.earlier])
        self.turns: list[Turn] = []
        last = self.earlier.pop() if self.earlier else None
        if isinstance(last, TurnRun):
            self.earlier += [before] if (before := last.before_last()) else []
        if last is not None:
            self.turns.append(last if isinstance(last, Turn) else last.last())
        self.path = list(path)
        self.receipts = tuple(receipts)
        self._find_time = find_time
        self._times: dict[str, datetime] = {}

    def fold(self, start: State, place: Planner, *, measure: Measure) -> State:
        """The state that these turns lead to, all of them counted by one measure."""
        return advance_all(start, [*self.earlier, *self.turns], place, measure=measure)

    def list_turns(self) -> list[Turn]:
        """Every turn."""
        return list_turns([*self.earlier, *self.turns])

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
        turns = (part for part in (*self.earlier, *self.turns) if isinstance(part, Turn))
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
        turns = [_without(part, gone) if isinstance(part, Turn) else part for part in (*self.earlier, *self.turns)]
        receipts = [receipt for receipt in self.receipts if receipt.id not in gone]
        past = Past(turns, path=self.path, receipts=receipts, find_time=self._find_time)
        past._times = self._times
        return past


def _without(turn: Turn, gone: set[str]) -> Turn:
    if not turn.receipts:
        return turn
    return replace(turn, receipts=tuple(receipt for receipt in turn.receipts if receipt.id not in gone))
