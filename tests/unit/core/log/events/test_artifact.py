"""Artifacts as events hold them: where one came from is read back with it, whatever is known of that."""

from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.core.log.events.artifact import gather_contents, read_artifact, store_artifact

SOURCE = Source(
    path="a.md",
    url="https://example.org/a",
    query="desks",
    lines=(2, 5),
    tool="search",
    arguments="{}",
    via="b.md",
    read=True,
    found_at="moved/a.md",
    embedded=("c.md", "d.md#Plan"),
    place="Plan > Budget 2",
)


def test_all_that_is_known_of_a_source_is_read_back() -> None:
    assert all(getattr(SOURCE, name) for name in Source.__struct_fields__)
    note = make_artifact(Kind.NOTE, text="A note.", source=SOURCE)
    assert read_artifact(store_artifact(note), gather_contents((note,))) == note
