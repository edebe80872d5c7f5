"""L2: the form of an artifact in the library, reuse of objects, and what never enters it."""

import pytest
from tests.unit.core.compaction.stories import QUARTERS, note, result, selection
from tests.unit.pictures import png

from lamella.core.artifacts.kinds import goes_to_library, make_artifact, make_image_artifact, make_image_data
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.log.turn import ArtifactForm, AttachmentMode, CarryForwardMode, ImageNoteMode, TurnSettings
from lamella.core.prompt.layers.library import (
    LibraryEntry,
    PlacedArtifact,
    attachment_age,
    build_library_layer,
    can_shrink,
    choose_carried_form,
    count_repeats,
    image_note_form,
    make_placed_artifact,
    place_in_library,
    place_library,
    render_shorter_form,
)
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

LONG = "# Part one\n\n" + "first words " * 500 + "\n# Part two\n\n" + "last words " * 500
COUNT = QUARTERS.count


def fold(
    *entries: LibraryEntry,
    shelf: dict[str, PlacedArtifact] | None = None,
    forms: dict[str, ArtifactForm] | None = None,
    carry_forward: CarryForwardMode = CarryForwardMode.FULL,
    without: tuple[str, ...] = (),
) -> dict[str, PlacedArtifact]:
    return place_library(
        {entry.artifact.id: entry for entry in entries},
        system_library=shelf or {},
        placed={},
        forms=forms or {},
        turn_settings=TurnSettings(carry_forward=carry_forward),
        excluded_ids=without,
        count=COUNT,
    )


def entry(artifact: Artifact, form: ArtifactForm | None = None) -> LibraryEntry:
    return LibraryEntry(artifact=artifact, last_attached_turn=0, form=form)


def test_repeats_count_turns_in_a_row_with_the_same_text() -> None:
    one = LibraryEntry(artifact=note("a.md", "A"), last_attached_turn=4, repeats=2)
    assert count_repeats(one, note("a.md", "A"), turn_number=5) == 3
    assert count_repeats(one, note("a.md", "changed"), turn_number=5) == 0
    assert count_repeats(one, note("a.md", "A"), turn_number=6) == 0
    assert count_repeats(None, note("a.md", "A"), turn_number=5) == 0


def test_age_counts_from_first_text_without_retention_and_from_last_turn_with_it() -> None:
    one = LibraryEntry(artifact=note("a.md", "A"), last_attached_turn=4, repeats=2)
    assert attachment_age(one, TurnSettings(linger=0), turn_number=5) == 3
    assert attachment_age(one, TurnSettings(linger=2), turn_number=5) == 1


def test_placed_artifact_has_newest_content_position_and_tokens() -> None:
    one = note("a.md", "A")
    placed = make_placed_artifact(
        one, form=ArtifactForm.UPDATE, position="message:3", pieces=("first", "then"), tokens=5
    )
    assert (placed.form, placed.place, placed.tokens) == (ArtifactForm.UPDATE, "message:3", 5)
    assert (placed.segment.text, placed.segment.content) == ("firstthen", one.hash)
    assert (placed.segment.id, placed.segment.recoverable) == ("a.md", True)


@pytest.mark.parametrize("form", list(ArtifactForm))
def test_only_full_and_updated_artifacts_are_full(form: ArtifactForm) -> None:
    placed = make_placed_artifact(note("a.md", "A"), form=form, position=None, pieces=("x",), tokens=1)
    assert placed.is_full is (form in (ArtifactForm.FULL, ArtifactForm.UPDATE))


@pytest.mark.parametrize("form", [ArtifactForm.PREVIEW, ArtifactForm.HANDLE])
def test_smaller_form_is_used_only_if_smaller_and_allowed(form: ArtifactForm) -> None:
    long = note("a.md", LONG)
    assert place_in_library(long, form=form, count=COUNT).form is form
    assert len(place_in_library(long, form=form, count=COUNT).segment.text) < len(LONG)
    for kept in (note("a.md", "short"), note("a.md", LONG, policy=AttachmentPolicy.PIN), selection("a.md", LONG)):
        assert place_in_library(kept, form=form, count=COUNT).form is ArtifactForm.FULL
        assert kept.text in place_in_library(kept, form=form, count=COUNT).segment.text


