"""The cache ledger for users: turns with their model calls, totals, expired caches and wrong profiles.

``build_ledger_rows`` and ``total_ledger_rows`` compute rows and totals, and ``ledger_to_json`` returns the JSON body of
both. ``ReplayTotals`` has the totals of a replay. ``expired_cache_to_json`` says what the next message costs without
the cache. ``render_model_facts`` returns the lines that correct a wrong model profile in a file of model facts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, convert

from lamella.core.ledger.entry import CacheMiss, sum_cache_misses
from lamella.core.log.call import (
    ANSWER_PURPOSE,
    CacheOutcome,
    CacheVerdict,
    ModelCall,
    PrefixChangeCause,
    TurnInputCost,
)
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import LayoutPlan, RequestFingerprint
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import Usage
from lamella.schemas.body import ConversationJsonBase, Count, JsonBody, Moment, Money, VersionedBody
from lamella.schemas.formatting import format_decimal, format_decimal_or_none
from lamella.schemas.prompts import (
    SHARE_DIGITS,
    CostJson,
    ExpectedCacheUseJson,
    LayoutPlanJson,
    RequestFingerprintJson,
    TurnPromptJson,
    cache_use_to_json,
    fingerprint_to_json,
    layout_plan_to_json,
)

if TYPE_CHECKING:
    from lamella.conversation.expired_cache import CacheExpiry, KeepAlivePlan, ProfileMismatch
    from lamella.conversation.shared_prefixes import SharedPrefix
    from lamella.conversation.turn import BuiltTurn, EarlierRequest

# ``ModelCall`` and ``RequestFingerprint`` are exported for the command line and the server, which do not import the core.
__all__ = [
    "CacheMiss",
    "LedgerTotals",
    "ModelCall",
    "RequestFingerprint",
    "TurnLedgerRow",
    "answering_calls",
    "build_ledger_rows",
    "call_to_json",
    "count_cache_write_tokens",
    "ledger_to_json",
    "shared_prefixes_to_json",
    "total_ledger_rows",
    "unexplained_turns",
]

_UNCHANGED_CAUSES = (PrefixChangeCause.FIRST_TURN, PrefixChangeCause.NONE)


@dataclass(slots=True)
class ReplayTotals:
    """Totals of a conversation, updated while its turns are iterated. A turn with tools sends several requests."""

    turns: int = 0
    requests: int = 0
    tokens: int = 0
    cache_read_tokens: int = 0
    prefix_breaks: int = 0
    compactions: int = 0
    is_priced: bool = True
    cost: Decimal = Decimal(0)
    naive_cost: Decimal = Decimal(0)
    perfect_cache_cost: Decimal = Decimal(0)
    verified_requests: int = 0
    differing_turns: list[int] = field(default_factory=list)
    underivable_turns: list[int] = field(default_factory=list)

    def add_each_turn(self, turns: Iterable["BuiltTurn"]) -> Iterator["BuiltTurn"]:
        """Yield the same turns and add each one to the totals."""
        for turn in turns:
            self._add(turn)
            yield turn

    def _add(self, turn: "BuiltTurn") -> None:
        self.turns += 1
        for request in (*turn.earlier_requests, turn.to_earlier_request()):
            self._add_request(request)
        self.prefix_breaks += turn.prefix_change.prefix_change.cause not in _UNCHANGED_CAUSES
        self.compactions += turn.compaction is not None
        if turn.check is not None:
            self.verified_requests += turn.check.status == "verified"
            if turn.check.status == "differs":
                self.differing_turns.append(turn.number)
            elif not turn.check.has_no_known_difference:
                self.underivable_turns.append(turn.number)

    def _add_request(self, request: "EarlierRequest") -> None:
        self.requests += 1
        self.tokens += request.tokens
        self.cache_read_tokens += request.cache.read if request.cache else 0
        if request.cost is None:
            self.is_priced = False
            return
        self.cost += request.cost.amount
        self.naive_cost += request.cost.naive
        self.perfect_cache_cost += request.cost.limit

    @property
    def cache_read_share(self) -> float:
        return round(self.cache_read_tokens / self.tokens, SHARE_DIGITS) if self.tokens else 0.0

    @property
    def naive_ratio(self) -> Decimal | None:
        """Return the cost relative to the naive layout, or None if that costs nothing.

        The naive layout repeats every attachment in force in the last message of each request.
        """
        return self.cost / self.naive_cost if self.naive_cost > Decimal(0) else None


class ReplayTotalsJson(JsonBody, frozen=True, kw_only=True):
    """Totals of a replay; costs are null unless every turn has a price."""

    requests: Annotated[int, Meta(description="How many requests the turns sent; a turn with tools sends several.")]
    tokens: Annotated[int, Meta(description="Input tokens of all requests.")]
    cache_read_share: Annotated[float, Meta(description="Share of them that the cache would have served.")]
    prefix_breaks: Annotated[int, Meta(description="How often the prefix changed; the first turn does not count.")]
    compactions: Annotated[int, Meta(description="How many turns were compacted before they were sent.")]
    cost: Money
    naive_cost: Annotated[Money, Meta(description="The cost if every message repeats its attachments.")]
    limit_cost: Annotated[Money, Meta(description="The cost with a perfect cache.")]


class ReplayHeader(VersionedBody, frozen=True, kw_only=True):
    """A replayed conversation and its layout, which is null without turns."""

    conversation: str
    layout: str | None


class ReplayJson(ReplayHeader, frozen=True, kw_only=True):
    """The prompts of all turns of a conversation, and totals; the same for the same input on every machine."""

    turns: Sequence[TurnPromptJson]
    totals: ReplayTotalsJson


def replay_header_to_json(conversation_key: str, first: "BuiltTurn | None") -> ReplayHeader:
    """Return the fields of a replay that come before its turns."""
    layout = None if first is None else first.envelope.layout.value
    return ReplayHeader(conversation=conversation_key, layout=layout)


def replay_totals_to_json(totals: ReplayTotals) -> ReplayTotalsJson:
    """Return the totals of a replay."""
    money = (totals.cost, totals.naive_cost, totals.perfect_cache_cost)
    cost, naive, limit = (format_decimal(amount) if totals.is_priced else None for amount in money)
    return ReplayTotalsJson(
        requests=totals.requests,
        tokens=totals.tokens,
        cache_read_share=totals.cache_read_share,
        prefix_breaks=totals.prefix_breaks,
        compactions=totals.compactions,
        cost=cost,
        naive_cost=naive,
        limit_cost=limit,
    )


# Expired caches.


class KeepAliveJson(JsonBody, frozen=True, kw_only=True):
    """The cost and the time of a keep-alive: sending the last request again before the cache expires."""

    due_at: Moment
    tokens: Count
    cost: Money
    chance: Annotated[float, Meta(description="Probability that the user returns before the cache expires anyway.")]


class ExpiredCacheJson(JsonBody, frozen=True, kw_only=True):
    """A cache that has expired or soon will: the cost of the next message as it is, and after a fold."""

    lapsed: Annotated[bool, Meta(description="Whether it has expired.")]
    lapses_at: Annotated[Moment, Meta(description="When it expires or expired.")]
    tokens: Annotated[int, Meta(ge=0, description="Tokens of the next request as it is.")]
    cost: Money
    folded_tokens: Annotated[int, Meta(ge=0, description="Tokens of the next request after a fold.")]
    folded_cost: Money
    folds: Annotated[bool, Meta(description="Whether Lamella folds the next request by itself.")]
    keep: Annotated[KeepAliveJson | None, Meta(description="A keep-alive that pays; null if there is none.")]


class KeepAliveResultJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The result of a keep-alive: whether the last request was sent again, and the expired cache or null."""

    sent: bool
    cold: ExpiredCacheJson | None


