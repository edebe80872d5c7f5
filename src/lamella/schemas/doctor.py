"""JSON body of the diagnosis of logs."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from lamella.schemas.body import Count, JsonBody, Money, VersionedBody
from lamella.schemas.formatting import format_decimal, format_decimal_or_none

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lamella.doctor.analysis import ConversationTotals, Diagnosis, Finding

_SHARE_DIGITS = 4
_SMALLEST = Decimal("0.0000001")


class DoctorTokensJson(JsonBody, frozen=True, kw_only=True):
    """Tokens of all requests."""

    input: Count
    output: Count
    cached: Annotated[int, Meta(ge=0, description="As reported, or as predicted for requests without a report.")]
    reachable: Annotated[int, Meta(ge=0, description="Input that a cache could have served.")]


class CachedShareJson(JsonBody, frozen=True, kw_only=True):
    """Shares of the input that the cache served, and that it could have served."""

    reached: float
    reachable: float


class DoctorCostJson(JsonBody, frozen=True, kw_only=True):
    """Money, of the models with a known price."""

    spent: Money
    lost: Money


class FindingJson(JsonBody, frozen=True, kw_only=True):
    """One cause of lost money, with the requests that show it."""

    cause: str
    says: Annotated[str, Meta(description="The cause in words.")]
    where: Annotated[str, Meta(description="The place in the request, such as `system` or `messages[0].content`.")]
    requests: Annotated[Sequence[int], Meta(description="Numbers of the requests, in the order of the log, from 1.")]
    tokens: Annotated[int, Meta(ge=0, description="Tokens that were paid again.")]
    cost: Annotated[Money, Meta(description="What the tokens cost more than from the cache; null without a price.")]
    before: Annotated[str, Meta(description="The text around the first byte that differs, as it was before.")]
    after: Annotated[str, Meta(description="The same place afterwards.")]
    detail: str
    fix: str


class DoctorConversationJson(JsonBody, frozen=True, kw_only=True):
    """The totals of a conversation."""

    conversation: Annotated[int, Meta(description="Its number, in the order of the log, from 1.")]
    label: Annotated[str, Meta(description="Its id in the log; empty if the log has none.")]
    model: str
    requests: Count
    input: Count
    cached_share: CachedShareJson
    cost: Money


class LogReplayJson(JsonBody, frozen=True, kw_only=True):
    """What the logged conversations would have cost in the layout `auto`: input only, same prices, pauses and documents."""

    conversations: Annotated[int, Meta(ge=0, description="Replayed conversations.")]
    left_out: Annotated[Mapping[str, int], Meta(description="Conversations that could not be replayed, by reason.")]
    logged_cost: Money
    auto_cost: Money
    best_fix: Annotated[str | None, Meta(description="The cause of the most expensive finding.")]
    best_fix_cost: Annotated[Money, Meta(description="The logged cost without that finding.")]
    documents: Annotated[int, Meta(ge=0, description="Documents, counted once for each question that had them.")]
    readable: Annotated[int, Meta(ge=0, description="How many of them the prompt of their turn had in full.")]


class DoctorJson(VersionedBody, frozen=True, kw_only=True):
    """What logged requests cost, which of it was avoidable, and why. The most expensive finding comes first."""

    requests: Count
    failed: Annotated[int, Meta(ge=0, description="Requests that the provider rejected; they cost nothing.")]
    conversations: Count
    tokens: DoctorTokensJson
    cached_share: CachedShareJson
    cost: DoctorCostJson
    findings: Sequence[FindingJson]
    unread: Annotated[int, Meta(ge=0, description="Records that no format fits.")]
    unread_examples: Sequence[str]
    without_usage: Annotated[int, Meta(ge=0, description="Requests whose cache use is predicted, not reported.")]
    unpriced_models: Sequence[str]
    formats: Annotated[Mapping[str, int], Meta(description="Calls by the format of their log.")]
    models: Annotated[Mapping[str, int], Meta(description="Calls by model.")]
    tokens_by_kind: Annotated[Mapping[str, int], Meta(description="Input tokens by what they were.")]
    most_expensive: Annotated[Sequence[DoctorConversationJson], Meta(description="At most 20 conversations.")]
    replay: Annotated[LogReplayJson | UnsetType, Meta(description="Only if a replay was asked for.")] = UNSET


_MOST_EXPENSIVE = 20


def replay_to_json(
    diagnosis: "Diagnosis",
    rows: "Iterable[tuple[Decimal, Decimal, int, int]]",
    left_out: Mapping[str, int],
) -> LogReplayJson:
    """Return the body of a replay from each conversation's logged cost, cost in `auto`, documents and readable ones."""
    listed = list(rows)
    logged = sum((row[0] for row in listed), Decimal(0))
    best = diagnosis.findings[0] if diagnosis.findings else None
    saved = best.cost if best is not None else None
    return LogReplayJson(
        conversations=len(listed),
        left_out=left_out,
        logged_cost=format_decimal(logged),
        auto_cost=format_decimal(sum((row[1] for row in listed), Decimal(0)).quantize(_SMALLEST)),
        best_fix=None if best is None else best.cause.value,
        best_fix_cost=None if saved is None else format_decimal(logged - saved),
        documents=sum(row[2] for row in listed),
        readable=sum(row[3] for row in listed),
    )