def test_recoverable_unpinned_artifact_can_shrink() -> None:
    assert can_shrink(note("a.md", "A"))
    assert can_shrink(note("a.md", "A", policy=AttachmentPolicy.FOLLOW))
    assert not can_shrink(note("a.md", "A", policy=AttachmentPolicy.PIN))
    assert not can_shrink(selection("a.md", "S"))


def test_sent_text_is_reused_in_library_without_recounting() -> None:
    one = note("a.md", LONG)
    shown = make_placed_artifact(one, form=ArtifactForm.FULL, position="message:1", pieces=("as sent",), tokens=77)
    shelved = place_in_library(one, form=ArtifactForm.FULL, count=COUNT, shown=shown)
    assert shelved.pieces is shown.pieces
    assert (shelved.tokens, shelved.place) == (77, "system")
    several = replace(shown, pieces=("outline", "whole"))
    assert place_in_library(one, form=ArtifactForm.FULL, count=COUNT, shown=several).pieces != several.pieces
    other = replace(shown, artifact=note("a.md", "other"))
    assert place_in_library(one, form=ArtifactForm.FULL, count=COUNT, shown=other).pieces != shown.pieces


def test_active_note_is_note_in_library() -> None:
    active = make_artifact(ArtifactKind.ACTIVE_NOTE, text="A", source=ArtifactSource(path="a.md"), title="a.md")
    shown = make_placed_artifact(
        active, form=ArtifactForm.FULL, position="message:1", pieces=("<active_note>",), tokens=9
    )
    shelved = place_in_library(active, form=ArtifactForm.FULL, count=COUNT, shown=shown)
    assert shelved.segment.kind == ArtifactKind.NOTE
    assert shelved.segment.text == place_in_library(note("a.md", "A"), form=ArtifactForm.FULL, count=COUNT).segment.text


def test_summary_is_rendered_only_for_condensed_text() -> None:
    condensed = replace(note("a.md", LONG), condensed="in short")
    text = render_shorter_form(condensed, ArtifactForm.SUMMARY)
    assert text is not None
    assert "in short" in text
    assert render_shorter_form(note("a.md", LONG), ArtifactForm.SUMMARY) is None
    for form in (ArtifactForm.FULL, ArtifactForm.REFERENCE, ArtifactForm.UPDATE):
        assert render_shorter_form(condensed, form) is None


def test_carried_form_follows_settings_and_length() -> None:
    at_the_bound, above = note("a.md", "x" * 5_000), note("a.md", "x" * 5_001)
    full, preview = TurnSettings(), TurnSettings(carry_forward=CarryForwardMode.PREVIEW)
    assert choose_carried_form(entry(above), full) is ArtifactForm.FULL
    assert choose_carried_form(entry(above), preview) is ArtifactForm.PREVIEW
    assert choose_carried_form(entry(at_the_bound), preview) is ArtifactForm.FULL
    assert choose_carried_form(entry(replace(above, condensed="short")), full) is ArtifactForm.SUMMARY
    assert choose_carried_form(entry(above, ArtifactForm.HANDLE), full) is ArtifactForm.HANDLE


def test_sticky_attachment_is_carried_in_full() -> None:
    held = replace(entry(note("a.md", LONG)), stays_attached=True)
    sticky = TurnSettings(carry_forward=CarryForwardMode.PREVIEW, attachments=AttachmentMode.STICKY)
    assert choose_carried_form(held, sticky) is ArtifactForm.FULL
    assert choose_carried_form(held, replace(sticky, attachments=AttachmentMode.TURN)) is ArtifactForm.PREVIEW
    assert choose_carried_form(replace(held, stays_attached=False), sticky) is ArtifactForm.PREVIEW
    assert choose_carried_form(replace(held, form=ArtifactForm.PREVIEW), sticky) is ArtifactForm.PREVIEW


