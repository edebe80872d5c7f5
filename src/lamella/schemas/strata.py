"""JSON bodies of prompts turn by turn: what was sent, in which order, and what of it was the same as before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from lamella.core.log.call import ModelCall
from lamella.core.prompt.pieces import PromptPiece, PromptPieceLister
from lamella.schemas.body import ConversationJsonBase, Count, JsonBody, Moment, Money
from lamella.schemas.formatting import format_decimal_or_none
from lamella.schemas.ledger import (
    CacheMiss,
    CacheMissJson,
    VerdictJson,
    answering_calls,
    cache_miss_to_json,
    verdict_to_json,
)
from lamella.schemas.prompts import CostJson, PrefixJson, cost_to_json, prefix_to_json

if TYPE_CHECKING:
    from lamella.conversation.turn import BuiltTurn


class PieceJson(JsonBody, frozen=True, kw_only=True):
    """A part of a request, in the order in which it was sent."""

    start: Annotated[int, Meta(ge=0, description="Tokens of the request before it.")]
    tokens: Count
    layer: Annotated[
        Literal["L1_SYSTEM", "L2_PREVIOUS", "L3_TURN", "L4_STRIP", "L5_USER"] | None,
        Meta(description="Null for overhead, tool definitions, and images of earlier messages."),
    ]
    id: Annotated[str, Meta(description="Id of the artifact, the message, the part of L1, or the tool.")]
    kind: Annotated[
        str,
        Meta(
            description="Kind of an artifact or of a segment, or: `talk` (neighbouring earlier messages with their "
            "overhead), `overhead` (labels and message frames), `tool_definition`."
        ),
    ]
    form: str
    place: Annotated[str, Meta(description="`tools`, `system`, or `message:N`; of a band of talk its first message.")]
    same: Annotated[bool, Meta(description="Whether the previous request had the same tokens here.")]
    messages: Annotated[int, Meta(description="Number of messages; only of `talk`.")] | UnsetType = UNSET
    shortened: (
        Annotated[int, Meta(description="How many of them are shorter than written; only of `talk`.")] | UnsetType
    ) = UNSET


class CacheComparisonJson(JsonBody, frozen=True, kw_only=True):
    """Three numbers about the cache: same bytes, predicted, and reported. None of them implies another."""

    same: Annotated[int, Meta(ge=0, description="Tokens that the previous request began with, too.")]
    predicted: Annotated[int | None, Meta(description="Tokens that the cache was expected to serve.")]
    reported: Annotated[int | None, Meta(description="Tokens that the provider read from its cache; null if unknown.")]


class TurnStrataJson(JsonBody, frozen=True, kw_only=True):
    """A turn's request by pieces. The tokens of the pieces add up to `total`."""

    turn: Annotated[int, Meta(ge=1, description="Number of the turn, from 1.")]
    message: Annotated[str, Meta(description="Id of the question.")]
    at: Moment | None
    model: str | None
    total: Count
    limit: Annotated[int, Meta(description="Tokens that a request may have.")]
    prefix: PrefixJson
    cache: CacheComparisonJson
    verdict: Annotated[
        VerdictJson | None, Meta(description="What the cache did with the first call, and why; null before an answer.")
    ]
    miss: Annotated[CacheMissJson | None, Meta(description="What its cache misses cost; null without one.")]
    cost: Annotated[CostJson | None, Meta(description="Expected, for the input; null without a known price.")]
    output: Annotated[int | None, Meta(description="Tokens of the answer, as reported; null if unknown.")]
    billed: Annotated[Money, Meta(description="Cost of the reported tokens, answer included.")]
    compaction: Annotated[str | None, Meta(description="Id of the receipt of the compaction before this turn.")]
    pieces: Sequence[PieceJson]


class StrataJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The requests of some turns of the active branch, by pieces."""

    head: Annotated[str, Meta(description="Last message of the branch.")]
    count: Annotated[int, Meta(ge=0, description="Number of turns of the branch.")]
    turns: Sequence[TurnStrataJson]


def iter_turn_strata(
    turns: Iterable["BuiltTurn"],
    calls: Mapping[int, Sequence[ModelCall]],
    times: Mapping[int, str],
    compactions: Mapping[int, str] = MappingProxyType({}),
    misses: Mapping[int, CacheMiss | None] = MappingProxyType({}),
    *,
    groups_history: bool,
) -> Iterator[TurnStrataJson]:
    """Yield the requests of turns by pieces.

    ``calls`` has the model calls of each turn, ``times`` when it was asked, ``compactions`` the one that somebody made
    before it, and ``misses`` what its cache misses cost, by its number.
    """
    pieces = PromptPieceLister(folds_talk=groups_history)
    for turn in turns:
        made = answering_calls(calls.get(turn.number, ()))
        same = turn.prefix_change.common_tokens or 0
        predicted = made[0].predicted if made and made[0].predicted is not None else turn.cache
        outputs = [call.usage.output for call in made if call.usage.output is not None]
        amounts = [call.billed for call in made if call.billed is not None]
        yield TurnStrataJson(
            turn=turn.number,
            message=turn.envelope.message_id,
            at=times.get(turn.number),
            model=turn.envelope.model,
            total=turn.tokens.total,
            limit=turn.tokens.limit,
            prefix=prefix_to_json(turn.prefix_change),
            cache=CacheComparisonJson(
                same=same,
                predicted=None if predicted is None else predicted.read,
                reported=made[0].usage.read if made else None,
            ),
            verdict=verdict_to_json(made[0].verdict) if made else None,
            miss=cache_miss_to_json(misses.get(turn.number)),
            cost=cost_to_json(turn.cost),
            output=sum(outputs) if outputs else None,
            billed=format_decimal_or_none(sum(amounts[1:], amounts[0])) if amounts else None,
            compaction=compactions.get(turn.number) if turn.compaction is None else turn.compaction.id,
            pieces=[_piece_to_json(one) for one in pieces.list_pieces(turn.envelope.prompt, same_tokens=same)],
        )


def _piece_to_json(piece: PromptPiece) -> PieceJson:
    is_band = bool(piece.message_count)
    return PieceJson(
        start=piece.start,
        tokens=piece.tokens,
        layer=None if piece.layer is None else piece.layer.value,
        id=piece.id,
        kind=piece.kind,
        form=piece.form.value,
        place=piece.place,
        same=piece.is_same,
        messages=piece.message_count if is_band else UNSET,
        shortened=piece.shortened if is_band else UNSET,
    )
