"""JSON bodies of lists of conversations, of store statistics, and of commands on conversations and stores."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from lamella.ports import ConversationListItem, StoreProblem, StoreStats
from lamella.schemas.body import (
    Count,
    ErrorDetailJson,
    JsonBody,
    Moment,
    NamedConversationJsonBase,
    VersionedBody,
)

if TYPE_CHECKING:
    from lamella.conversation.import_export import MessageHit


# Lists and searches.


class ConversationSummaryJson(JsonBody, frozen=True, kw_only=True):
    """A conversation in a list."""

    conversation: Annotated[str, Meta(description="Key of the conversation, which never changes.")]
    name: str
    title: str
    created: Moment
    updated: Moment
    events: Count
    archived: (
        Annotated[bool, Meta(description="Whether lists leave it out unless asked; only over HTTP.")] | UnsetType
    ) = UNSET


class ConversationListJson(VersionedBody, frozen=True, kw_only=True):
    """Conversations, the last changed first."""

    total: (
        Annotated[int, Meta(ge=0, description="Also counts those that are not shown; only over HTTP.")] | UnsetType
    ) = UNSET
    chats: Sequence[ConversationSummaryJson]


def conversations_to_json(
    conversations: Iterable[ConversationListItem], *, archived: Collection[str] | None = None
) -> list[ConversationSummaryJson]:
    """Return the conversations in the given order; ``archived`` has the keys of archived ones, if that is known."""
    return [
        ConversationSummaryJson(
            conversation=one.conversation,
            name=one.name,
            title=one.title,
            created=one.created,
            updated=one.updated,
            events=one.event_count,
            archived=UNSET if archived is None else one.conversation in archived,
        )
        for one in conversations
    ]


class MessageHitJson(JsonBody, frozen=True, kw_only=True):
    """A message that contains the words."""

    conversation: str
    name: str
    title: str
    message: str
    role: str
    excerpt: str
    turn: Annotated[int | None, Meta(description="Number of the turn; null on a branch that is not active.")]


class MessageHitListJson(VersionedBody, frozen=True, kw_only=True):
    """Messages that contain the words."""

    hits: Sequence[MessageHitJson]
    error: Annotated[ErrorDetailJson, Meta(description="Why a conversation was not searched.")] | UnsetType = UNSET


def message_hits_to_json(hits: Iterable["MessageHit"]) -> MessageHitListJson:
    """Return the messages that a search found."""
    found = [
        MessageHitJson(
            conversation=hit.conversation,
            name=hit.name,
            title=hit.title,
            message=hit.message,
            role=str(hit.role),
            excerpt=hit.excerpt,
            turn=hit.turn,
        )
        for hit in hits
    ]
    return MessageHitListJson(hits=found)


# Results of commands on one conversation.


class CreatedConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation that was created or renamed."""

    title: str


class ChangedConversationsJson(VersionedBody, frozen=True, kw_only=True):
    """The conversations that were changed together, and those that could not be."""

    done: Annotated[Sequence[str], Meta(description="Keys of the conversations.")]
    failed: Sequence["FailedItemJson"]


class ErasedConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """An erased conversation, of which only a tombstone is left."""

    erased: bool = True


class ErasureResultJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A deleted conversation, or a conversation with a deleted attachment."""

    artifact: Annotated[str | None, Meta(description="The deleted attachment; null for the whole conversation.")]
    contents: Annotated[int | None, Meta(description="Deleted versions of the attachment.")]
    proof: Annotated[str, Meta(description="The command that checks that nothing is left.")]


class SwitchedConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation that continues from another message, its head."""

    head: str


class StoppedConversationJson(SwitchedConversationJson, frozen=True, kw_only=True):
    """A conversation without a running turn; ``stopped`` says whether one was stopped."""

    stopped: bool


class RemovedMessageJson(SwitchedConversationJson, frozen=True, kw_only=True):
    """A conversation that continues without a message."""

    removed: Annotated[str, Meta(description="Id of the message.")]