def test_detached_attachment_shrinks_at_next_fold() -> None:
    sticky = TurnSettings(carry_forward=CarryForwardMode.PREVIEW, attachments=AttachmentMode.STICKY)
    held = replace(entry(note("a.md", LONG)), stays_attached=True)
    placed_library = place_library(
        {"a.md": held}, system_library={}, placed={}, forms={}, turn_settings=sticky, excluded_ids=(), count=COUNT
    )
    assert placed_library["a.md"].form is ArtifactForm.FULL
    out = {"a.md": replace(held, stays_attached=False)}
    later = place_library(
        out, system_library=placed_library, placed={}, forms={}, turn_settings=sticky, excluded_ids=(), count=COUNT
    )
    assert later["a.md"].form is ArtifactForm.PREVIEW


def test_fold_keeps_order_and_unchanged_objects() -> None:
    entries = [entry(note(name, LONG)) for name in ("b.md", "a.md")]
    first = fold(*entries)
    assert list(first) == ["b.md", "a.md"]
    again = fold(*entries, entry(note("c.md", "C")), shelf=first)
    assert [again[name] is first[name] for name in first] == [True, True]
    changed = fold(entries[0], entry(note("a.md", LONG + "!")), shelf=first)
    assert [changed[name] is first[name] for name in first] == [True, False]


def test_planned_form_wins_over_compacted_and_carried_form() -> None:
    one = note("a.md", LONG)
    assert fold(entry(one), carry_forward=CarryForwardMode.PREVIEW)["a.md"].form is ArtifactForm.PREVIEW
    assert (
        fold(entry(one, ArtifactForm.HANDLE), carry_forward=CarryForwardMode.PREVIEW)["a.md"].form
        is ArtifactForm.HANDLE
    )
    assert (
        fold(entry(one, ArtifactForm.HANDLE), forms={"a.md": ArtifactForm.PREVIEW})["a.md"].form is ArtifactForm.PREVIEW
    )


def test_smaller_form_is_reused() -> None:
    one = note("a.md", LONG)
    small = fold(entry(one, ArtifactForm.HANDLE))
    assert fold(entry(one, ArtifactForm.HANDLE), shelf=small)["a.md"] is small["a.md"]
    assert fold(entry(one), shelf=small)["a.md"].form is ArtifactForm.FULL


def test_note_in_l1_is_not_in_library() -> None:
    assert list(fold(entry(note("a.md", "A")), entry(note("b.md", "B")), without=("a.md",))) == ["b.md"]


def test_tool_results_are_not_promoted_and_image_notes_follow_settings() -> None:
    image = make_image_data(png(2, 2), media_type="image/png", width=2, height=2)
    pictured = make_artifact(ArtifactKind.ACTIVE_NOTE, text="A", source=ArtifactSource(path="a.md"), images=(image,))
    assert all(goes_to_library(one) for one in (note("a.md", "A"), selection("a.md", "S"), pictured))
    assert not goes_to_library(result("x", "found"))
    assert not goes_to_library(make_image_artifact(image))
    assert image_note_form(pictured, ImageNoteMode.HANDLE) is ArtifactForm.HANDLE
    assert (
        image_note_form(pictured, ImageNoteMode.TEXT)
        is image_note_form(note("a.md", "A"), ImageNoteMode.HANDLE)
        is None
    )


def test_library_layer_lists_entries_wherever_placed() -> None:
    standings = [
        make_placed_artifact(
            note("a.md", "A"), form=ArtifactForm.UPDATE, position="message:1", pieces=("one", "two"), tokens=3
        ),
        make_placed_artifact(note("b.md", "B"), form=ArtifactForm.FULL, position="system", pieces=("three",), tokens=4),
    ]
    layer = build_library_layer(standings, {})
    assert (layer.id, layer.text, layer.tokens) == (LayerId.L2, "onetwothree", 7)
    assert [segment.id for segment in layer.segments] == ["a.md", "b.md"]


def test_handle_list_is_last_in_own_order() -> None:
    a, b, c = (
        make_placed_artifact(
            note(f"{name}.md", name), form=ArtifactForm.HANDLE, position="message:1", pieces=(name,), tokens=1
        )
        for name in "abc"
    )
    a, c = replace(a, is_listed=True), replace(c, is_listed=True)
    layer = build_library_layer([a, b, c], {"c.md": c, "b.md": b, "a.md": a})
    assert layer.text == "bca"
    assert [segment.id for segment in layer.segments] == ["a.md", "b.md", "c.md"]
