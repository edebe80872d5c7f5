"""The pages of a ledger: a conversation's turns with the model calls made for them, and what they add up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lamella.core.log.call import Call, Outcome
from lamella.core.log.nodes import Told
from lamella.engine.stored import StoredChat


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One turn of the active branch."""

    number: int
    told: Told
    calls: tuple[Call, ...]

    @property
    def standing(self) -> str:
        """What became of a turn: waiting for its answer, left without one, answered by a model, or by someone else."""
        if self.told.reply is None:
            return "waiting"
        if self.calls:
            return "called"
        return "no_call" if self.told.reply.text else "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What calls add up to. None where no call knows; ``unpriced`` calls are missing from the money."""

    calls: int
    predicted: int | None
    read: int | None
    write: int | None
    plain: int | None
    output: int | None
    billed: Decimal | None
    amount: Decimal | None
    naive: Decimal | None
    limit: Decimal | None
    seconds: float | None
    retries: int
    unpriced: int

    @property
    def read_share(self) -> float | None:
        """The share of all input that was read from the cache; none where that is not known."""
        if self.read is None or self.plain is None:
            return None
        prompt = self.read + self.plain + (self.write or 0)
        return self.read / prompt if prompt else 0.0


def read_pages(stored: StoredChat) -> list[Page]:
    """Every turn of a conversation's active branch."""
    pairs = zip(stored.turns(), stored.ledger(), strict=True)
    return [Page(number=number, told=told, calls=tuple(calls)) for number, (told, calls) in enumerate(pairs, start=1)]


def sum_up(pages: Sequence[Page]) -> Sums:
    """The sums over every call."""
    calls = [call for page in pages for call in page.calls]
    reported = [call for call in calls if call.usage.prompt is not None and call.usage.read is not None]
    costs = [call.cost for call in calls if call.cost is not None]
    return Sums(
        calls=len(calls),
        predicted=_add(call.predicted.read for call in calls if call.predicted is not None),
        read=_add(call.usage.read for call in reported),
        write=_add(written(call) for call in reported),
        plain=_add(call.usage.plain for call in reported),
        output=_add(call.usage.output for call in calls),
        billed=_add_money(call.billed for call in calls),
        amount=_add_money(cost.amount for cost in costs),
        naive=_add_money(cost.naive for cost in costs),
        limit=_add_money(cost.limit for cost in costs),
        seconds=_add_seconds(calls),
        retries=sum(call.retries for call in calls),
        unpriced=sum(call.billed is None for call in calls),
    )


def written(call: Call) -> int | None:
    """What went into the cache, for however long; none where the provider does not say."""
    usage = call.usage
    if usage.write is None and usage.write_long is None:
        return None
    return (usage.write or 0) + (usage.write_long or 0)


def find_unexplained(pages: Sequence[Page]) -> list[int]:
    """The turns whose prefix moved although nothing on record moves one."""
    return [page.number for page in pages if any(call.verdict.outcome is Outcome.UNEXPLAINED for call in page.calls)]


def _add(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _add_money(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def _add_seconds(calls: Sequence[Call]) -> float | None:
    known = [call.timing.total for call in calls if call.timing.total is not None]
    return sum(known) if known else None
