"""The event of a command between two turns: what it names, and what is left of it once something was erased."""

from tests.unit.core.log.log_writer import AT, Scribe

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.events.artifact import PendingCommandsEvent, contents_of_artifacts, to_stored_artifact
from lamella.core.log.events.codec import build_erasure_batch, build_event_batch, decode_event
from lamella.core.log.events.kinds import artifact_content_hashes, referenced_content_hashes
from lamella.core.values import replace

NOTE = make_artifact(ArtifactKind.NOTE, text="A note.", source=ArtifactSource(path="a.md", is_rereadable=True))
OTHER = replace(
    make_artifact(ArtifactKind.NOTE, text="B.", source=ArtifactSource(path="b.md")), is_outlined=True, is_fresh=True
)
EVENT = PendingCommandsEvent(
    attached=(to_stored_artifact(NOTE), to_stored_artifact(OTHER)),
    detach=("c.md",),
    drop=("d.md",),
    pin=("m1",),
    cancelled=("e.md",),
)


def test_attachment_event_round_trips_with_contents() -> None:
    (record,) = build_event_batch(EVENT, timestamp=AT, contents=contents_of_artifacts((NOTE, OTHER))).records
    assert decode_event(record) == EVENT
    assert referenced_content_hashes(EVENT) == record.contents == (NOTE.hash, OTHER.hash)
    assert artifact_content_hashes(EVENT, "a.md") == (NOTE.hash,)
    assert artifact_content_hashes(EVENT, "c.md") == ()


def test_empty_attachment_event_changes_nothing() -> None:
    assert {getattr(PendingCommandsEvent(), name) for name in PendingCommandsEvent.__struct_fields__} == {()}


def test_other_attachments_remain_after_erasure() -> None:
    assert [ref.id for ref in EVENT.without_erased({NOTE.hash}).attached] == ["b.md"]
    assert EVENT.without_erased({"sha256:x"}) == EVENT


def test_attachment_event_waits_for_new_question() -> None:
    scribe = Scribe()
    first = scribe.ask("q1")
    scribe.reply("a1")
    scribe.write(build_event_batch(EVENT, timestamp=AT, contents=contents_of_artifacts((NOTE, OTHER))))
    assert list(scribe.log.pending_commands) == [EVENT]
    scribe.ask("q1 otherwise", edits=first)
    assert list(scribe.log.pending_commands) == [EVENT]
    scribe.ask("q2")
    assert list(scribe.log.pending_commands) == []


def test_erased_attachment_is_not_pending() -> None:
    scribe = Scribe()
    scribe.write(build_event_batch(EVENT, timestamp=AT, contents=contents_of_artifacts((NOTE, OTHER))))
    scribe.write(build_erasure_batch("a.md", [NOTE.hash], timestamp=AT))
    assert [ref.id for event in scribe.log.pending_commands for ref in event.attached] == ["b.md"]
