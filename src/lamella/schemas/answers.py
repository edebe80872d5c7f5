"""JSON bodies of answers, and of the events of a streamed answer.

``answer_to_json`` returns an answer as the command line prints it, ``finished_turn_to_json`` as the server returns it.
``event_to_json`` returns an event of a stream.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from lamella.core.log.call import IncompleteReplyReason, ModelCall
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import ToolCall
from lamella.schemas.body import ConversationJsonBase, ErrorJson, JsonBody, NamedConversationJsonBase, VersionedBody
from lamella.schemas.compaction import ReceiptJson, receipt_to_json_or_none
from lamella.schemas.ledger import (
    ExpiredCacheJson,
    ModelCallJson,
    UsageJson,
    call_to_json,
    expired_cache_to_json,
    usage_to_json,
)
from lamella.schemas.messages import CutJson
from lamella.schemas.prompts import TurnEstimateJson, turn_estimate_to_json

if TYPE_CHECKING:
    from lamella.conversation.turn import BuiltTurn
    from lamella.conversation.turn_runner import TurnEvent

ChatState = Annotated[Mapping[str, bool | list[str]], Meta(description="Which task instructions are in the prompt.")]


class ToolCallJson(JsonBody, frozen=True, kw_only=True):
    """A tool call of the model, with the arguments as the model wrote them."""

    id: str
    name: str
    arguments: Annotated[str, Meta(description="JSON text.")]


class FinishedTurnJson(ConversationJsonBase, frozen=True, kw_only=True):
    """A finished turn: its answer, tool calls that the client must run, and its last model call."""

    message: Annotated[str, Meta(description="The id of the question.")]
    reply: Annotated[str | None, Meta(description="The id of the answer; null while calls wait for the client.")]
    answer: str
    calls: Sequence[ToolCallJson]
    stopped: bool
    cut: CutJson
    warnings: Sequence[str]
    call: ModelCallJson | None


class TurnAnswerJson(VersionedBody, frozen=True, kw_only=True):
    """An answered question, and its last model call."""

    conversation: Annotated[str | None, Meta(description="Key of the conversation; null if it is not stored.")]
    turn: int
    answer: str
    warnings: Sequence[str]
    call: ModelCallJson


class CodeAnswerJson(TurnAnswerJson, frozen=True, kw_only=True):
    """An answered code question, its last model call, and the state of the task."""

    chat_state: ChatState = field(name="chatState")


class FileChangeJson(JsonBody, frozen=True, kw_only=True):
    """The change of one file."""

    path: Annotated[str, Meta(description="Relative to the root of the repository.")]
    diff: str
    created: Annotated[bool, Meta(description="Whether the file is new.")]


class ChangeCheckJson(JsonBody, frozen=True, kw_only=True):
    """The exit codes of the command that checks a change."""

    command: str
    before: int
    after: Annotated[int | None, Meta(description="Null if the change was not applied.")]


class CodeChangeJson(JsonBody, frozen=True, kw_only=True):
    """The change that an answer offers."""

    files: Sequence[FileChangeJson]
    applied: bool
    refused: Annotated[str | None, Meta(description="Why the change cannot be applied.")]
    check: ChangeCheckJson | None


class CodeFixJson(CodeAnswerJson, frozen=True, kw_only=True):
    """An answered code question, and the change of files that the answer offers."""

    change: CodeChangeJson


def answer_to_json(turn: "BuiltTurn", answer: str, call: ModelCall, *, conversation_key: str | None) -> TurnAnswerJson:
    """Return an answered turn; ``conversation_key`` is None if the conversation is not stored."""
    return TurnAnswerJson(
        conversation=conversation_key,
        turn=turn.number,
        answer=answer,
        warnings=turn.envelope.warnings,
        call=call_to_json(call),
    )


def finished_turn_to_json(
    conversation_key: str,
    record: TurnRecord,
    calls_by_turn: Sequence[Sequence[ModelCall]],
    *,
    calls: Iterable[ToolCall],
    warnings: Sequence[str],
    cut: IncompleteReplyReason | None,
) -> FinishedTurnJson:
    """Return a finished turn: its answer, tool calls that the client must run, and its last model call."""
    reply, last = record.reply, next(iter(calls_by_turn), ())
    return FinishedTurnJson(
        conversation=conversation_key,
        message=record.message.id,
        reply=None if reply is None else reply.id,
        answer="" if reply is None else reply.text,
        calls=[tool_call_to_json(call) for call in calls],
        stopped=cut is not None,
        cut=cut,
        warnings=warnings,
        call=call_to_json(last[-1]) if last else None,
    )


def tool_call_to_json(call: ToolCall) -> ToolCallJson:
    """Return a tool call of the model."""
    return ToolCallJson(id=call.id, name=call.name, arguments=call.arguments)


# Events of a stream.


class DeltaEventJson(JsonBody, frozen=True, kw_only=True):
    """More text of the answer, or of the model's reasoning."""

    text: str


