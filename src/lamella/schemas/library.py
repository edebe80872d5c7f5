"""JSON bodies of the context library, pending commands, vault searches and index updates."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lamella.ports import IndexReport, NoteHit
from lamella.schemas.body import ConversationJsonBase, Count, JsonBody, Money, VersionedBody
from lamella.schemas.formatting import format_decimal_or_none
from lamella.schemas.ledger import ExpiredCacheJson, expired_cache_to_json_or_none

if TYPE_CHECKING:
    from lamella.conversation.commands import PendingCommands
    from lamella.conversation.expired_cache import CacheExpiry
    from lamella.conversation.library import LibraryItem
    from lamella.conversation.turn import BuiltTurn


class ArtifactJson(JsonBody, frozen=True, kw_only=True):
    """An attached artifact, with its current form."""

    id: str
    kind: str
    title: str
    form: str
    tokens: Count
    in_working_set: bool
    cached: Annotated[bool | None, Meta(description="Whether a cache is expected to have all of it.")]
    age_turns: Annotated[int, Meta(ge=0, description="Turns since it was last attached.")]
    saves: Annotated[int, Meta(description="Tokens that detaching it removes from the next request.")]
    waits: Annotated[bool, Meta(description="Whether it is attached with the next turn.")]
    policy: str | None
    via: Annotated[str | None, Meta(description="The folder or tag that brought it.")]
    left_out: Annotated[Sequence[str], Meta(description="Notes of a folder or tag that are not sent.")]


class PendingArtifactJson(JsonBody, frozen=True, kw_only=True):
    """An artifact that is attached with the next turn."""

    id: str
    kind: str
    title: str
    form: str
    tokens: int | None


class PendingCommandsJson(JsonBody, frozen=True, kw_only=True):
    """The pending commands for the next turn."""

    attach: Sequence[PendingArtifactJson]
    detach: Sequence[str]
    drop: Sequence[str]
    pin: Sequence[str]
    unpin: Sequence[str]
    rules: Annotated[Sequence[str], Meta(description="Texts of rules to add.")]
    ended_rules: Annotated[Sequence[str], Meta(description="Ids of rules to remove.")]


class LibraryJson(ConversationJsonBase, frozen=True, kw_only=True):
    """All attached artifacts, the pending commands, and the expired cache; null while the cache is valid."""

    artifacts: Sequence[ArtifactJson]
    waiting: PendingCommandsJson
    cold: ExpiredCacheJson | None


class NextRequestJson(JsonBody, frozen=True, kw_only=True):
    """Tokens and cost of the next request, and the difference to before."""

    tokens: Count
    limit: int
    more_tokens: int
    cost: Money
    more_cost: Money


class CommandResultJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The pending commands after a command, and their effect on the next request."""

    waiting: PendingCommandsJson
    said: Annotated[Sequence[str], Meta(description="Messages for the user.")]
    next: NextRequestJson


def library_to_json(
    conversation_key: str,
    rows: Iterable["LibraryItem"],
    pending: "PendingCommands",
    *,
    expired: "CacheExpiry | None" = None,
) -> LibraryJson:
    """Return all artifacts of a conversation, its pending commands, and the expired cache if there is one."""
    return LibraryJson(
        conversation=conversation_key,
        artifacts=[_artifact_to_json(row) for row in rows],
        waiting=_pending_to_json(pending),
        cold=expired_cache_to_json_or_none(expired),
    )


def _artifact_to_json(row: "LibraryItem") -> ArtifactJson:
    return ArtifactJson(
        id=row.id,
        kind=row.kind,
        title=row.title,
        form=row.form,
        tokens=row.tokens,
        in_working_set=row.in_working_set,
        cached=row.cached,
        age_turns=row.age_turns,
        saves=row.tokens_saved,
        waits=row.is_pending,
        policy=row.policy,
        via=row.via,
        left_out=row.left_out,
    )


def commands_to_json(
    conversation_key: str, pending: "PendingCommands", *, before: "BuiltTurn", after: "BuiltTurn"
) -> CommandResultJson:
    """Return the result of a command: the pending commands, warnings, and the change to the next request.

    ``before`` and ``after`` are the next request without and with the command.
    """
    return CommandResultJson(
        conversation=conversation_key,
        waiting=_pending_to_json(pending),
        said=pending.warnings,
        next=NextRequestJson(
            tokens=after.tokens.total,
            limit=after.tokens.limit,
            more_tokens=after.tokens.total - before.tokens.total,
            cost=format_decimal_or_none(estimated_cost(after)),
            more_cost=format_decimal_or_none(cost_difference(before, after)),
        ),
    )


