"""The past of a conversation as its runner keeps it: what was asked, answered and compacted, in order."""

from collections.abc import Iterable, Sequence

from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import PastTurn, TurnInput
from lamella.core.values import replace
from lamella.errors import CallError


class Past:
    """Turns with their replies, the ids of all messages, and the receipts in force."""

    def __init__(
        self, turns: Iterable[PastTurn] = (), *, path: Iterable[str] = (), receipts: Iterable[Receipt] = ()
    ) -> None:
        self.turns = list(turns)
        self.path = list(path)
        self.receipts = list(receipts)

    def asked(self, turn: TurnInput, *, message: str, receipt: Receipt | None) -> None:
        """A turn, after what was compacted before it."""
        receipts = (*self.receipts, *((receipt,) if receipt else ()))
        self.turns.append(PastTurn(turn=turn, receipts=receipts))
        self.path.append(message)
        self.receipts = []

    def answered(self, text: str, *, message: str) -> None:
        """What the turn asked last was answered with."""
        self.turns[-1] = replace(self.turns[-1], reply=text, reply_id=message)
        self.path.append(message)

    def compacted(self, receipt: Receipt) -> None:
        """A compaction after everything said so far."""
        self.receipts.append(receipt)

    def committed(self) -> list[Receipt]:
        """Every receipt in force, oldest first."""
        return [*(receipt for turn in self.turns for receipt in turn.receipts), *self.receipts]

    def find_undone(self, receipt: str | None) -> Sequence[Receipt]:
        """The compaction named, by default the last, and all after it; an error if there is none."""
        committed = self.committed()
        names = [one.id for one in committed]
        if not committed or (receipt is not None and receipt not in names):
            raise CallError(
                "There is no compaction to undo." if receipt is None else f"There is no compaction {receipt!r} here.",
                hint=f"Receipts in force: {', '.join(names) or 'none'}.",
            )
        return committed[names.index(receipt) if receipt is not None else -1 :]

    def without(self, voided: Iterable[Receipt]) -> "Past":
        """The same past, had these compactions never been."""
        gone = {receipt.id for receipt in voided}
        turns = [replace(turn, receipts=tuple(r for r in turn.receipts if r.id not in gone)) for turn in self.turns]
        return Past(turns, path=self.path, receipts=[r for r in self.receipts if r.id not in gone])
