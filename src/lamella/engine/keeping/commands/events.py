"""Commands in a store: what waits for the next question of a conversation, as events, and read back from them."""

from collections.abc import Iterable, Sequence

from lamella.core.log.events.artifact import Contents, gather_contents, read_artifacts, store_artifact
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.codec import write_event
from lamella.core.log.records import Written
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.waiting import NOTHING_WAITS, join_asks


def write_command(later: Ask, back: Iterable[str], *, at: str) -> Written:
    """The event of a command that was read: the texts that it attaches are stored with it."""
    event = AttachmentEvent(
        attached=tuple(map(store_artifact, later.earlier)),
        detach=later.detach,
        drop=later.drop,
        pin=later.pin,
        unpin=later.unpin,
        back=tuple(back),
        rules=later.rules,
        ended=later.ended,
        warnings=later.warnings,
    )
    return write_event(event, at=at, contents=gather_contents(later.earlier))


def list_command_hashes(events: Iterable[AttachmentEvent]) -> Sequence[str]:
    """The contents that commands name."""
    return tuple(dict.fromkeys(name for event in events for name in event.hashes()))


def read_commands(events: Iterable[AttachmentEvent], contents: Contents) -> Ask:
    """What all of them come to; what was erased since is left out, and said."""
    waits = NOTHING_WAITS
    for event in events:
        attached, gone = read_artifacts(event.attached, contents)
        later = Ask(
            text="",
            earlier=attached,
            detach=event.detach,
            drop=event.drop,
            pin=event.pin,
            unpin=event.unpin,
            rules=event.rules,
            ended=event.ended,
            warnings=(*event.warnings, *(f"{name} was erased and is left out." for name in gone)),
        )
        waits = join_asks(waits, later, back=event.back)
    return waits
