"""The kinds of events: one member, one class, one row."""

from collections.abc import Mapping
from enum import StrEnum

from lamella.core.log.events.aside import AsideEvent
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.changes import (
    DeleteEvent,
    ErasureEvent,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SilentEvent,
    SwitchEvent,
)
from lamella.core.log.events.compaction import CompactionEvent, UndoEvent
from lamella.core.log.events.message import EditEvent, MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import CallsEvent, ResultsEvent
from lamella.core.log.events.stage import StageEvent


class EventKind(StrEnum):
    """What can happen to a conversation. The log only grows; what the model sees is a fold over it."""

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
    ASIDE = "aside"


Event = (
    MessageEvent
    | EditEvent
    | ReplyEvent
    | CallsEvent
    | ResultsEvent
    | AsideEvent
    | AttachmentEvent
    | SettingsEvent
    | RenameEvent
    | DeleteEvent
    | ForkEvent
    | SwitchEvent
    | CompactionEvent
    | UndoEvent
    | ErasureEvent
    | StageEvent
    | SilentEvent
)

CLASSES: Mapping[EventKind, type[Event]] = {
    EventKind.MESSAGE: MessageEvent,
    EventKind.EDIT: EditEvent,
    EventKind.REPLY: ReplyEvent,
    EventKind.CALLS: CallsEvent,
    EventKind.RESULTS: ResultsEvent,
    EventKind.ASIDE: AsideEvent,
    EventKind.SETTINGS: SettingsEvent,
    EventKind.RENAME: RenameEvent,
    EventKind.DELETE: DeleteEvent,
    EventKind.FORK: ForkEvent,
    EventKind.SWITCH: SwitchEvent,
    EventKind.COMPACTION: CompactionEvent,
    EventKind.UNDO: UndoEvent,
    EventKind.ERASURE: ErasureEvent,
    EventKind.STAGE: StageEvent,
    EventKind.ATTACHMENT: AttachmentEvent,
    EventKind.FOLD: SilentEvent,
}
