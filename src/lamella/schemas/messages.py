"""JSON bodies of a conversation's messages and branches."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.structs import asdict

from lamella.core.log.branch import read_model_calls, read_rounds
from lamella.core.log.events.message import StoredRound
from lamella.core.log.turn_records import MessageNode, TurnRecord, get_cut_reason, list_artifact_ids
from lamella.core.messages import ToolRound
from lamella.schemas.body import JsonBody, Moment, Money, NamedConversationJsonBase
from lamella.schemas.compaction import ReceiptJson, receipt_to_json_or_none
from lamella.schemas.formatting import format_decimal

if TYPE_CHECKING:
    from lamella.conversation.log import CompactionMarker
    from lamella.conversation.note_index import Citation


# Why an answer is shorter than the model's.
CutJson = Annotated[
    str | None,
    Meta(description="Why the answer is cut: `stopped`, `interrupted`, `broken`, or null. Resume continues it."),
]


class SiblingJson(JsonBody, frozen=True, kw_only=True):
    """A message that stands in the same place as another one, on a branch of its own."""

    message: str
    head: Annotated[str, Meta(description="The last message of its newest branch, to switch to.")]


_Siblings = (
    Annotated[
        Sequence[SiblingJson],
        Meta(description="All messages in this place, itself included; only if there are several."),
    ]
    | UnsetType
)


class ReplyTokensJson(JsonBody, frozen=True, kw_only=True):
    """The tokens that the provider reported for all calls of an answer; null if it did not report them."""

    input: Annotated[int | None, Meta(description="With those that came from a cache.")]
    cached: Annotated[int | None, Meta(description="The part of the input that came from a cache.")]
    output: int | None


class ReplyJson(JsonBody, frozen=True, kw_only=True):
    """A reply."""

    message: str
    at: Moment
    text: str
    cut: CutJson
    stop: Annotated[
        str | None,
        Meta(
            description="Why the model stopped: `end`, `length`, `tools`, `sequence`, `refused`, `window`, `paused`, "
            "`circles` (it repeated itself), `other`, or as `cut`. Null if no model call is recorded."
        ),
    ] = None
    model: Annotated[str | None, Meta(description="Null if no model call is recorded.")] = None
    tokens: ReplyTokensJson | None = None
    cost: Annotated[Money, Meta(description="Of all calls of the answer; null if the price is unknown.")] = None
    siblings: _Siblings = UNSET


class ToolCallRecordJson(JsonBody, frozen=True, kw_only=True):
    """A tool call and its output."""

    name: str
    arguments: str
    output: Annotated[str | None, Meta(description="Null until the result is there.")]
    failed: bool


class ToolRoundJson(JsonBody, frozen=True, kw_only=True):
    """A tool round: the model's text and tool calls before its final answer."""

    text: str
    calls: Sequence[ToolCallRecordJson]


class CitedSourceJson(JsonBody, frozen=True, kw_only=True):
    """The source that a number in a reply cites."""

    number: int
    id: str
    title: str
    path: str
    place: str
    text: Annotated[str | None, Meta(description="The cited passage; null if it was erased.")]


class TurnJson(JsonBody, frozen=True, kw_only=True):
    """A question, the ids of its attachments, and its reply or null."""

    message: str
    at: Moment
    text: str
    attached: Sequence[str]
    reply: ReplyJson | None


class TurnWithRoundsJson(TurnJson, frozen=True, kw_only=True):
    """A turn with its number, tool rounds and sources."""

    turn: Annotated[int, Meta(ge=1, description="Number of the turn, from 1.")]
    siblings: _Siblings = UNSET
    rounds: Sequence[ToolRoundJson]
    sources: Sequence[CitedSourceJson]


class BranchJson(JsonBody, frozen=True, kw_only=True):
    """A branch by its last message."""

    branch: str
    active: bool
    turns: Annotated[int, Meta(ge=0, description="Number of turns.")]
    last: TurnJson | None


class CompactionMarkerJson(JsonBody, frozen=True, kw_only=True):
    """The position of a compaction, or of an undo, in a conversation."""

    message: Annotated[str, Meta(description="The message after which it happened.")]
    receipt: Annotated[ReceiptJson | None, Meta(description="Null for an undo.")]
    undone: Annotated[bool, Meta(description="Whether the compaction was undone later.")]
    voided: Annotated[Sequence[str], Meta(description="Receipts that an undo voided.")]


class RunInProgressJson(JsonBody, frozen=True, kw_only=True):
    """The running turn; ``run`` is null if it runs in another process."""

    message: str | None
    run: str | None


class ConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation: the turns of a branch, all branches, and the running turn."""

    title: str
    head: str
    branches: Sequence[BranchJson]
    running: RunInProgressJson | None
    count: Annotated[int, Meta(ge=0, description="Number of turns of the branch.")]
    turns: Sequence[TurnWithRoundsJson]
    compactions: Sequence[CompactionMarkerJson]


class ShownConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation as the command line shows it: the turns of a branch, and the last message of each branch."""

    title: str
    head: str
    branches: Sequence[str]
    turns: Sequence[TurnWithRoundsJson]
    compactions: Sequence[CompactionMarkerJson]


class TranscriptJson(Struct, frozen=True, kw_only=True):
    """A transcript in the format of docs/reference/formats/transcript.md."""

    lamella: int
    conversation: str
    turns: Sequence[Mapping[str, object]]


def turns_to_json(
    path: Sequence[TurnRecord],
    contents: Mapping[str, bytes],
    sources: Sequence[Sequence["Citation"]],
    *,
    siblings: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
    first: int = 1,
) -> list[TurnWithRoundsJson]:
    """Return turns of a branch with tool rounds and sources; ``contents`` has the outputs of tools by hash.

    ``siblings`` has the alternatives of messages, and ``first`` is the number of the first turn.
    """
    return [
        TurnWithRoundsJson(
            **asdict(_turn_to_json(record, siblings)),
            turn=number,
            siblings=_siblings_to_json(record.message.id, siblings),
            rounds=rounds_to_json(record, contents),
            sources=convert(cited, list[CitedSourceJson], from_attributes=True),
        )
        for number, (record, cited) in enumerate(zip(path, sources, strict=True), start=first)
    ]


def markers_to_json(markers: Iterable["CompactionMarker"]) -> list[CompactionMarkerJson]:
    """Return the compactions and undos of a conversation."""
    return [
        CompactionMarkerJson(
            message=marker.message,
            receipt=receipt_to_json_or_none(marker.receipt),
            undone=marker.undone,
            voided=marker.voided,
        )
        for marker in markers
    ]


def _siblings_to_json(message: str, siblings: Mapping[str, Sequence[tuple[str, str]]]) -> list[SiblingJson] | UnsetType:
    found = siblings.get(message)
    return UNSET if found is None else [SiblingJson(message=name, head=head) for name, head in found]


def _turn_to_json(
    record: TurnRecord, siblings: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({})
) -> TurnJson:
    message = record.message
    return TurnJson(
        message=message.id,
        at=message.at,
        text=message.text,
        attached=list_artifact_ids(message),
        reply=None if record.reply is None else _reply_to_json(record, record.reply, siblings),
    )


def rounds_to_json(record: TurnRecord, contents: Mapping[str, bytes]) -> list[ToolRoundJson]:
    """Return the tool rounds of a turn, including an unfinished one; ``contents`` has the outputs by hash."""
    return [_round_to_json(one) for one in read_rounds(record, contents)]


def list_stored_rounds(record: TurnRecord) -> Sequence[StoredRound]:
    """Return the stored tool rounds of a turn; their ``hashes`` name the outputs."""
    return record.open_rounds if record.reply is None else record.reply.rounds


def _round_to_json(tool_round: ToolRound) -> ToolRoundJson:
    given = {output.call: output for output in tool_round.outputs}
    calls = [
        ToolCallRecordJson(
            name=call.name,
            arguments=call.arguments,
            output=given[call.id].output if call.id in given else None,
            failed=call.id in given and given[call.id].failed,
        )
        for call in tool_round.calls
    ]
    return ToolRoundJson(text=tool_round.text, calls=calls)


def branch_to_json(head: str, turns: Sequence[TurnRecord], *, active: bool) -> BranchJson:
    """Return a summary of a branch that distinguishes it from the others."""
    return BranchJson(branch=head, active=active, turns=len(turns), last=_turn_to_json(turns[-1]) if turns else None)


def _reply_to_json(
    record: TurnRecord, node: MessageNode, siblings: Mapping[str, Sequence[tuple[str, str]]]
) -> ReplyJson:
    calls = read_model_calls(record)
    amounts = [call.billed for call in calls]
    return ReplyJson(
        message=node.id,
        at=node.at,
        text=node.text,
        cut=get_cut_reason(node),
        stop=calls[-1].stop or None if calls else None,
        model=calls[-1].model if calls else None,
        tokens=None
        if not calls
        else ReplyTokensJson(
            input=_sum_known(call.usage.prompt_tokens for call in calls),
            cached=_sum_known(call.usage.read for call in calls),
            output=_sum_known(call.usage.output for call in calls),
        ),
        # An amount without that of one of the calls would be wrong.
        cost=format_decimal(sum((one for one in amounts if one is not None), Decimal(0)))
        if calls and None not in amounts
        else None,
        siblings=_siblings_to_json(node.id, siblings),
    )


def _sum_known(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