def diagnosis_to_json(
    diagnosis: "Diagnosis",
    *,
    unread: int,
    unread_examples: Sequence[str],
    replay: LogReplayJson | UnsetType = UNSET,
) -> DoctorJson:
    """Return the body of a diagnosis."""
    priced = len(diagnosis.unpriced) < len(diagnosis.models)
    return DoctorJson(
        requests=diagnosis.requests,
        failed=diagnosis.failed,
        conversations=diagnosis.conversation_count,
        tokens=DoctorTokensJson(
            input=diagnosis.input, output=diagnosis.output, cached=diagnosis.reached, reachable=diagnosis.reachable
        ),
        cached_share=CachedShareJson(
            reached=round(diagnosis.reached_share, _SHARE_DIGITS),
            reachable=round(diagnosis.reachable_share, _SHARE_DIGITS),
        ),
        cost=DoctorCostJson(
            spent=format_decimal_or_none(diagnosis.spent if priced else None),
            lost=format_decimal_or_none(diagnosis.lost if priced else None),
        ),
        findings=[_finding_to_json(one) for one in diagnosis.findings],
        unread=unread,
        unread_examples=list(unread_examples),
        without_usage=diagnosis.estimated_requests,
        unpriced_models=diagnosis.unpriced,
        formats=diagnosis.formats,
        models=diagnosis.models,
        tokens_by_kind=diagnosis.tokens_by_kind,
        most_expensive=[_conversation_to_json(one) for one in diagnosis.conversations[:_MOST_EXPENSIVE]],
        replay=replay,
    )


def _finding_to_json(finding: "Finding") -> FindingJson:
    return FindingJson(
        cause=finding.cause.value,
        says=finding.description,
        where=finding.where,
        requests=finding.requests,
        tokens=finding.tokens,
        cost=format_decimal_or_none(finding.cost),
        before=finding.before,
        after=finding.after,
        detail=finding.detail,
        fix=finding.fix,
    )


def _conversation_to_json(totals: "ConversationTotals") -> DoctorConversationJson:
    share = totals.reachable / totals.input if totals.input else 0.0
    return DoctorConversationJson(
        conversation=totals.number,
        label=totals.label,
        model=totals.model,
        requests=totals.requests,
        input=totals.input,
        cached_share=CachedShareJson(reached=round(totals.share, _SHARE_DIGITS), reachable=round(share, _SHARE_DIGITS)),
        cost=format_decimal_or_none(totals.cost),
    )