def expired_cache_to_json(expired: "CacheExpiry") -> ExpiredCacheJson:
    """Return what the next message costs now that the cache has expired or soon will."""
    return ExpiredCacheJson(
        lapsed=expired.expired,
        lapses_at=expired.expires_at.isoformat(),
        tokens=expired.tokens,
        cost=format_decimal_or_none(expired.cost),
        folded_tokens=expired.folded_tokens,
        folded_cost=format_decimal_or_none(expired.folded_cost),
        folds=expired.will_fold,
        keep=None if expired.keep_alive is None else _keep_alive_to_json(expired.keep_alive),
    )


def expired_cache_to_json_or_none(expired: "CacheExpiry | None") -> ExpiredCacheJson | None:
    """Return an expired cache, or None if the cache is still valid."""
    return None if expired is None else expired_cache_to_json(expired)


def _keep_alive_to_json(keep_alive: "KeepAlivePlan") -> KeepAliveJson:
    return KeepAliveJson(
        due_at=keep_alive.due_at.isoformat(),
        tokens=keep_alive.tokens,
        cost=format_decimal_or_none(keep_alive.cost),
        chance=round(keep_alive.return_probability, 2),
    )


# Wrong profiles.


class ProfileContradictionJson(JsonBody, frozen=True, kw_only=True):
    """A contradiction, and the turns that show it."""

    turns: Sequence[int]
    says: str


