"""What a conversation works with: the adapters it walks through, and where it writes down what happens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lamella.core.ledger.outlook import Outlook
from lamella.core.log.call import Call
from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import Turn
from lamella.core.prompt.envelope import TokenCounts
from lamella.ports import Dialects, Look, PriceBook, ProfileBook, Sources, Summarizer, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The adapters a conversation walks through."""

    counter: TokenCounter
    prices: PriceBook
    profiles: ProfileBook
    sources: Look = Sources
    summarizer: Summarizer | None = None
    summary_timeout: float = 60
    dialects: Dialects | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A compaction that is not committed: its receipt, none if nothing would be gained, and what it would bring.

    ``goal`` is what it should come down to; ``before`` and ``after`` are the counts of the next request, with nothing
    typed in it yet. ``upon`` are the receipts in force when it was planned.
    """

    receipt: Receipt | None
    goal: int
    before: TokenCounts
    outlook: Outlook | None = None
    after: TokenCounts | None = None
    upon: tuple[str, ...] = ()


class Journal(Protocol):
    """Where turns and replies are written down before they count as asked and answered."""

    def write_turn(
        self,
        turn: Turn,
        *,
        parent: str,
        unanswered: str | None,
        receipt: Receipt | None,
        at: datetime | None,
    ) -> None:
        """A turn after its parent, with what is compacted before it; ``unanswered`` gets the empty reply first."""
        ...

    def write_reply(self, text: str, *, parent: str, at: datetime | None, calls: Sequence[Call] = ()) -> None: ...

    def write_receipt(self, receipt: Receipt, *, at: datetime | None, before: str | None = None) -> None: ...
