"""Commands as events: what they come to when all of them are read."""

from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.codec import read_event
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.commands.events import list_command_hashes, read_commands, write_command

NOTES = [make_artifact(Kind.NOTE, text=name, source=Source(path=name)) for name in ("a.md", "b.md")]


def test_what_was_written_is_read_and_what_was_taken_back_is_not() -> None:
    one = write_command(Ask(text="", earlier=tuple(NOTES), warnings=("Look.",)), (), at="t")
    two = write_command(Ask(text="", drop=("c.md",)), ("a.md",), at="t")
    events = [read_event(record) for written in (one, two) for record in written.records]
    assert all(isinstance(event, AttachmentEvent) for event in events)
    commands = [event for event in events if isinstance(event, AttachmentEvent)]
    assert list_command_hashes(commands) == tuple(one.contents)
    waits = read_commands(commands, {**one.contents, **two.contents})
    assert ([note.id for note in waits.earlier], waits.drop, waits.warnings) == (["b.md"], ("c.md",), ("Look.",))


def test_what_was_erased_is_left_out_and_said() -> None:
    written = write_command(Ask(text="", earlier=tuple(NOTES)), (), at="t")
    event = read_event(written.records[0])
    assert isinstance(event, AttachmentEvent)
    waits = read_commands([event], {NOTES[1].hash: b"b.md"})
    assert ([note.id for note in waits.earlier], waits.warnings) == (["b.md"], ("a.md was erased and is left out.",))
