"""The kinds of events, the small events without a module of their own, and stored event records.

``EventKind`` lists all kinds with their classes. ``EventRecord`` is one event as stored, and ``EventBatch`` has
records to append together with their contents. ``referenced_content_hashes`` returns every content that an event
refers to, which is what erasing and verifying a store rely on.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Protocol, runtime_checkable

from msgspec import Struct

from lamella.core.log.events.artifact import PendingCommandsEvent
from lamella.core.log.events.call import AuxiliaryCallEvent
from lamella.core.log.events.compaction import CompactionEvent, StageEvent, UndoEvent
from lamella.core.log.events.message import EditEvent, QuestionEvent, ToolCallsEvent, ToolResultsEvent, TurnOverrides
from lamella.core.log.turn import ReplyEvent

# Small events: settings, titles, branches, deletions and erasures.

__all__ = ["EventBatch", "EventKind", "EventRecord"]


class SettingsEvent(Struct, frozen=True, kw_only=True, gc=False):
    """Settings by name that apply from then on; the body consists of nothing else."""

    values: Mapping[str, object]


class RenameEvent(Struct, frozen=True, kw_only=True, gc=False):
    """The conversation gets a title."""

    title: str


class DeleteEvent(Struct, frozen=True, kw_only=True, gc=False):
    """The branch continues without a message; a question is deleted with its reply."""

    target: str


class ForkEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename={"overrides": "left"}):
    """The conversation continues from an earlier message.

    With ``overrides`` the branch does not change. They are settings that apply although no turn of the branch has
    them: in a copy of another conversation, or after the system prompt was changed.
    """

    head: str
    overrides: TurnOverrides | None = None


class SwitchEvent(Struct, frozen=True, kw_only=True, gc=False):
    """Another branch becomes active, given by its last message."""

    head: str


class ErasureEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An artifact was erased, with the contents that its record lists.

    Only the listed contents have an effect, not the artifact's name.
    """

    artifact: str = ""
    contents: tuple[str, ...] = ()


class IgnoredEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An event of a kind that is no longer written; files of the first version may contain some, without effect."""


# The kinds of events and the class of each kind.


class EventKind(StrEnum):
    """The kinds of events of a conversation; the log is append-only, and the prompt is a fold over it."""

    MESSAGE = "message"
    REPLY = "reply"
    ATTACHMENT = "attachment"
    SETTINGS = "settings"
    EDIT = "edit"
    DELETE = "delete"
    FORK = "fork"
    SWITCH = "switch"
    RENAME = "rename"
    FOLD = "fold"
    COMPACTION = "compaction"
    UNDO = "undo"
    STAGE = "stage"
    ERASURE = "erasure"
    CALLS = "calls"
    RESULTS = "results"
    AUXILIARY_CALL = "aside"


Event = (
    QuestionEvent
    | EditEvent
    | ReplyEvent
    | ToolCallsEvent
    | ToolResultsEvent
    | AuxiliaryCallEvent
    | PendingCommandsEvent
    | SettingsEvent
    | RenameEvent
    | DeleteEvent
    | ForkEvent
    | SwitchEvent
    | CompactionEvent
    | UndoEvent
    | ErasureEvent
    | StageEvent
    | IgnoredEvent
)

EVENT_CLASSES: Mapping[EventKind, type[Event]] = {
    EventKind.MESSAGE: QuestionEvent,
    EventKind.EDIT: EditEvent,
    EventKind.REPLY: ReplyEvent,
    EventKind.CALLS: ToolCallsEvent,
    EventKind.RESULTS: ToolResultsEvent,
    EventKind.AUXILIARY_CALL: AuxiliaryCallEvent,
    EventKind.SETTINGS: SettingsEvent,
    EventKind.RENAME: RenameEvent,
    EventKind.DELETE: DeleteEvent,
    EventKind.FORK: ForkEvent,
    EventKind.SWITCH: SwitchEvent,
    EventKind.COMPACTION: CompactionEvent,
    EventKind.UNDO: UndoEvent,
    EventKind.ERASURE: ErasureEvent,
    EventKind.STAGE: StageEvent,
    EventKind.ATTACHMENT: PendingCommandsEvent,
    EventKind.FOLD: IgnoredEvent,
}


# Content hashes of events: all of them, those of one artifact, and those of summaries.


@runtime_checkable
class HasContentHashes(Protocol):
    """An event that refers to contents."""

    def iter_content_hashes(self) -> Iterator[str]: ...


def referenced_content_hashes(event: Event) -> tuple[str, ...]:
    """Return every content hash that an event refers to.

    The hashes of an erasure are not included, because its contents no longer exist.
    """
    if isinstance(event, QuestionEvent):
        # Questions are most of a long conversation's events, and most of them refer to no content.
        return () if event.has_no_contents else tuple(dict.fromkeys(event.iter_content_hashes()))
    return tuple(dict.fromkeys(event.iter_content_hashes())) if isinstance(event, HasContentHashes) else ()


def artifact_content_hashes(event: Event, artifact_id: str) -> tuple[str, ...]:
    """Return the hashes of everything an event contains of one artifact.

    These are its text, its images, and instructions that include it. An image is also found inside notes that embed
    it. Tool results inside a turn are not found here, because their ids depend on their position: see
    ``tool_result_hashes``.
    """
    if not isinstance(event, QuestionEvent | PendingCommandsEvent):
        return ()
    hashes: dict[str, None] = {}
    for ref in event.artifacts_in_erasure_order if isinstance(event, QuestionEvent) else event.attached:
        images = [image.hash for image in ref.images]
        if ref.id == artifact_id:
            condensed = [] if ref.condensed is None else [ref.condensed]
            hashes.update(dict.fromkeys((ref.hash, *condensed, *images)))
        elif artifact_id in images:
            hashes.setdefault(artifact_id)
    system = event.system if isinstance(event, QuestionEvent) else None
    if system is not None and system.drawn is not None and any(ref.id == artifact_id for ref in system.inlined):
        hashes.setdefault(system.drawn)
    return tuple(hashes)


def summary_content_hashes(event: Event) -> tuple[str, ...]:
    """Return the hashes of summaries in an event, which may repeat any earlier attachment.

    For a question this is the summary of hidden turns, for a compaction the texts of its placeholders.
    """
    match event:
        case QuestionEvent(history_summary=str() as summary):
            return (summary,)
        case CompactionEvent():
            return tuple(dict.fromkeys(event.iter_content_hashes()))
        case _:
            return ()


class EventRecord(Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """One stored event: its kind, time (RFC 3339, UTC), body as canonical JSON, and referenced content hashes.

    ``counts`` are token counts of texts that came with the event. They are derived data and do not take part in
    comparisons.
    """

    kind: EventKind
    at: str
    body: str
    contents: tuple[str, ...] = ()
    counts: bytes = b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventRecord) and self._comparison_key == other._comparison_key

    def __ne__(self, other: object) -> bool:
        # msgspec structs define ``!=`` themselves, so Python does not derive it from ``__eq__`` above. Without this
        # method two equal events would also be unequal.
        return not self == other

    @property
    def _comparison_key(self) -> tuple[object, ...]:
        return self.kind, self.at, self.body, self.contents


class EventBatch(Struct, frozen=True, kw_only=True, gc=False):
    """Records to append together, and the bytes of the contents that they introduce, often as ``Contents``."""

    records: tuple[EventRecord, ...]
    contents: Mapping[str, bytes] = {}
