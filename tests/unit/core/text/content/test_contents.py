"""Contents by hash: texts are stored once, and read as their UTF-8 bytes."""

import tracemalloc

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.events.artifact import contents_of_artifacts
from lamella.core.log.events.codec import build_event_batch, merge_batches
from lamella.core.log.events.kinds import RenameEvent
from lamella.core.text.content import Contents, hash_text, unencoded_contents
from lamella.stores.memory import InMemoryStore

TEXT = "ä line of a note\n" * 100_000
NOTE = make_artifact(ArtifactKind.NOTE, text=TEXT, source=ArtifactSource(path="a.md"))


def test_contents_are_read_as_utf8_bytes() -> None:
    contents = Contents({"a": "ä", "b": b"\xff"})
    assert contents == {"a": "ä".encode(), "b": b"\xff"}
    assert (list(contents), len(contents), contents.get("c")) == (["a", "b"], 2, None)


def test_merged_batch_keeps_the_text_object_of_the_artifact() -> None:
    batch = build_event_batch(RenameEvent(title="a"), timestamp="t", contents=contents_of_artifacts((NOTE,)))
    assert unencoded_contents(merge_batches(batch).contents)[NOTE.hash] is NOTE.text


def test_memory_store_keeps_no_second_copy_of_a_text() -> None:
    store, name = InMemoryStore(), hash_text(TEXT)
    batch = build_event_batch(RenameEvent(title="a"), timestamp="t", contents=contents_of_artifacts((NOTE,)))
    tracemalloc.start()
    try:
        store.append("chat", batch, expected=0)
        growth = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert growth < len(TEXT) / 10
    assert store.read_contents("chat", [name]) == {name: TEXT.encode()}
    assert store.stats().content_bytes == len(TEXT.encode())
    assert list(store.verify()) == []
