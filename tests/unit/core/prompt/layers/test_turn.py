"""L3: new attachments compared with what the request has, and the placement after sending."""

from tests.unit.core.compaction.stories import QUARTERS, note, result
from tests.unit.pictures import png

from lamella.core.artifacts.blocks import render_rejected_image
from lamella.core.artifacts.kinds import make_artifact, make_image_artifact, make_image_data
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.turn import ArtifactForm, MessageAuthor
from lamella.core.prompt.layers.history import make_history_message
from lamella.core.prompt.layers.library import PlacedArtifact, make_placed_artifact
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.layers.turn import (
    NO_ATTACHMENTS,
    RenderedAttachments,
    build_user_layer,
    render_attachments,
    with_updates_joined,
)
from lamella.core.values import replace

HERE = "message:4"
PICTURE = make_image_artifact(
    make_image_data(png(3, 2), media_type="image/png", width=3, height=2), title="Plan", path="plan.png"
)
BODY = "\n".join(f"line {number} of it" for number in range(40))


def show(*attached: object, standing: dict[str, PlacedArtifact] | None = None) -> RenderedAttachments:
    return render_attachments(attached, placed=standing or {}, position=HERE, tokenizer=QUARTERS)  # type: ignore[arg-type]


def stand(text: str, form: ArtifactForm = ArtifactForm.FULL) -> dict[str, PlacedArtifact]:
    one = note("a.md", text)
    return {"a.md": make_placed_artifact(one, form=form, position="message:0", pieces=(f"<{text}>",), tokens=7)}


def test_no_attachments_render_nothing() -> None:
    assert show() == NO_ATTACHMENTS


def test_new_attachment_is_sent_in_full() -> None:
    (segment,), (piece,), (added,), images = show(note("a.md", "A"))
    assert (segment.form, segment.place, segment.text) == (ArtifactForm.FULL, HERE, piece)
    assert (added.segment, added.pieces, images) == (segment, (piece,), ())
    assert segment.tokens == QUARTERS.count(piece)


def test_full_attachment_is_referenced() -> None:
    for form in (ArtifactForm.FULL, ArtifactForm.UPDATE):
        (segment,), pieces, added, _ = show(note("a.md", "A"), standing=stand("A", form))
        assert (segment.form, segment.text, added) == (ArtifactForm.REFERENCE, "- a.md\n", ())
        assert pieces == ("Attached to this message; the text stands above:\n", "- a.md\n")


def test_rejected_image_becomes_text_with_reason() -> None:
    strict = replace(QUARTERS, image_rejection=lambda there, image: "it is too wide")
    _, pieces, _, images = render_attachments([PICTURE], placed={}, position=HERE, tokenizer=strict)
    assert (pieces, images) == ((render_rejected_image(PICTURE, "it is too wide"),), ())


def test_shortened_attachment_is_sent_in_full() -> None:
    for form in (ArtifactForm.PREVIEW, ArtifactForm.HANDLE, ArtifactForm.SUMMARY):
        (segment,), _, (added,), _ = show(note("a.md", "A"), standing=stand("A", form))
        assert (segment.form, added.is_full) == (ArtifactForm.FULL, True)


def test_changed_attachment_is_diff_if_old_text_is_readable() -> None:
    changed = BODY.replace("line 7 of it", "line seven")
    (readable,), _, _, _ = show(note("a.md", changed), standing=stand(BODY))
    (unreadable,), _, _, _ = show(note("a.md", changed), standing=stand(BODY, ArtifactForm.HANDLE))
    assert (readable.form, unreadable.form) == (ArtifactForm.UPDATE, ArtifactForm.UPDATE)
    assert changed not in readable.text
    assert "line seven" in readable.text
    assert changed in unreadable.text


def test_condensed_attachment_is_sent_as_summary_unless_full_is_sent() -> None:
    condensed = replace(note("a.md", BODY), condensed="in short")
    (segment,), _, _, _ = show(condensed)
    assert segment.form is ArtifactForm.SUMMARY
    assert "in short" in segment.text
    (known,), _, _, _ = show(condensed, standing=stand(BODY))
    assert known.form is ArtifactForm.REFERENCE


def test_order_is_results_references_texts_images() -> None:
    found = result("x", "found")
    segments, pieces, added, images = show(note("b.md", "B"), PICTURE, note("a.md", "A"), found, standing=stand("A"))
    assert [segment.id for segment in segments] == [found.id, "a.md", "b.md", PICTURE.id]
    assert len(pieces) == 4
    assert pieces[0] == segments[0].text
    assert pieces[2:] == ("- a.md\n", segments[2].text)
    assert [one.artifact.id for one in added] == [found.id, "b.md", PICTURE.id]
    assert images == PICTURE.images


def test_image_has_no_text_and_image_tokens() -> None:
    (segment,), pieces, (added,), images = show(PICTURE)
    assert (segment.text, segment.tokens, pieces, added.pieces) == ("", 6, (), ())
    assert images == PICTURE.images


def test_sent_image_is_referenced_by_title() -> None:
    placed: dict[str, PlacedArtifact] = {
        PICTURE.id: make_placed_artifact(PICTURE, form=ArtifactForm.FULL, position="message:0", pieces=(), tokens=6)
    }
    (segment,), _, _, images = show(PICTURE, standing=placed)
    assert (segment.text, images) == ("- Plan (picture)\n", ())


def test_active_note_is_note_after_its_turn() -> None:
    active = make_artifact(ArtifactKind.ACTIVE_NOTE, text="A", source=ArtifactSource(path="a.md"), title="a")
    (segment,), _, (added,), _ = show(active)
    assert (segment.kind, added.segment.kind) == (ArtifactKind.ACTIVE_NOTE, ArtifactKind.NOTE)


def test_update_joins_its_copy_and_new_entries_are_last() -> None:
    before = {
        **stand(BODY),
        "z.md": make_placed_artifact(note("z.md", "Z"), form=ArtifactForm.FULL, position=None, pieces=("Z",), tokens=1),
    }
    _, _, added, _ = show(note("b.md", "B"), note("a.md", BODY + "!"), standing=before)
    after = with_updates_joined(before, added)
    assert list(after) == ["a.md", "z.md", "b.md"]
    joined = after["a.md"]
    update = next(one for one in added if one.artifact.id == "a.md")
    assert joined.pieces == (*before["a.md"].pieces, *update.pieces)
    assert (joined.tokens, joined.place, joined.form) == (7 + update.tokens, HERE, ArtifactForm.UPDATE)
    assert after["z.md"] is before["z.md"]
    assert len(before["a.md"].pieces) == 1
    assert with_updates_joined(before, ()) == before


def test_user_layer_has_one_segment_or_none() -> None:
    message = make_history_message("q", MessageAuthor.USER, "why so?", position=HERE, tokenizer=QUARTERS)
    layer = build_user_layer(message)
    assert (layer.id, layer.segments, layer.text, layer.tokens) == (LayerId.L5, (message.segment,), "why so?", 2)
    empty = build_user_layer(make_history_message("q", MessageAuthor.USER, "", position=HERE, tokenizer=QUARTERS))
    assert (len(empty.segments), empty.pieces, empty.tokens) == (1, (), 0)