class ProfileMismatchJson(JsonBody, frozen=True, kw_only=True):
    """A model whose profile is wrong, and lines for a file of model facts."""

    model: str
    seen: Sequence[ProfileContradictionJson]
    facts: Annotated[Mapping[str, int | bool], Meta(description="Corrected values by name.")]
    model_facts: Annotated[str, Meta(description="Lines to paste into a file of model facts.")]


def _profile_mismatch_to_json(mismatch: "ProfileMismatch") -> ProfileMismatchJson:
    return ProfileMismatchJson(
        model=mismatch.model,
        seen=[ProfileContradictionJson(turns=one.turns, says=one.description) for one in mismatch.contradictions],
        facts=mismatch.corrected_facts,
        model_facts="\n".join(render_model_facts(mismatch)),
    )


def render_model_facts(mismatch: "ProfileMismatch") -> list[str]:
    """Return an entry for a file of model facts, in TOML, that corrects the profile."""
    # A file of model facts matches the name after the provider, or after the address of a server.
    after = mismatch.model.rpartition("#")[2] if "#" in mismatch.model else mismatch.model.partition(":")[2]
    facts = [f"{name} = {str(value).lower()}" for name, value in mismatch.corrected_facts.items()]
    return ["[[model]]", f"match = {json.dumps(after or mismatch.model)}", f"as_of = {mismatch.as_of}", *facts]


# Rows and totals.

_SECOND_DIGITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLedgerRow:
    """One turn of the active branch; turns that old versions of Lamella stored have no ``fingerprint``.

    ``cuts`` are the compactions in force that cleared unused tool results for this turn. ``cache_miss`` is what its
    cache misses cost.
    """

    number: int
    message: str
    at: str
    text: str
    status: str
    calls: tuple[ModelCall, ...]
    fingerprint: RequestFingerprint | None = None
    layout_plan: LayoutPlan | None = None
    cuts: tuple[CompactionReceipt, ...] = ()
    cache_miss: CacheMiss | None = None


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
    cache_miss: CacheMiss | None = None

    @property
    def read_share(self) -> float | None:
        """Return the share of all input tokens that the cache served, or None if it is unknown."""
        if self.read_tokens is None or self.plain_tokens is None:
            return None
        prompt = self.read_tokens + self.plain_tokens + (self.written_tokens or 0)
        return self.read_tokens / prompt if prompt else 0.0


