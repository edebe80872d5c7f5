"""L2: how an artifact stands on the shelf, what of the shelf stays the same object, and what never goes there."""

import pytest
from tests.unit.core.compaction.talking import QUARTERS, note, result, selection
from tests.unit.pictures import png

from lamella.core.artifacts.kinds import promotes
from lamella.core.artifacts.make import make_artifact, make_image, make_image_value
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.log.placement import Form
from lamella.core.log.terms import Attachments, CarryForward, ImageNotes, Terms
from lamella.core.prompt.layers.library import (
    LibraryEntry,
    Standing,
    build_library,
    carried_form,
    fold_shelf,
    make_standing,
    may_shrink,
    promoted_form,
    render_smaller,
    shelve,
)
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

LONG = "# Part one\n\n" + "first words " * 500 + "\n# Part two\n\n" + "last words " * 500
COUNT = QUARTERS.count


def fold(
    *entries: LibraryEntry,
    shelf: dict[str, Standing] | None = None,
    forms: dict[str, Form] | None = None,
    carry_forward: CarryForward = CarryForward.FULL,
    without: tuple[str, ...] = (),
) -> dict[str, Standing]:
    return fold_shelf(
        {entry.artifact.id: entry for entry in entries},
        shelf=shelf or {},
        standing={},
        forms=forms or {},
        terms=Terms(carry_forward=carry_forward),
        without=without,
        count=COUNT,
    )


def entry(artifact: Artifact, form: Form | None = None) -> LibraryEntry:
    return LibraryEntry(artifact=artifact, at=0, form=form)


def test_what_stands_says_its_newest_content_its_place_and_what_it_weighs() -> None:
    one = note("a.md", "A")
    standing = make_standing(one, form=Form.UPDATE, place="message:3", pieces=("first", "then"), tokens=5)
    assert (standing.form, standing.place, standing.tokens) == (Form.UPDATE, "message:3", 5)
    assert (standing.segment.text, standing.segment.content) == ("firstthen", one.hash)
    assert (standing.segment.id, standing.segment.recoverable) == ("a.md", True)


@pytest.mark.parametrize("form", list(Form))
def test_only_what_stands_in_full_can_be_read_off_a_request(form: Form) -> None:
    standing = make_standing(note("a.md", "A"), form=form, place=None, pieces=("x",), tokens=1)
    assert standing.in_full is (form in (Form.FULL, Form.UPDATE))


@pytest.mark.parametrize("form", [Form.PREVIEW, Form.HANDLE])
def test_on_the_shelf_a_smaller_form_stands_only_where_it_is_smaller_and_allowed(form: Form) -> None:
    long = note("a.md", LONG)
    assert shelve(long, form=form, count=COUNT).form is form
    assert len(shelve(long, form=form, count=COUNT).segment.text) < len(LONG)
    for kept in (note("a.md", "short"), note("a.md", LONG, policy=Policy.PIN), selection("a.md", LONG)):
        assert shelve(kept, form=form, count=COUNT).form is Form.FULL
        assert kept.text in shelve(kept, form=form, count=COUNT).segment.text


def test_what_may_shrink_can_be_fetched_again_and_is_not_pinned() -> None:
    assert may_shrink(note("a.md", "A"))
    assert may_shrink(note("a.md", "A", policy=Policy.FOLLOW))
    assert not may_shrink(note("a.md", "A", policy=Policy.PIN))
    assert not may_shrink(selection("a.md", "S"))


def test_a_text_that_was_sent_is_the_same_object_on_the_shelf_and_is_not_counted_again() -> None:
    one = note("a.md", LONG)
    shown = make_standing(one, form=Form.FULL, place="message:1", pieces=("as sent",), tokens=77)
    shelved = shelve(one, form=Form.FULL, count=COUNT, shown=shown)
    assert shelved.pieces is shown.pieces
    assert (shelved.tokens, shelved.place) == (77, "system")
    several = replace(shown, pieces=("outline", "whole"))
    assert shelve(one, form=Form.FULL, count=COUNT, shown=several).pieces != several.pieces
    other = replace(shown, artifact=note("a.md", "other"))
    assert shelve(one, form=Form.FULL, count=COUNT, shown=other).pieces != shown.pieces


def test_the_active_note_is_a_note_on_the_shelf() -> None:
    active = make_artifact(Kind.ACTIVE_NOTE, text="A", source=Source(path="a.md"), title="a.md")
    shown = make_standing(active, form=Form.FULL, place="message:1", pieces=("<active_note>",), tokens=9)
    shelved = shelve(active, form=Form.FULL, count=COUNT, shown=shown)
    assert shelved.segment.kind == Kind.NOTE
    assert shelved.segment.text == shelve(note("a.md", "A"), form=Form.FULL, count=COUNT).segment.text


def test_a_summary_stands_for_what_was_condensed_and_for_nothing_else() -> None:
    condensed = replace(note("a.md", LONG), condensed="in short")
    text = render_smaller(condensed, Form.SUMMARY)
    assert text is not None
    assert "in short" in text
    assert render_smaller(note("a.md", LONG), Form.SUMMARY) is None
    for form in (Form.FULL, Form.REFERENCE, Form.UPDATE):
        assert render_smaller(condensed, form) is None


