"""An answered turn: what the model said and the provider reported, joined to what the ledger expected."""

from dataclasses import dataclass, field
from datetime import datetime

from lamella.core.ledger.entry import Entry, Terms
from lamella.core.ledger.verdict import Expected, judge
from lamella.core.log.call import CacheUse, Call, Timing, reported_use
from lamella.core.messages.delta import Reply
from lamella.core.prompt.envelope import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A reply with how it came: how long that took, how often it was tried before, and whether it was cut short.

    ``message`` is the question it answers, where that is known. ``foreseen`` is what a provider that knows its own
    cache said it would serve, before it was sent.
    """

    reply: Reply
    timing: Timing = field(default_factory=Timing)
    retries: int = 0
    ended: str = ""
    foreseen: CacheUse | None = None
    message: str | None = None


def judge_call(
    entry: Entry,
    envelope: Envelope,
    answered: Answered,
    *,
    terms: Terms,
    pause: float | None,
    at: datetime | None,
) -> Call:
    """The call as the ledger keeps it."""
    reply = answered.reply
    predicted = answered.foreseen or entry.cache
    expected = Expected(
        movement=entry.prefix.movement,
        use=predicted,
        profile=terms.profile,
        pause=pause,
        triggered=entry.prefix.triggered,
    )
    use = reported_use(reply.usage)
    return Call(
        model=envelope.model,
        verdict=judge(expected, reply.usage),
        predicted=predicted,
        usage=reply.usage,
        by_layer=dict(envelope.tokens.by_layer),
        cost=entry.cost,
        billed=None if use is None else terms.price_all(use, reply.usage.output or 0, at),
        timing=answered.timing,
        stop=answered.ended or reply.stop.value,
        id=reply.id,
        diagnosis=reply.diagnosis,
        retries=answered.retries,
    )