class ForkOriginJson(JsonBody, frozen=True, kw_only=True):
    """The message that a conversation was forked from."""

    conversation: str
    name: str
    message: str


class ForkedConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """A conversation: a new one with the message it was forked from, or the same one with its new head."""

    head: Annotated[str, Meta(description="Only of a branch.")] | UnsetType = UNSET
    forked: Annotated[ForkOriginJson, Meta(description="Only of a new conversation.")] | UnsetType = UNSET


# Imports and exports.


class ImportedConversationJson(NamedConversationJsonBase, frozen=True, kw_only=True):
    """The result of an import."""

    outcome: Annotated[str, Meta(description="`new`, `extended`, `same`, `older` or `diverged`.")]
    warnings: Sequence[str]


class ImportedFileJson(JsonBody, frozen=True, kw_only=True):
    """An imported file and its conversation."""

    file: str
    outcome: str
    conversation: str
    name: str
    title: str
    warnings: Sequence[str]


class ExportedFileJson(JsonBody, frozen=True, kw_only=True):
    """An exported conversation and its file."""

    conversation: str
    name: str
    file: str


class FailedItemJson(JsonBody, frozen=True, kw_only=True):
    """An item for which a command failed."""

    item: str
    error: ErrorDetailJson


class ExportResultsJson(VersionedBody, frozen=True, kw_only=True):
    """The exported conversations, and those that could not be exported."""

    done: Sequence[ExportedFileJson]
    failed: Sequence[FailedItemJson]


class ImportResultsJson(VersionedBody, frozen=True, kw_only=True):
    """The imported files, and those that could not be imported."""

    done: Sequence[ImportedFileJson]
    failed: Sequence[FailedItemJson]


# Stores.


class SchemaVersionJson(VersionedBody, frozen=True, kw_only=True):
    """The version of a database schema."""

    schema: int


class StoreStatsJson(SchemaVersionJson, frozen=True, kw_only=True):
    """The totals of a store."""

    conversations: Count
    erased: Count
    events: Count
    contents: Count
    content_bytes: Count


class StoreProblemJson(JsonBody, frozen=True, kw_only=True):
    """A problem of a store."""

    conversation: str | None
    name: str | None
    place: str
    what: str
    derived: Annotated[bool, Meta(description="Whether it can be repaired from the events.")]


class StoreVerificationJson(VersionedBody, frozen=True, kw_only=True):
    """The problems of a store that remain after a repair."""

    verified: Annotated[bool, Meta(description="Whether there are none.")]
    damages: Sequence[StoreProblemJson]
    repaired: Annotated[Sequence[str], Meta(description="Keys of repaired conversations.")]


class CopiedConversationJson(JsonBody, frozen=True, kw_only=True):
    """The result of copying a conversation to another store."""

    name: str
    outcome: str


class CopiedStoreJson(VersionedBody, frozen=True, kw_only=True):
    """The result for each conversation copied to another store."""

    conversations: Sequence[CopiedConversationJson]


def stats_to_json(stats: StoreStats) -> StoreStatsJson:
    """Return the totals of a store."""
    return StoreStatsJson(
        schema=stats.schema,
        conversations=stats.conversations,
        erased=stats.erased,
        events=stats.events,
        contents=stats.contents,
        content_bytes=stats.content_bytes,
    )


def problems_to_json(
    problems: Sequence[StoreProblem], names: Mapping[str, str], *, repaired: Sequence[str]
) -> StoreVerificationJson:
    """Return the problems of a store that remain after a repair; ``names`` maps conversation keys to names."""
    found = [
        StoreProblemJson(
            conversation=one.conversation,
            name=None if one.conversation is None else names.get(one.conversation),
            place=one.location,
            what=one.description,
            derived=one.is_repairable,
        )
        for one in problems
    ]
    return StoreVerificationJson(verified=not problems, damages=found, repaired=repaired)