def estimated_cost(turn: "BuiltTurn") -> Decimal | None:
    """Return the estimated cost of a request, or None if it is unknown."""
    return None if turn.cost is None else turn.cost.amount


def cost_difference(before: "BuiltTurn", after: "BuiltTurn") -> Decimal | None:
    """Return how much more the second of two requests would cost, or None if either cost is unknown."""
    amounts = estimated_cost(before), estimated_cost(after)
    return None if amounts[0] is None or amounts[1] is None else amounts[1] - amounts[0]


def _pending_to_json(pending: "PendingCommands") -> PendingCommandsJson:
    attach = [
        PendingArtifactJson(
            id=one.id,
            kind=one.kind.value,
            title=one.title,
            form="preview" if one.is_outlined else "full",
            tokens=pending.tokens.get(one.id),
        )
        for one in pending.attach
    ]
    return PendingCommandsJson(
        attach=attach,
        detach=pending.detach,
        drop=pending.drop,
        pin=pending.pin,
        unpin=pending.unpin,
        rules=pending.rules,
        ended_rules=pending.removed_rules,
    )


# Vault searches and index updates.


class NameCompletionsJson(VersionedBody, frozen=True, kw_only=True):
    """Names in the vault that a word may become."""

    query: str
    names: Annotated[Sequence[str], Meta(description="Paths of notes that contain the word.")]
    folders: Annotated[Sequence[str], Meta(description="Folders whose path contains the word, with a slash.")]
    tags: Annotated[Sequence[str], Meta(description="Tags that begin with the word, without `#`.")]
    headings: Annotated[
        Sequence[str], Meta(description="Of a word such as `note#head`: the path of the note, `#` and the heading.")
    ]


class NoteHitJson(JsonBody, frozen=True, kw_only=True):
    """A passage of the vault."""

    path: str
    heading: str
    text: str
    score: float
    why: str
    id: str
    title: str
    excerpt: str


class UnreadFileJson(JsonBody, frozen=True, kw_only=True):
    """A file that could not be searched, and why."""

    path: str
    why: str


class NoteHitsJson(VersionedBody, frozen=True, kw_only=True):
    """Passages of the vault, best first."""

    query: str
    hits: Sequence[NoteHitJson]
    unread: Sequence[UnreadFileJson]


class IndexJson(VersionedBody, frozen=True, kw_only=True):
    """The result of an index update."""

    index: Annotated[str, Meta(description="Path of the index.")]
    files: Count
    read: Annotated[int, Meta(ge=0, description="Files that were read, because they are new or changed.")]
    removed: Count
    rebuilt: Annotated[str | None, Meta(description="Why the index was rebuilt; null if it was not.")]
    unread: Sequence[UnreadFileJson]


class RestoredNoteJson(VersionedBody, frozen=True, kw_only=True):
    """A note, or files of a repository, of which the last change was undone."""

    path: str
    removed: Annotated[bool, Meta(description="Whether the file was removed, because the change had created it.")]
    paths: Annotated[Sequence[str], Meta(description="All files that the change had changed.")]


def hits_to_json(query: str, hits: Sequence[NoteHit], report: IndexReport) -> NoteHitsJson:
    """Return passages of a vault, best first, and the files that could not be searched, with the reason."""
    return NoteHitsJson(query=query, hits=[_hit_to_json(one) for one in hits], unread=_unread_files_to_json(report))


def index_to_json(report: IndexReport, *, file: str) -> IndexJson:
    """Return the result of an index update."""
    return IndexJson(
        index=file,
        files=report.file_count,
        read=report.read_count,
        removed=report.removed_count,
        rebuilt=report.rebuild_reason,
        unread=_unread_files_to_json(report),
    )


def _hit_to_json(hit: NoteHit) -> NoteHitJson:
    return NoteHitJson(
        path=hit.path,
        heading=hit.heading,
        text=hit.text,
        score=hit.score,
        why=hit.why,
        id=hit.id,
        title=hit.title,
        excerpt=hit.excerpt,
    )


def _unread_files_to_json(report: IndexReport) -> list[UnreadFileJson]:
    return [UnreadFileJson(path=path, why=why) for path, why in report.unread]
