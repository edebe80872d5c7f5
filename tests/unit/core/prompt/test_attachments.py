"""Attachments: each once, with the last policy; and what the library knows afterwards."""

import pytest
from tests.unit.core.compaction.stories import note, result, selection
from tests.unit.pictures import png

from lamella.core.artifacts.kinds import make_artifact, make_image_data
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.log.turn import ArtifactForm, ImageNoteMode, Turn
from lamella.core.prompt.attachments import (
    collect_attachments,
    drop_from_library,
    image_handle_warnings,
    update_library,
)
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.values import replace
from lamella.errors import ArtifactError

PICTURE = make_image_data(png(2, 2), media_type="image/png", width=2, height=2)


def known(*artifacts: Artifact, at: int = 0) -> dict[str, LibraryEntry]:
    return {artifact.id: LibraryEntry(artifact=artifact, last_attached_turn=at) for artifact in artifacts}


def active(text: str, *, pictured: bool = False, policy: AttachmentPolicy | None = None) -> Artifact:
    images = (PICTURE,) if pictured else ()
    return make_artifact(
        ArtifactKind.ACTIVE_NOTE, text=text, source=ArtifactSource(path="a.md"), title="a", images=images, policy=policy
    )


def test_results_precede_attachments_without_duplicates() -> None:
    found, one = result("x", "found"), note("a.md", "A")
    artifacts, warnings = collect_attachments(
        Turn(text="", attached=(one, note("b.md", "B"), one), tool_results=(found,)), {}
    )
    assert [artifact.id for artifact in artifacts] == [found.id, "a.md", "b.md"]
    assert warnings == ()


def test_last_of_two_texts_is_used_with_warning() -> None:
    (only,), (warning,) = collect_attachments(Turn(text="", attached=(note("a.md", "A"), note("a.md", "A2"))), {})
    assert only.text == "A2"
    assert "a.md is attached twice with different text" in warning


@pytest.mark.parametrize(
    ("first", "second", "policy"),
    [
        (AttachmentPolicy.PIN, None, AttachmentPolicy.PIN),
        (None, AttachmentPolicy.PIN, AttachmentPolicy.PIN),
        (AttachmentPolicy.PIN, AttachmentPolicy.FOLLOW, AttachmentPolicy.FOLLOW),
        (None, None, None),
    ],
)
def test_last_policy_applies(
    first: AttachmentPolicy | None, second: AttachmentPolicy | None, policy: AttachmentPolicy | None
) -> None:
    attached = (note("a.md", "A", policy=first), note("a.md", "A", policy=second))
    (only,), _ = collect_attachments(Turn(text="", attached=attached), {})
    assert only.policy is policy


def test_snapshot_keeps_first_text_until_other_policy() -> None:
    library = known(note("a.md", "first", policy=AttachmentPolicy.SNAPSHOT))
    for policy, text in (
        (None, "first"),
        (AttachmentPolicy.SNAPSHOT, "first"),
        (AttachmentPolicy.FOLLOW, "now"),
        (AttachmentPolicy.PIN, "now"),
    ):
        (only,), _ = collect_attachments(Turn(text="", attached=(note("a.md", "now", policy=policy),)), library)
        assert only.text == text


def test_active_snapshot_keeps_first_text() -> None:
    library = known(replace(note("a.md", "first", policy=AttachmentPolicy.SNAPSHOT), condensed="short"))
    first, picture = collect_attachments(Turn(text="", attached=(active("now", pictured=True),)), library)[0]
    assert (first.kind, first.text, first.condensed) == (ArtifactKind.ACTIVE_NOTE, "first", None)
    assert picture.kind is ArtifactKind.IMAGE


def test_active_note_adds_its_images_once() -> None:
    artifacts, _ = collect_attachments(
        Turn(text="", attached=(active("A", pictured=True), active("A", pictured=True))), {}
    )
    assert [artifact.kind for artifact in artifacts] == [ArtifactKind.ACTIVE_NOTE, ArtifactKind.IMAGE]
    assert artifacts[1].title == "a (embedded)"


def test_id_cannot_be_recoverable_and_unrecoverable() -> None:
    picked = replace(selection("a.md", "S"), id=note("a.md", "A").id)
    with pytest.raises(ArtifactError, match=r"a\.md"):
        collect_attachments(Turn(text="", attached=(picked,)), known(note("a.md", "A")))
    with pytest.raises(ArtifactError, match=r"a\.md"):
        collect_attachments(Turn(text="", attached=(note("a.md", "A"), picked)), {})