def build_ledger_rows(
    turns: Sequence[TurnRecord],
    calls: Sequence[Sequence[ModelCall]],
    receipts: Sequence[CompactionReceipt] = (),
    cache_misses: Sequence[CacheMiss | None] = (),
) -> list[TurnLedgerRow]:
    """Build a row for every turn of a branch, with the model calls made for it.

    ``receipts`` are the compactions in force; a row names those that cleared tool results. ``cache_misses`` are what the
    misses of each turn cost.
    """
    misses = dict(enumerate(cache_misses, start=1))
    cuts: dict[str, tuple[CompactionReceipt, ...]] = {}
    for receipt in receipts:
        if receipt.clears_in_place:
            cuts[receipt.parent] = (*cuts.get(receipt.parent, ()), receipt)
    return [
        TurnLedgerRow(
            number=number,
            message=record.message.id,
            at=record.message.at,
            text=record.message.text,
            status=_turn_status(record, made),
            calls=tuple(made),
            fingerprint=None if record.message.question_event is None else record.message.question_event.imprint,
            layout_plan=None if record.message.question_event is None else record.message.question_event.placement,
            cuts=cuts.get(record.message.parent, ()),
            cache_miss=misses.get(number),
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
    reported = [call for call in calls if call.usage.prompt_tokens is not None and call.usage.read is not None]
    costs = [call.cost for call in calls if call.cost is not None]
    return LedgerTotals(
        calls=len(calls),
        auxiliary_calls=len(calls) - len(answering_calls(calls)),
        predicted_tokens=_sum_known(call.predicted.read for call in calls if call.predicted is not None),
        read_tokens=_sum_known(call.usage.read for call in reported),
        written_tokens=_sum_known(count_cache_write_tokens(call) for call in reported),
        plain_tokens=_sum_known(call.usage.plain for call in reported),
        output_tokens=_sum_known(call.usage.output for call in calls),
        billed=_sum_known_amounts(call.billed for call in calls),
        estimated_cost=_sum_known_amounts(cost.amount for cost in costs),
        naive_cost=_sum_known_amounts(cost.naive for cost in costs),
        perfect_cache_cost=_sum_known_amounts(cost.limit for cost in costs),
        seconds=_sum_known_seconds(calls),
        retries=sum(call.retries for call in calls),
        unpriced_calls=sum(call.billed is None for call in calls),
        cache_miss=sum_cache_misses(row.cache_miss for row in rows),
    )


def count_cache_write_tokens(call: ModelCall) -> int | None:
    """Return the tokens written to the cache, for all lifetimes; None if the provider does not report them."""
    usage = call.usage
    if usage.write is None and usage.write_long is None:
        return None
    return (usage.write or 0) + (usage.write_long or 0)


def unexplained_turns(rows: Sequence[TurnLedgerRow]) -> list[int]:
    """Return the numbers of turns whose prefix changed without a recorded cause."""
    return [row.number for row in rows if any(call.verdict.outcome is CacheOutcome.UNEXPLAINED for call in row.calls)]


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sum_known_amounts(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def _sum_known_seconds(calls: Sequence[ModelCall]) -> float | None:
    known = [call.timing.total for call in calls if call.timing.total is not None]
    return sum(known) if known else None


# Bodies.


class VerdictJson(JsonBody, frozen=True, kw_only=True):
    """The verdict on a cache miss or hit, and whether Lamella or the provider caused it."""

    outcome: str
    cause: str
    segment: str | None
    ours: Annotated[bool, Meta(description="Whether Lamella caused the miss, not the provider.")]
    says: str


class UsageJson(JsonBody, frozen=True, kw_only=True):
    """Token counts by price class, as the provider reported them; null if it did not."""

    plain: Annotated[int | None, Meta(description="Input that no cache served or stored.")]
    read: Annotated[int | None, Meta(description="Input that the cache served.")]
    write: Annotated[int | None, Meta(description="Input that the cache stored.")]
    write_long: Annotated[int | None, Meta(description="Input that the cache stored with the longer lifetime.")]
    output: int | None
    reasoning: Annotated[int | None, Meta(description="The part of the output that is reasoning.")]
    fault: Annotated[str | None, Meta(description="How the provider's numbers contradict each other.")]


class CallTimingJson(JsonBody, frozen=True, kw_only=True):
    """The duration of a call in seconds: to build the request, until the first token, and in total."""

    build: float | None
    first: float | None
    total: float | None
    phases: Annotated[
        Mapping[str, float],
        Meta(
            description="Parts of `build`: `read`, `store`, `plan`, `compaction`, `count` and `render`. Those of no measurable "
            "time are left out."
        ),
    ]


class CallCostJson(CostJson, frozen=True, kw_only=True):
    """The expected cost of a call, and its cost with a perfect cache."""

    limit: Money


class DiagnosisJson(JsonBody, frozen=True, kw_only=True):
    """The provider's own diagnosis of a cache miss."""

    verdict: str
    reason: str | None
    missed: Annotated[int | None, Meta(description="In tokens.")]


class ModelCallJson(JsonBody, frozen=True, kw_only=True):
    """One call to a model; unknown values are null."""

    purpose: str
    model: str | None
    verdict: VerdictJson
    predicted: Annotated[ExpectedCacheUseJson | None, Meta(description="The expected use of the cache.")]
    reported: UsageJson
    by_layer: Annotated[Mapping[str, int], Meta(description="Cached tokens by layer.")]
    billed: Annotated[Money, Meta(description="The cost of the reported usage.")]
    cost: CallCostJson | None
    seconds: CallTimingJson
    stop: Annotated[str, Meta(description="Why the reply ended.")]
    id: Annotated[str | None, Meta(description="The provider's id of the reply.")]
    diagnosis: DiagnosisJson | None
    retries: Annotated[int, Meta(ge=0, description="Failed attempts before.")]


class CacheMissJson(JsonBody, frozen=True, kw_only=True):
    """What a cache miss cost."""

    tokens: Annotated[
        int,
        Meta(
            ge=0, description="Input tokens that the previous request left in the cache, and that were processed again."
        ),
    ]
    cost: Annotated[Money, Meta(description="How much more they cost than if the cache had served them.")]


class ResultCutJson(JsonBody, frozen=True, kw_only=True):
    """A cut that cleared unused tool results; undoing the receipt brings them back."""

    receipt: str
    results: Annotated[int, Meta(ge=0, description="How many results it cleared.")]
    saved: Annotated[int, Meta(description="Tokens that each later request has less.")]
    says: Annotated[str, Meta(description="Why, in one sentence.")]


class LedgerTurnJson(JsonBody, frozen=True, kw_only=True):
    """A turn with its model calls."""

    turn: int
    message: str
    at: Moment
    standing: Annotated[str, Meta(description="`waiting`, `called`, `no_call` or `unanswered`.")]
    sent: RequestFingerprintJson | None
    placement: LayoutPlanJson | None
    calls: Sequence[ModelCallJson]
    miss: Annotated[CacheMissJson | None, Meta(description="What its cache misses cost; null without one.")]
    cuts: Annotated[Sequence[ResultCutJson], Meta(description="Unused tool results that were cleared for this turn.")]


class LedgerTotalsJson(JsonBody, frozen=True, kw_only=True):
    """Totals over all calls; a total is null if no call has the value."""

    turns: Count
    calls: Count
    asides: Annotated[int, Meta(ge=0, description="Calls that produced no answer, such as summaries.")]
    predicted: Annotated[int | None, Meta(description="Tokens that the cache was expected to serve.")]
    read: int | None
    write: int | None
    plain: int | None
    output: int | None
    cache_read_share: Annotated[float | None, Meta(description="Share of the input that the cache served.")]
    miss: Annotated[CacheMissJson | None, Meta(description="What all cache misses cost; null without one.")]
    billed: Money
    cost: Money
    naive_cost: Money
    limit_cost: Money
    unpriced_calls: Annotated[int, Meta(ge=0, description="Calls that the amounts do not include.")]
    seconds: float | None
    retries: Count


class LedgerJson(ConversationJsonBase, frozen=True, kw_only=True):
    """Every turn with its calls, and the totals."""

    turns: Sequence[LedgerTurnJson]
    totals: LedgerTotalsJson
    unexplained: Annotated[Sequence[int], Meta(description="Turns whose prefix changed without a known cause.")]
    doubts: Annotated[Sequence[ProfileMismatchJson], Meta(description="Models whose profiles are wrong.")]


def ledger_to_json(
    conversation_key: str, rows: Sequence[TurnLedgerRow], mismatches: Sequence["ProfileMismatch"] = ()
) -> LedgerJson:
    """Return every turn with its calls, and the totals."""
    return LedgerJson(
        conversation=conversation_key,
        turns=[_row_to_json(row) for row in rows],
        totals=_totals_to_json(total_ledger_rows(rows), turns=len(rows)),
        unexplained=unexplained_turns(rows),
        doubts=[_profile_mismatch_to_json(one) for one in mismatches],
    )


class SharedPrefixJson(JsonBody, frozen=True, kw_only=True):
    """A system prompt that conversations of the store share, and how often it was used again."""

    key: Annotated[str, Meta(description="Hash of model, tools and system prompt.")]
    model: str
    tokens: Annotated[int, Meta(ge=0, description="With the tool definitions.")]
    last: Annotated[Moment, Meta(description="When it was sent last.")]
    short_gaps: Annotated[int, Meta(ge=0, description="Gaps between uses within the short cache lifetime.")]
    middle_gaps: Annotated[int, Meta(ge=0, description="Gaps after the short and within the longer lifetime.")]
    long_gaps: Annotated[int, Meta(ge=0, description="Gaps after both.")]
    lifetime: Annotated[float, Meta(description="The cache lifetime that the next request asks for, in seconds.")]


class SharedPrefixListJson(VersionedBody, frozen=True, kw_only=True):
    """The shared system prompts of a store, last used first."""

    prefixes: Sequence[SharedPrefixJson]


def shared_prefixes_to_json(prefixes: Sequence["SharedPrefix"]) -> SharedPrefixListJson:
    """Return the shared system prompts of a store."""
    return SharedPrefixListJson(prefixes=[_shared_prefix_to_json(one) for one in prefixes])


def _shared_prefix_to_json(prefix: "SharedPrefix") -> SharedPrefixJson:
    short, middle, long = prefix.gap_counts
    return SharedPrefixJson(
        key=prefix.key,
        model=prefix.model,
        tokens=prefix.tokens,
        last="" if prefix.uses.last is None else prefix.uses.last.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        short_gaps=short,
        middle_gaps=middle,
        long_gaps=long,
        lifetime=prefix.long_lifetime if prefix.keeps_longer else prefix.lifetime,
    )


def verdict_to_json(verdict: CacheVerdict) -> VerdictJson:
    """Return the verdict on a call with its sentence."""
    return VerdictJson(
        outcome=verdict.outcome.value,
        cause=verdict.prefix_change.cause.value,
        segment=verdict.prefix_change.segment,
        ours=verdict.is_caused_by_lamella,
        says=str(verdict),
    )


def call_to_json(call: ModelCall) -> ModelCallJson:
    """Return one model call; unknown values are null."""
    diagnosis = call.diagnosis
    return ModelCallJson(
        purpose=call.purpose,
        model=call.model,
        verdict=verdict_to_json(call.verdict),
        predicted=None if call.predicted is None else cache_use_to_json(call.predicted),
        reported=usage_to_json(call.usage),
        by_layer=call.by_layer,
        billed=format_decimal_or_none(call.billed),
        cost=None if call.cost is None else _call_cost_to_json(call.cost),
        seconds=convert(call.timing, CallTimingJson, from_attributes=True),
        stop=call.stop,
        id=call.id,
        diagnosis=None if diagnosis is None else convert(diagnosis, DiagnosisJson, from_attributes=True),
        retries=call.retries,
    )


def cache_miss_to_json(miss: CacheMiss | None) -> CacheMissJson | None:
    """Return what a cache miss cost; None without one."""
    return None if miss is None else CacheMissJson(tokens=miss.tokens, cost=format_decimal_or_none(miss.cost))


def usage_to_json(usage: Usage) -> UsageJson:
    """Return the token counts that a provider reported."""
    return convert(usage, UsageJson, from_attributes=True)


def _call_cost_to_json(cost: TurnInputCost) -> CallCostJson:
    return CallCostJson(
        amount=format_decimal(cost.amount), naive=format_decimal(cost.naive), limit=format_decimal(cost.limit)
    )


def _row_to_json(row: TurnLedgerRow) -> LedgerTurnJson:
    return LedgerTurnJson(
        turn=row.number,
        message=row.message,
        at=row.at,
        standing=row.status,
        sent=None if row.fingerprint is None else fingerprint_to_json(row.fingerprint),
        placement=None if row.layout_plan is None else layout_plan_to_json(row.layout_plan),
        calls=[call_to_json(call) for call in row.calls],
        miss=cache_miss_to_json(row.cache_miss),
        cuts=[
            ResultCutJson(
                receipt=cut.id,
                results=sum([len(step.removed) for step in cut.steps]),
                saved=cut.tokens_before - cut.tokens_after,
                says=cut.why,
            )
            for cut in row.cuts
        ],
    )


def _totals_to_json(totals: LedgerTotals, *, turns: int) -> LedgerTotalsJson:
    share = totals.read_share
    return LedgerTotalsJson(
        turns=turns,
        calls=totals.calls,
        asides=totals.auxiliary_calls,
        predicted=totals.predicted_tokens,
        read=totals.read_tokens,
        write=totals.written_tokens,
        plain=totals.plain_tokens,
        output=totals.output_tokens,
        cache_read_share=None if share is None else round(share, SHARE_DIGITS),
        miss=cache_miss_to_json(totals.cache_miss),
        billed=format_decimal_or_none(totals.billed),
        cost=format_decimal_or_none(totals.estimated_cost),
        naive_cost=format_decimal_or_none(totals.naive_cost),
        limit_cost=format_decimal_or_none(totals.perfect_cache_cost),
        unpriced_calls=totals.unpriced_calls,
        seconds=None if totals.seconds is None else round(totals.seconds, _SECOND_DIGITS),
        retries=totals.retries,
    )
