"""Commands as events: what they come to when all of them are read."""

from lamella.conversation.commands import build_command_batch, list_content_hashes, merge_commands
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.events.artifact import PendingCommandsEvent
from lamella.core.log.events.codec import decode_event

NOTES = [make_artifact(ArtifactKind.NOTE, text=name, source=ArtifactSource(path=name)) for name in ("a.md", "b.md")]


def test_stored_commands_are_read_without_cancelled_ones() -> None:
    one = build_command_batch(TurnRequest(text="", pending_attachments=tuple(NOTES), warnings=("Look.",)), (), at="t")
    two = build_command_batch(TurnRequest(text="", drop=("c.md",)), ("a.md",), at="t")
    events = [decode_event(record) for batch in (one, two) for record in batch.records]
    assert all(isinstance(event, PendingCommandsEvent) for event in events)
    commands = [event for event in events if isinstance(event, PendingCommandsEvent)]
    assert list_content_hashes(commands) == tuple(one.contents)
    pending = merge_commands(commands, {**one.contents, **two.contents})
    assert ([note.id for note in pending.pending_attachments], pending.drop, pending.warnings) == (
        ["b.md"],
        ("c.md",),
        ("Look.",),
    )


def test_erased_pending_attachment_is_omitted_with_warning() -> None:
    batch = build_command_batch(TurnRequest(text="", pending_attachments=tuple(NOTES)), (), at="t")
    event = decode_event(batch.records[0])
    assert isinstance(event, PendingCommandsEvent)
    pending = merge_commands([event], {NOTES[1].hash: b"b.md"})
    assert ([note.id for note in pending.pending_attachments], pending.warnings) == (
        ["b.md"],
        ("a.md was erased and is left out.",),
    )
