"""The cache ledger for users: turns with their model calls, totals, expired caches and wrong profiles, as JSON.

``build_ledger_rows`` and ``total_ledger_rows`` compute rows and totals, and ``ledger_to_json`` returns both.
``ReplayTotals`` has the totals of a replay. ``expired_cache_to_json`` says what the next message costs without the
cache. ``profile_mismatch_to_json`` returns contradictions between reported usage and a model profile, with the lines
that correct them in a file of model facts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol, TypeVar

from lamella.core.log.call import ANSWER_PURPOSE, CacheOutcome, CacheUsage, CallTiming, ModelCall, PrefixChangeCause
from lamella.core.log.turn import LayoutPlan, RequestFingerprint
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import CacheDiagnosis, Usage
from lamella.core.prompt.layers.model import LAYER_ORDER
from lamella.schemas.formatting import format_decimal, format_decimal_or_none
from lamella.schemas.prompts import TurnShape, layout_plan_to_json

__all__ = [
    "LedgerTotals",
    "ModelCall",
    "RequestFingerprint",
    "TurnLedgerRow",
    "answering_calls",
    "build_ledger_rows",
    "call_to_json",
    "count_cache_writes",
    "fingerprint_to_json",
    "ledger_to_json",
    "total_ledger_rows",
    "unexplained_turns",
]

_UNCHANGED_CAUSES = (PrefixChangeCause.FIRST_TURN, PrefixChangeCause.NONE)
_SHARE_DIGITS = 6
_Turn = TypeVar("_Turn", bound=TurnShape)


@dataclass(slots=True)
class ReplayTotals:
    """Totals of a conversation, updated while its turns are iterated."""

    turns: int = 0
    tokens: int = 0
    cache_read_tokens: int = 0
    prefix_breaks: int = 0
    compactions: int = 0
    is_priced: bool = True
    cost: Decimal = Decimal(0)
    naive_cost: Decimal = Decimal(0)
    perfect_cache_cost: Decimal = Decimal(0)

    def count_turns(self, turns: Iterable[_Turn]) -> Iterator[_Turn]:
        """Yield the same turns and add each one to the totals."""
        for turn in turns:
            self._add(turn)
            yield turn

    def _add(self, turn: TurnShape) -> None:
        self.turns += 1
        self.tokens += turn.tokens.total
        self.cache_read_tokens += turn.cache.read if turn.cache else 0
        self.prefix_breaks += turn.prefix_change.prefix_change.cause not in _UNCHANGED_CAUSES
        self.compactions += turn.compaction is not None
        if turn.cost is None:
            self.is_priced = False
            return
        self.cost += turn.cost.amount
        self.naive_cost += turn.cost.naive
        self.perfect_cache_cost += turn.cost.limit

    @property
    def cache_read_share(self) -> float:
        return round(self.cache_read_tokens / self.tokens, _SHARE_DIGITS) if self.tokens else 0.0

    @property
    def naive_ratio(self) -> Decimal | None:
        """Return the cost relative to the naive layout, or None if that costs nothing.

        The naive layout repeats every attachment in each message.
        """
        return self.cost / self.naive_cost if self.naive_cost > Decimal(0) else None


def totals_to_json(totals: ReplayTotals) -> dict[str, object]:
    """Return the totals as in docs/reference/json-output.md; costs are null unless every turn has a price."""
    money = (totals.cost, totals.naive_cost, totals.perfect_cache_cost)
    cost, naive, limit = (format_decimal(amount) if totals.is_priced else None for amount in money)
    return {
        "tokens": totals.tokens,
        "cache_read_share": totals.cache_read_share,
        "prefix_breaks": totals.prefix_breaks,
        "compactions": totals.compactions,
        "cost": cost,
        "naive_cost": naive,
        "limit_cost": limit,
    }


# Expired caches.


class KeepAliveShape(Protocol):
    """The properties of a keep-alive plan that the JSON body needs."""

    @property
    def due_at(self) -> datetime: ...
    @property
    def tokens(self) -> int: ...
    @property
    def cost(self) -> Decimal | None: ...
    @property
    def return_probability(self) -> float: ...


class ExpiredCacheShape(Protocol):
    """The properties of an expiring or expired cache that the JSON body needs."""

    @property
    def expired(self) -> bool: ...
    @property
    def expires_at(self) -> datetime: ...
    @property
    def tokens(self) -> int: ...
    @property
    def cost(self) -> Decimal | None: ...
    @property
    def folded_tokens(self) -> int: ...
    @property
    def folded_cost(self) -> Decimal | None: ...
    @property
    def will_fold(self) -> bool: ...
    @property
    def keep_alive(self) -> KeepAliveShape | None: ...


def expired_cache_to_json(expired: ExpiredCacheShape | None) -> dict[str, object] | None:
    """Return an expired cache as in docs/reference/json-output.md, or None if the cache is still valid."""
    if expired is None:
        return None
    return {
        "lapsed": expired.expired,
        "lapses_at": expired.expires_at.isoformat(),
        "tokens": expired.tokens,
        "cost": format_decimal_or_none(expired.cost),
        "folded_tokens": expired.folded_tokens,
        "folded_cost": format_decimal_or_none(expired.folded_cost),
        "folds": expired.will_fold,
        "keep": None if expired.keep_alive is None else _keep_alive_to_json(expired.keep_alive),
    }


def _keep_alive_to_json(keep_alive: KeepAliveShape) -> dict[str, object]:
    return {
        "due_at": keep_alive.due_at.isoformat(),
        "tokens": keep_alive.tokens,
        "cost": format_decimal_or_none(keep_alive.cost),
        "chance": round(keep_alive.return_probability, 2),
    }


# Wrong profiles.


class ContradictionShape(Protocol):
    """The properties of a contradiction that the JSON body needs."""

    @property
    def turns(self) -> Sequence[int]: ...
    @property
    def description(self) -> str: ...


class ProfileMismatchShape(Protocol):
    """The properties of a model with a wrong profile that the JSON body needs."""

    @property
    def model(self) -> str: ...
    @property
    def as_of(self) -> str: ...
    @property
    def contradictions(self) -> Sequence[ContradictionShape]: ...
    @property
    def corrected_facts(self) -> Mapping[str, int | bool]: ...


def profile_mismatch_to_json(mismatch: ProfileMismatchShape) -> dict[str, object]:
    """Return a model, the contradictions, and the lines to paste into a file of model facts."""
    return {
        "model": mismatch.model,
        "seen": [{"turns": list(one.turns), "says": one.description} for one in mismatch.contradictions],
        "facts": dict(mismatch.corrected_facts),
        "model_facts": "\n".join(render_model_facts(mismatch)),
    }


def render_model_facts(mismatch: ProfileMismatchShape) -> list[str]:
    """Return an entry for a file of model facts, in TOML, that corrects the profile."""
    # A file of model facts matches the name after the provider, or after the address of a server.
    after = mismatch.model.rpartition("#")[2] if "#" in mismatch.model else mismatch.model.partition(":")[2]
    facts = [f"{name} = {str(value).lower()}" for name, value in mismatch.corrected_facts.items()]
    return ["[[model]]", f"match = {json.dumps(after or mismatch.model)}", f"as_of = {mismatch.as_of}", *facts]


# Exported here for the command line and the server, which do not import the core.

_SECOND_DIGITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLedgerRow:
    """One turn of the active branch; turns that old versions of Lamella stored have no ``fingerprint``."""

    number: int
    message: str
    at: str
    text: str
    status: str
    calls: tuple[ModelCall, ...]
    fingerprint: RequestFingerprint | None = None
    layout_plan: LayoutPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTotals:
    """Totals over model calls, including ``auxiliary_calls``.

    A total is None if no call has the value. Amounts of money do not include the ``unpriced_calls`` calls.
    """

    calls: int
    auxiliary_calls: int
    predicted_tokens: int | None
    read_tokens: int | None
    written_tokens: int | None
    plain_tokens: int | None
    output_tokens: int | None
    billed: Decimal | None
    estimated_cost: Decimal | None
    naive_cost: Decimal | None
    perfect_cache_cost: Decimal | None
    seconds: float | None
    retries: int
    unpriced_calls: int

    @property
    def read_share(self) -> float | None:
        """Return the share of all input tokens that the cache served, or None if it is unknown."""
        if self.read_tokens is None or self.plain_tokens is None:
            return None
        prompt = self.read_tokens + self.plain_tokens + (self.written_tokens or 0)
        return self.read_tokens / prompt if prompt else 0.0


def build_ledger_rows(turns: Sequence[TurnRecord], calls: Sequence[Sequence[ModelCall]]) -> list[TurnLedgerRow]:
    """Build a row for every turn of a branch, with the model calls made for it."""
    return [
        TurnLedgerRow(
            number=number,
            message=record.message.id,
            at=record.message.at,
            text=record.message.text,
            status=_turn_status(record, made),
            calls=tuple(made),
            fingerprint=None if record.message.question is None else record.message.question.imprint,
            layout_plan=None if record.message.question is None else record.message.question.placement,
        )
        for number, (record, made) in enumerate(zip(turns, calls, strict=True), start=1)
    ]


def _turn_status(record: TurnRecord, calls: Sequence[ModelCall]) -> str:
    """Return the status of a turn.

    - ``waiting``: it has no reply yet.
    - ``called``: a model answered it.
    - ``no_call``: it has a reply that did not come from a recorded model call.
    - ``unanswered``: it was left without an answer.
    """
    if record.reply is None:
        return "waiting"
    if answering_calls(calls):
        return "called"
    return "no_call" if record.reply.text else "unanswered"


def answering_calls(calls: Sequence[ModelCall]) -> list[ModelCall]:
    """Return the calls that produced an answer, without auxiliary calls."""
    return [call for call in calls if call.purpose == ANSWER_PURPOSE]


def total_ledger_rows(rows: Sequence[TurnLedgerRow]) -> LedgerTotals:
    """Return the totals over all calls of these rows."""
    calls = [call for row in rows for call in row.calls]
    # A call that reports only some of its input counts would make the share of cached tokens wrong.
    reported = [call for call in calls if call.usage.prompt is not None and call.usage.read is not None]
    costs = [call.cost for call in calls if call.cost is not None]
    return LedgerTotals(
        calls=len(calls),
        auxiliary_calls=len(calls) - len(answering_calls(calls)),
        predicted_tokens=_sum_known(call.predicted.read for call in calls if call.predicted is not None),
        read_tokens=_sum_known(call.usage.read for call in reported),
        written_tokens=_sum_known(count_cache_writes(call) for call in reported),
        plain_tokens=_sum_known(call.usage.plain for call in reported),
        output_tokens=_sum_known(call.usage.output for call in calls),
        billed=_sum_known_amounts(call.billed for call in calls),
        estimated_cost=_sum_known_amounts(cost.amount for cost in costs),
        naive_cost=_sum_known_amounts(cost.naive for cost in costs),
        perfect_cache_cost=_sum_known_amounts(cost.limit for cost in costs),
        seconds=_sum_known_seconds(calls),
        retries=sum(call.retries for call in calls),
        unpriced_calls=sum(call.billed is None for call in calls),
    )


def count_cache_writes(call: ModelCall) -> int | None:
    """Return the tokens written to the cache, for all lifetimes; None if the provider does not report them."""
    usage = call.usage
    if usage.write is None and usage.write_long is None:
        return None
    return (usage.write or 0) + (usage.write_long or 0)


def unexplained_turns(rows: Sequence[TurnLedgerRow]) -> list[int]:
    """Return the numbers of turns whose prefix changed without a recorded cause."""
    return [row.number for row in rows if any(call.verdict.outcome is CacheOutcome.UNEXPLAINED for call in row.calls)]


def ledger_to_json(
    conversation_key: str, rows: Sequence[TurnLedgerRow], mismatches: Sequence[ProfileMismatchShape] = ()
) -> dict[str, object]:
    """Return every turn with its calls, and the totals, with the field names of docs/reference/json-output.md."""
    return {
        "lamella": 1,
        "conversation": conversation_key,
        "turns": [_row_to_json(row) for row in rows],
        "totals": _totals_to_json(total_ledger_rows(rows), turns=len(rows)),
        "unexplained": unexplained_turns(rows),
        "doubts": [profile_mismatch_to_json(one) for one in mismatches],
    }


def call_to_json(call: ModelCall) -> dict[str, object]:
    """Return one model call; unknown values are null."""
    verdict, cost = call.verdict, call.cost
    return {
        "purpose": call.purpose,
        "model": call.model,
        "verdict": {
            "outcome": verdict.outcome.value,
            "cause": verdict.prefix_change.cause.value,
            "segment": verdict.prefix_change.segment,
            "ours": verdict.is_caused_by_lamella,
            "says": str(verdict),
        },
        "predicted": call.predicted and _cache_usage_to_json(call.predicted),
        "reported": _usage_to_json(call.usage),
        "by_layer": dict(call.by_layer),
        "billed": format_decimal_or_none(call.billed),
        "cost": cost
        and {
            "currency": "USD",
            "amount": format_decimal(cost.amount),
            "naive": format_decimal(cost.naive),
            "limit": format_decimal(cost.limit),
        },
        "seconds": _timing_to_json(call.timing),
        "stop": call.stop,
        "id": call.id,
        "diagnosis": call.diagnosis and _diagnosis_to_json(call.diagnosis),
        "retries": call.retries,
    }


def fingerprint_to_json(fingerprint: RequestFingerprint) -> dict[str, object]:
    """Return the fingerprint of a turn as it was first sent: hashes, version of the renderer, and measurements."""
    return {
        "renderer": fingerprint.renderer,
        "hashes": dict(zip(("L1_SYSTEM", "L2_PREVIOUS", "prefix", "whole"), fingerprint.hashes, strict=True)),
        "segments": dict(zip((layer.value for layer in LAYER_ORDER), fingerprint.segments, strict=False)),
        "dedup_ratio": round(fingerprint.dedup_ratio, _SHARE_DIGITS),
        "compacted_share": round(fingerprint.compacted_share, _SHARE_DIGITS),
        "unparsed": fingerprint.unparsed,
    }


def _row_to_json(row: TurnLedgerRow) -> dict[str, object]:
    """Return one turn; ``calls`` is empty if no model was called."""
    return {
        "turn": row.number,
        "message": row.message,
        "at": row.at,
        "standing": row.status,
        "sent": row.fingerprint and fingerprint_to_json(row.fingerprint),
        "placement": row.layout_plan and layout_plan_to_json(row.layout_plan),
        "calls": [call_to_json(call) for call in row.calls],
    }


def _totals_to_json(sums: LedgerTotals, *, turns: int) -> dict[str, object]:
    share = sums.read_share
    return {
        "turns": turns,
        "calls": sums.calls,
        "asides": sums.auxiliary_calls,
        "predicted": sums.predicted_tokens,
        "read": sums.read_tokens,
        "write": sums.written_tokens,
        "plain": sums.plain_tokens,
        "output": sums.output_tokens,
        "cache_read_share": None if share is None else round(share, _SHARE_DIGITS),
        "billed": format_decimal_or_none(sums.billed),
        "cost": format_decimal_or_none(sums.estimated_cost),
        "naive_cost": format_decimal_or_none(sums.naive_cost),
        "limit_cost": format_decimal_or_none(sums.perfect_cache_cost),
        "unpriced_calls": sums.unpriced_calls,
        "seconds": None if sums.seconds is None else round(sums.seconds, _SECOND_DIGITS),
        "retries": sums.retries,
    }


def _cache_usage_to_json(usage: CacheUsage) -> dict[str, object]:
    return {"read": usage.read, "write": usage.write, "uncached": usage.uncached}


def _usage_to_json(usage: Usage) -> dict[str, object]:
    return {
        "plain": usage.plain,
        "read": usage.read,
        "write": usage.write,
        "write_long": usage.write_long,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "fault": usage.fault,
    }


def _timing_to_json(timing: CallTiming) -> dict[str, object]:
    return {"build": timing.build, "first": timing.first, "total": timing.total}


def _diagnosis_to_json(diagnosis: CacheDiagnosis) -> dict[str, object]:
    return {"verdict": diagnosis.verdict, "reason": diagnosis.reason, "missed": diagnosis.missed}


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sum_known_amounts(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def _sum_known_seconds(calls: Sequence[ModelCall]) -> float | None:
    known = [call.timing.total for call in calls if call.timing.total is not None]
    return sum(known) if known else None
