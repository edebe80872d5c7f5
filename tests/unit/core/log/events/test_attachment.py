"""The event of a command between two turns: what it names, and what is left of it once something was erased."""

from tests.unit.core.log.scribe import AT, Scribe

from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.core.log.events.artifact import gather_contents, store_artifact
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.codec import read_event, write_erasure, write_event
from lamella.core.log.events.hashes import named_hashes, referenced_artifacts
from lamella.core.values import replace

NOTE = make_artifact(Kind.NOTE, text="A note.", source=Source(path="a.md", read=True))
OTHER = replace(make_artifact(Kind.NOTE, text="B.", source=Source(path="b.md")), outlined=True, anew=True)
EVENT = AttachmentEvent(
    attached=(store_artifact(NOTE), store_artifact(OTHER)),
    detach=("c.md",),
    drop=("d.md",),
    pin=("m1",),
    back=("e.md",),
)


def test_it_is_written_and_read_with_the_contents_that_it_names() -> None:
    (record,) = write_event(EVENT, at=AT, contents=gather_contents((NOTE, OTHER))).records
    assert read_event(record) == EVENT
    assert named_hashes(EVENT) == record.contents == (NOTE.hash, OTHER.hash)
    assert referenced_artifacts(EVENT, "a.md") == (NOTE.hash,)
    assert referenced_artifacts(EVENT, "c.md") == ()


def test_one_that_says_nothing_changes_nothing() -> None:
    assert {getattr(AttachmentEvent(), name) for name in AttachmentEvent.__struct_fields__} == {()}


def test_without_erased_contents_the_rest_is_still_attached() -> None:
    assert [ref.id for ref in EVENT.without({NOTE.hash}).attached] == ["b.md"]
    assert EVENT.without({"sha256:x"}) == EVENT


def test_it_waits_for_the_next_question_and_not_for_one_in_place_of_another() -> None:
    scribe = Scribe()
    first = scribe.ask("q1")
    scribe.reply("a1")
    scribe.write(write_event(EVENT, at=AT, contents=gather_contents((NOTE, OTHER))))
    assert list(scribe.log.commands) == [EVENT]
    scribe.ask("q1 otherwise", edits=first)
    assert list(scribe.log.commands) == [EVENT]
    scribe.ask("q2")
    assert list(scribe.log.commands) == []


def test_what_is_erased_does_not_wait_any_more() -> None:
    scribe = Scribe()
    scribe.write(write_event(EVENT, at=AT, contents=gather_contents((NOTE, OTHER))))
    scribe.write(write_erasure("a.md", [NOTE.hash], at=AT))
    assert [ref.id for event in scribe.log.commands for ref in event.attached] == ["b.md"]
