"""JSON bodies of changes that the server reports as they happen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from lamella.schemas.body import Count, JsonBody, Moment, VersionedBody

if TYPE_CHECKING:
    from lamella.conversation.changes import ConversationChange


class ReadyEventJson(VersionedBody, frozen=True, kw_only=True):
    """Changes are reported from now on; whatever was read before may be out of date."""


class ConversationEventJson(JsonBody, frozen=True, kw_only=True):
    """A conversation in the list changed."""

    conversation: Annotated[str, Meta(description="Key of the conversation.")]
    name: str
    title: str
    change: Literal["created", "changed", "erased"]
    updated: Moment
    events: Count


class TurnEventJson(JsonBody, frozen=True, kw_only=True):
    """A turn began or ended."""

    conversation: str
    message: Annotated[str | None, Meta(description="Id of the question.")]
    reply: Annotated[str | None, Meta(description="Id of the answer, once the turn has ended.")]
    state: Literal["begun", "ended"]


class AttachmentsEventJson(JsonBody, frozen=True, kw_only=True):
    """The attachments of a conversation changed between two turns."""

    conversation: str


class IndexingEventJson(JsonBody, frozen=True, kw_only=True):
    """Notes are being indexed for the search, which takes a while. The last event has all of them done."""

    done: Count
    total: Annotated[Count, Meta(description="Files that have to be read.")]


CHANGE_EVENTS: Mapping[str, type[Struct]] = {
    "ready": ReadyEventJson,
    "conversation": ConversationEventJson,
    "turn": TurnEventJson,
    "attachments": AttachmentsEventJson,
    "indexing": IndexingEventJson,
}


def change_to_json(change: "ConversationChange") -> tuple[str, JsonBody]:
    """Return the name and the body of the event that reports a change."""
    listed = change.conversation
    match change.kind.value:
        case "turn_begun" | "turn_ended" as kind:
            body = TurnEventJson(
                conversation=listed.conversation,
                message=change.message_id,
                reply=change.reply_id,
                state="begun" if kind == "turn_begun" else "ended",
            )
            return "turn", body
        case "attachments":
            return "attachments", AttachmentsEventJson(conversation=listed.conversation)
        case "created" | "changed" | "erased" as kind:
            return "conversation", ConversationEventJson(
                conversation=listed.conversation,
                name=listed.name,
                title=listed.title,
                change=kind,
                updated=listed.updated,
                events=listed.event_count,
            )
        case kind:
            raise AssertionError(kind)