def test_updated_entry_keeps_first_position_with_newest_text() -> None:
    before = known(note("a.md", "A"), note("b.md", "B"))
    after = update_library(
        before, [note("a.md", "A2"), note("c.md", "C")], turn_number=3, image_notes=ImageNoteMode.HANDLE
    )
    assert [(name, entry.artifact.text, entry.last_attached_turn) for name, entry in after.items()] == [
        ("a.md", "A2", 3),
        ("b.md", "B", 0),
        ("c.md", "C", 3),
    ]
    assert [entry.artifact.text for entry in before.values()] == ["A", "B"]
    assert update_library(before, [], turn_number=3, image_notes=ImageNoteMode.HANDLE) == before


def test_reattachment_keeps_policy_and_resets_form() -> None:
    pinned = note("a.md", "A", policy=AttachmentPolicy.PIN)
    before = {"a.md": LibraryEntry(artifact=pinned, last_attached_turn=0, form=ArtifactForm.HANDLE)}
    for text in ("A", "A2"):
        entry = update_library(before, [note("a.md", text)], turn_number=2, image_notes=ImageNoteMode.HANDLE)["a.md"]
        assert (entry.artifact.text, entry.artifact.policy, entry.form, entry.last_attached_turn) == (
            text,
            AttachmentPolicy.PIN,
            None,
            2,
        )
    same = update_library(before, [note("a.md", "A")], turn_number=2, image_notes=ImageNoteMode.HANDLE)["a.md"].artifact
    assert same is pinned


def test_new_summary_replaces_known_one() -> None:
    before = known(note("a.md", "A"))
    after = update_library(
        before, [replace(note("a.md", "A"), condensed="short")], turn_number=1, image_notes=ImageNoteMode.HANDLE
    )
    assert after["a.md"].artifact.condensed == "short"
    again = update_library(after, [note("a.md", "A")], turn_number=2, image_notes=ImageNoteMode.HANDLE)
    assert again["a.md"].artifact.condensed is None


def test_tool_results_are_not_in_library_and_image_notes_follow_settings() -> None:
    pictured = active("A", pictured=True)
    before = known(note("a.md", "A"))
    for terms, form in ((ImageNoteMode.HANDLE, ArtifactForm.HANDLE), (ImageNoteMode.TEXT, None)):
        after = update_library(before, [pictured, result("x", "found")], turn_number=1, image_notes=terms)
        assert {name: entry.form for name, entry in after.items()} == {"a.md": form}
        assert image_handle_warnings(after, [pictured], image_notes=ImageNoteMode.TEXT) == ()
    handled = update_library(before, [pictured], turn_number=1, image_notes=ImageNoteMode.HANDLE)
    assert image_handle_warnings(handled, [pictured], image_notes=ImageNoteMode.HANDLE) == ()
    (leaving,) = image_handle_warnings(before, [pictured], image_notes=ImageNoteMode.HANDLE)
    assert leaving.startswith("a.md embeds a picture now")
    assert image_handle_warnings(before, [pictured], image_notes=ImageNoteMode.TEXT) == ()
    assert image_handle_warnings({}, [pictured], image_notes=ImageNoteMode.HANDLE) == ()


def test_dropped_artifact_is_removed_and_named_once() -> None:
    library = known(note("a.md", "A"), note("b.md", "B"))
    kept, left, warnings = drop_from_library(library, ["a.md", "a.md", "picture.md"], placed_ids={"picture.md"})
    assert (list(kept), left, warnings) == (["b.md"], ("a.md", "picture.md"), ())
    assert list(library) == ["a.md", "b.md"]


def test_impossible_drop_warns() -> None:
    library = known(note("pinned.md", "P", policy=AttachmentPolicy.PIN), note("drawn.md", "D"))
    kept, left, warnings = drop_from_library(
        library, ["pinned.md", "drawn.md", "only-drawn.md", "nowhere.md"], inlined_ids={"drawn.md", "only-drawn.md"}
    )
    assert (list(kept), left) == (["pinned.md"], ("drawn.md",))
    assert [warning.partition(" ")[0] for warning in warnings] == ["pinned.md", "drawn.md", "only-drawn.md", "Nothing"]
    assert "pinned and was not dropped" in warnings[0]
    assert "stays in the system prompt" in warnings[2]


def test_passage_is_known_but_not_in_working_set() -> None:
    passage = make_artifact(ArtifactKind.PASSAGE, text="x", source=ArtifactSource(path="a.md", place="Costs"))
    learnt = update_library(
        {}, [note("a.md", "A"), passage], turn_number=3, image_notes=ImageNoteMode.TEXT, stays_attached=True
    )
    assert [(entry.last_attached_turn, entry.stays_attached) for entry in learnt.values()] == [(3, True), (3, None)]
