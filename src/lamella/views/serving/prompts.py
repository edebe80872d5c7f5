"""Prompts as data: what was sent and whether it is known byte for byte, what would be sent, what fits."""

from collections.abc import Sequence

from lamella.core.log.events.imprint import Imprint
from lamella.views.ledger import view_imprint
from lamella.views.receipts import view_tokens
from lamella.views.serving.streams import view_asked
from lamella.views.turns import TurnShape, view_turn


def view_sent(conversation: str, turn: TurnShape, imprint: Imprint | None) -> dict[str, object]:
    """A turn built again from the log, beside what was noted when it was sent; of older turns nothing was."""
    same = None if imprint is None else imprint.whole == turn.envelope.hash
    sent = None if imprint is None else view_imprint(imprint)
    return {"lamella": 1, "conversation": conversation, **view_turn(turn), "sent": sent, "same_bytes": same}


def view_next(conversation: str, turn: TurnShape, *, whole: bool) -> dict[str, object]:
    """A turn that might be asked: what it weighs, what a cache has of it, and its price."""
    return {"lamella": 1, "conversation": conversation, **view_asked(turn), **(view_turn(turn) if whole else {})}


def view_budget(conversation: str, turn: TurnShape) -> dict[str, object]:
    """What the next request weighs, and what is left of what fits."""
    counts = turn.tokens
    left = None if counts.limit is None else counts.limit - counts.total
    return {"lamella": 1, "conversation": conversation, "tokens": view_tokens(counts), "left": left}


def view_working_set(conversation: str, ids: Sequence[str]) -> dict[str, object]:
    """What the model can read, by id."""
    return {"lamella": 1, "conversation": conversation, "working_set": list(ids)}