def test_the_form_that_is_carried_forward_follows_from_the_terms_and_the_length() -> None:
    at_the_bound, above = note("a.md", "x" * 5_000), note("a.md", "x" * 5_001)
    full, preview = Terms(), Terms(carry_forward=CarryForward.PREVIEW)
    assert carried_form(entry(above), full) is Form.FULL
    assert carried_form(entry(above), preview) is Form.PREVIEW
    assert carried_form(entry(at_the_bound), preview) is Form.FULL
    assert carried_form(entry(replace(above, condensed="short")), full) is Form.SUMMARY
    assert carried_form(entry(above, Form.HANDLE), full) is Form.HANDLE


def test_what_is_attached_until_it_is_detached_is_carried_in_full() -> None:
    held = replace(entry(note("a.md", LONG)), held=True)
    sticky = Terms(carry_forward=CarryForward.PREVIEW, attachments=Attachments.STICKY)
    assert carried_form(held, sticky) is Form.FULL
    assert carried_form(held, replace(sticky, attachments=Attachments.TURN)) is Form.PREVIEW
    assert carried_form(replace(held, held=False), sticky) is Form.PREVIEW
    assert carried_form(replace(held, form=Form.PREVIEW), sticky) is Form.PREVIEW


def test_what_is_detached_is_made_smaller_by_the_next_fold() -> None:
    sticky = Terms(carry_forward=CarryForward.PREVIEW, attachments=Attachments.STICKY)
    held = replace(entry(note("a.md", LONG)), held=True)
    shelf = fold_shelf({"a.md": held}, shelf={}, standing={}, forms={}, terms=sticky, without=(), count=COUNT)
    assert shelf["a.md"].form is Form.FULL
    out = {"a.md": replace(held, held=False)}
    later = fold_shelf(out, shelf=shelf, standing={}, forms={}, terms=sticky, without=(), count=COUNT)
    assert later["a.md"].form is Form.PREVIEW


def test_a_fold_keeps_the_order_and_the_objects_of_what_did_not_change() -> None:
    entries = [entry(note(name, LONG)) for name in ("b.md", "a.md")]
    first = fold(*entries)
    assert list(first) == ["b.md", "a.md"]
    again = fold(*entries, entry(note("c.md", "C")), shelf=first)
    assert [again[name] is first[name] for name in first] == [True, True]
    changed = fold(entries[0], entry(note("a.md", LONG + "!")), shelf=first)
    assert [changed[name] is first[name] for name in first] == [True, False]


def test_a_form_of_the_placement_is_stronger_than_one_of_a_compaction_and_that_than_what_is_carried() -> None:
    one = note("a.md", LONG)
    assert fold(entry(one), carry_forward=CarryForward.PREVIEW)["a.md"].form is Form.PREVIEW
    assert fold(entry(one, Form.HANDLE), carry_forward=CarryForward.PREVIEW)["a.md"].form is Form.HANDLE
    assert fold(entry(one, Form.HANDLE), forms={"a.md": Form.PREVIEW})["a.md"].form is Form.PREVIEW


def test_a_smaller_form_is_taken_anew_and_given_back() -> None:
    one = note("a.md", LONG)
    small = fold(entry(one, Form.HANDLE))
    assert fold(entry(one, Form.HANDLE), shelf=small)["a.md"] is small["a.md"]
    assert fold(entry(one), shelf=small)["a.md"].form is Form.FULL


def test_what_l1_draws_in_is_not_on_the_shelf() -> None:
    assert list(fold(entry(note("a.md", "A")), entry(note("b.md", "B")), without=("a.md",))) == ["b.md"]


def test_tool_results_are_never_promoted_and_notes_with_pictures_as_the_terms_say() -> None:
    image = make_image_value(png(2, 2), media_type="image/png", width=2, height=2)
    pictured = make_artifact(Kind.ACTIVE_NOTE, text="A", source=Source(path="a.md"), images=(image,))
    assert all(promotes(one) for one in (note("a.md", "A"), selection("a.md", "S"), pictured))
    assert not promotes(result("x", "found"))
    assert not promotes(make_image(image))
    assert promoted_form(pictured, ImageNotes.HANDLE) is Form.HANDLE
    assert promoted_form(pictured, ImageNotes.TEXT) is promoted_form(note("a.md", "A"), ImageNotes.HANDLE) is None


def test_the_layer_is_what_stands_wherever_it_stands() -> None:
    standings = [
        make_standing(note("a.md", "A"), form=Form.UPDATE, place="message:1", pieces=("one", "two"), tokens=3),
        make_standing(note("b.md", "B"), form=Form.FULL, place="system", pieces=("three",), tokens=4),
    ]
    layer = build_library(standings, {})
    assert (layer.id, layer.text, layer.tokens) == (LayerId.L2, "onetwothree", 7)
    assert [segment.id for segment in layer.segments] == ["a.md", "b.md"]


def test_the_list_of_handles_comes_last_in_its_own_order() -> None:
    a, b, c = (
        make_standing(note(f"{name}.md", name), form=Form.HANDLE, place="message:1", pieces=(name,), tokens=1)
        for name in "abc"
    )
    a, c = replace(a, listed=True), replace(c, listed=True)
    layer = build_library([a, b, c], {"c.md": c, "b.md": b, "a.md": a})
    assert layer.text == "bca"
    assert [segment.id for segment in layer.segments] == ["a.md", "b.md", "c.md"]