class CallOutputJson(JsonBody, frozen=True, kw_only=True):
    """The result of a tool call."""

    call: Annotated[str, Meta(description="Id of the call.")]
    output: str
    failed: bool


class ToolEventJson(JsonBody, frozen=True, kw_only=True):
    """A tool call of the model, or its result."""

    call: ToolCallJson | None
    output: CallOutputJson | None


class RetryEventJson(JsonBody, frozen=True, kw_only=True):
    """A retry: why the request is sent again, and after how many seconds."""

    said: str
    wait: float | None


class CompactionEventJson(JsonBody, frozen=True, kw_only=True):
    """Another compaction was necessary."""

    said: str
    receipt: ReceiptJson | None


class NoteEventJson(JsonBody, frozen=True, kw_only=True):
    """A message for the user."""

    said: str


class CacheExpiredEventJson(JsonBody, frozen=True, kw_only=True):
    """The cache expired before the message: what that costs as it is, and after a fold."""

    cold: ExpiredCacheJson


class PermissionEventJson(JsonBody, frozen=True, kw_only=True):
    """A change that a model wants to write, and the user's answer once there is one."""

    id: Annotated[str, Meta(description="Answer it with `POST …/permissions/{id}`.")]
    path: Annotated[str, Meta(description="The note, relative to the vault; of the memory, the path of its file.")]
    diff: Annotated[str, Meta(description="The whole change as a unified diff.")]
    created: Annotated[bool, Meta(description="Whether the file is new.")]
    memory: Annotated[bool, Meta(description="Whether it is a fact for the memory, and not a note.")]
    allowed: Annotated[bool | None, Meta(description="The answer; null while it waits for one.")]


class PermissionAnswerJson(ConversationJsonBase, frozen=True, kw_only=True):
    """An answer to a permission request, which was passed on to the turn that waits."""

    permission: str
    allowed: bool


class DoneEventJson(JsonBody, frozen=True, kw_only=True):
    """The answer is stored."""

    calls: Annotated[Sequence[ToolCallJson], Meta(description="Tool calls that the client must run.")]
    conversation: str
    message: str | None
    reply: str | None
    stopped: bool
    cut: CutJson


class OpenedChatJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation that `lamella chat --json` has opened."""

    model: str
    turns: int


class ToolResultJson(JsonBody, frozen=True, kw_only=True):
    """The result of a tool call, as `lamella chat --json` prints it."""

    id: Annotated[str, Meta(description="Id of the call.")]
    output: str
    failed: bool


# The body in the data of each event of a stream.
EVENTS: Mapping[str, type[Struct]] = {
    "cold": CacheExpiredEventJson,
    "envelope": TurnEstimateJson,
    "delta": DeltaEventJson,
    "reasoning": DeltaEventJson,
    "tool": ToolEventJson,
    "usage": UsageJson,
    "retry": RetryEventJson,
    "compaction": CompactionEventJson,
    "note": NoteEventJson,
    "permission": PermissionEventJson,
    "done": DoneEventJson,
    "error": ErrorJson,
}


def event_to_json(event: "TurnEvent") -> JsonBody:
    """Return the body of an event other than ``done``; the event's name is its kind."""
    match event.kind.value:
        case "cold" if event.expired_cache is not None:
            return CacheExpiredEventJson(cold=expired_cache_to_json(event.expired_cache))
        case "envelope" if event.turn is not None:
            return turn_estimate_to_json(event.turn)
        case "delta":
            return DeltaEventJson(text=event.text)
        case "reasoning":
            return DeltaEventJson(text=event.message)
        case "tool":
            return _tool_event_to_json(event)
        case "usage" if event.usage is not None:
            return usage_to_json(event.usage)
        case "retry":
            return RetryEventJson(said=event.message, wait=event.wait)
        case "compaction":
            return CompactionEventJson(said=event.message, receipt=receipt_to_json_or_none(event.receipt))
        case "permission" if event.permission is not None:
            change = event.permission.change
            return PermissionEventJson(
                id=event.permission.id,
                path=change.path,
                diff=change.diff,
                created=change.before is None,
                memory=change.is_memory,
                allowed=event.permission.allowed,
            )
    return NoteEventJson(said=event.message)


def done_event_to_json(
    event: "TurnEvent",
    *,
    conversation_key: str,
    message_id: str | None,
    reply_id: str | None,
    cut: IncompleteReplyReason | None,
) -> DoneEventJson:
    """Return the body of the event that says that the answer to ``message`` is stored as ``reply``."""
    return DoneEventJson(
        calls=[tool_call_to_json(call) for call in event.calls],
        conversation=conversation_key,
        message=message_id,
        reply=reply_id,
        stopped=cut is not None,
        cut=cut,
    )


def _tool_event_to_json(event: "TurnEvent") -> ToolEventJson:
    call, output = event.call, event.output
    return ToolEventJson(
        call=None if call is None else tool_call_to_json(call),
        output=None if output is None else CallOutputJson(call=output.call, output=output.output, failed=output.failed),
    )
