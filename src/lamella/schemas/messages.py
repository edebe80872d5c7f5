"""JSON bodies of a conversation's messages and branches."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict

from lamella.core.log.branch import read_rounds
from lamella.core.log.events.message import StoredRound
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn_records import MessageNode, TurnRecord, artifact_ids
from lamella.core.messages import ToolRound
from lamella.schemas.compaction import receipt_to_json


class ReplyBody(TypedDict):
    """A reply with its text, time and message id."""

    message: str
    at: str
    text: str


class TurnBody(ReplyBody):
    """A turn: the question, the ids of its attachments, and the reply or None."""

    attached: list[str]
    reply: ReplyBody | None


class CallBody(TypedDict):
    """A tool call and its output; ``output`` is None until the result is there."""

    name: str
    arguments: str
    output: str | None
    failed: bool


class RoundBody(TypedDict):
    """A tool round: the model's text and tool calls before its final answer."""

    text: str
    calls: list[CallBody]


class SourceBody(TypedDict):
    """The source that a number in a reply cites; ``text`` is None if it was erased."""

    number: int
    id: str
    title: str
    path: str
    place: str
    text: str | None


class BranchBody(TypedDict):
    """A branch by its last message: its number of turns, and the last turn."""

    branch: str
    active: bool
    turns: int
    last: TurnBody | None


class CompactionMarkerShape(Protocol):
    """The properties of a compaction marker that the JSON body needs."""

    @property
    def message(self) -> str: ...
    @property
    def receipt(self) -> CompactionReceipt | None: ...
    @property
    def undone(self) -> bool: ...
    @property
    def voided(self) -> tuple[str, ...]: ...


class SourceShape(Protocol):
    """The properties of a citation that the JSON body needs."""

    @property
    def number(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def text(self) -> str | None: ...


def branch_messages_to_json(
    path: Sequence[TurnRecord],
    contents: Mapping[str, bytes],
    *,
    markers: Sequence[CompactionMarkerShape],
    sources: Sequence[Sequence[SourceShape]],
) -> dict[str, object]:
    """Return all turns of a branch with tool rounds and sources, and its compaction markers."""
    turns = [
        {**turn_record_to_json(record), "rounds": rounds_to_json(record, contents), "sources": sources_to_json(cited)}
        for record, cited in zip(path, sources, strict=True)
    ]
    return {"turns": turns, "compactions": [_marker_to_json(mark) for mark in markers]}


def _marker_to_json(marker: CompactionMarkerShape) -> dict[str, object]:
    receipt = None if marker.receipt is None else receipt_to_json(marker.receipt)
    return {"message": marker.message, "receipt": receipt, "undone": marker.undone, "voided": list(marker.voided)}


def turn_record_to_json(record: TurnRecord) -> TurnBody:
    """Return one turn with its question and reply."""
    message = record.message
    return TurnBody(
        message=message.id,
        at=message.at,
        text=message.text,
        attached=list(artifact_ids(message)),
        reply=None if record.reply is None else _reply_to_json(record.reply),
    )


def rounds_to_json(record: TurnRecord, contents: Mapping[str, bytes]) -> list[RoundBody]:
    """Return the tool rounds of a turn, including an unfinished one; ``contents`` has the outputs by hash."""
    return [_round_to_json(one) for one in read_rounds(record, contents)]


def sources_to_json(sources: Sequence[SourceShape]) -> list[SourceBody]:
    """Return the sources that the numbers in a reply cite."""
    return [
        SourceBody(number=one.number, id=one.id, title=one.title, path=one.path, place=one.place, text=one.text)
        for one in sources
    ]


def list_stored_rounds(record: TurnRecord) -> Sequence[StoredRound]:
    """Return the stored tool rounds of a turn; their ``hashes`` name the outputs."""
    return record.open_rounds if record.reply is None else record.reply.rounds


def _round_to_json(tool_round: ToolRound) -> RoundBody:
    given = {output.call: output for output in tool_round.outputs}
    calls = [
        CallBody(
            name=call.name,
            arguments=call.arguments,
            output=given[call.id].output if call.id in given else None,
            failed=call.id in given and given[call.id].failed,
        )
        for call in tool_round.calls
    ]
    return RoundBody(text=tool_round.text, calls=calls)


def branch_to_json(head: str, turns: Sequence[TurnRecord], *, active: bool) -> BranchBody:
    """Return a summary of a branch that distinguishes it from the others."""
    return BranchBody(
        branch=head, active=active, turns=len(turns), last=turn_record_to_json(turns[-1]) if turns else None
    )


def _reply_to_json(node: MessageNode) -> ReplyBody:
    return ReplyBody(message=node.id, at=node.at, text=node.text)
