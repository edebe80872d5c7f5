"""Artifacts in events: every known field of their source is read back."""

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.events.artifact import contents_of_artifacts, read_artifact, to_stored_artifact

SOURCE = ArtifactSource(
    path="a.md",
    url="https://example.org/a",
    query="desks",
    lines=(2, 5),
    tool="search",
    arguments="{}",
    via="b.md",
    is_rereadable=True,
    current_path="moved/a.md",
    embedded_notes=("c.md", "d.md#Plan"),
    place="Plan > Budget 2",
)


def test_every_source_field_round_trips() -> None:
    assert all(getattr(SOURCE, name) for name in ArtifactSource.__struct_fields__)
    note = make_artifact(ArtifactKind.NOTE, text="A note.", source=SOURCE)
    assert read_artifact(to_stored_artifact(note), contents_of_artifacts((note,))) == note
