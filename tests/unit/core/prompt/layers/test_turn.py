"""L3: what is attached now, against what already stands; and what stands once it is sent."""

from tests.unit.core.compaction.talking import QUARTERS, note, result
from tests.unit.pictures import png

from lamella.core.artifacts.blocks import render_refused
from lamella.core.artifacts.make import make_artifact, make_image, make_image_value
from lamella.core.artifacts.model import Kind, Source
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.library import Standing, make_standing
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.layers.strip import make_said
from lamella.core.prompt.layers.turn import NOTHING_SHOWN, Shown, build_user, merge_standing, show_turn
from lamella.core.values import replace

HERE = "message:4"
PICTURE = make_image(
    make_image_value(png(3, 2), media_type="image/png", width=3, height=2), title="Plan", path="plan.png"
)
BODY = "\n".join(f"line {number} of it" for number in range(40))


def show(*attached: object, standing: dict[str, Standing] | None = None) -> Shown:
    return show_turn(attached, standing=standing or {}, place=HERE, measure=QUARTERS)  # type: ignore[arg-type]


def stand(text: str, form: Form = Form.FULL) -> dict[str, Standing]:
    one = note("a.md", text)
    return {"a.md": make_standing(one, form=form, place="message:0", pieces=(f"<{text}>",), tokens=7)}


def test_nothing_attached_shows_nothing() -> None:
    assert show() == NOTHING_SHOWN


def test_what_is_new_is_sent_in_full_and_adds_itself() -> None:
    (segment,), (piece,), (added,), images = show(note("a.md", "A"))
    assert (segment.form, segment.place, segment.text) == (Form.FULL, HERE, piece)
    assert (added.segment, added.pieces, images) == (segment, (piece,), ())
    assert segment.tokens == QUARTERS.count(piece)


def test_what_stands_in_full_is_referred_to_and_adds_nothing() -> None:
    for form in (Form.FULL, Form.UPDATE):
        (segment,), pieces, added, _ = show(note("a.md", "A"), standing=stand("A", form))
        assert (segment.form, segment.text, added) == (Form.REFERENCE, "- a.md\n", ())
        assert pieces == ("Attached to this message; the text stands above:\n", "- a.md\n")


def test_a_picture_that_a_model_does_not_take_goes_as_words_that_say_why() -> None:
    strict = replace(QUARTERS, refuse=lambda there, image: "it is too wide")
    _, pieces, _, images = show_turn([PICTURE], standing={}, place=HERE, measure=strict)
    assert (pieces, images) == ((render_refused(PICTURE, "it is too wide"),), ())


def test_what_stands_as_less_is_sent_whole_again() -> None:
    for form in (Form.PREVIEW, Form.HANDLE, Form.SUMMARY):
        (segment,), _, (added,), _ = show(note("a.md", "A"), standing=stand("A", form))
        assert (segment.form, added.in_full) == (Form.FULL, True)


def test_another_text_is_an_update_as_a_difference_only_where_the_old_one_can_be_read() -> None:
    changed = BODY.replace("line 7 of it", "line seven")
    (readable,), _, _, _ = show(note("a.md", changed), standing=stand(BODY))
    (unreadable,), _, _, _ = show(note("a.md", changed), standing=stand(BODY, Form.HANDLE))
    assert (readable.form, unreadable.form) == (Form.UPDATE, Form.UPDATE)
    assert changed not in readable.text
    assert "line seven" in readable.text
    assert changed in unreadable.text


def test_what_was_condensed_is_sent_as_its_summary_unless_the_whole_stands_already() -> None:
    condensed = replace(note("a.md", BODY), condensed="in short")
    (segment,), _, _, _ = show(condensed)
    assert segment.form is Form.SUMMARY
    assert "in short" in segment.text
    (known,), _, _, _ = show(condensed, standing=stand(BODY))
    assert known.form is Form.REFERENCE


def test_tool_results_come_first_then_references_then_new_texts_then_pictures() -> None:
    found = result("x", "found")
    segments, pieces, added, images = show(note("b.md", "B"), PICTURE, note("a.md", "A"), found, standing=stand("A"))
    assert [segment.id for segment in segments] == [found.id, "a.md", "b.md", PICTURE.id]
    assert len(pieces) == 4
    assert pieces[0] == segments[0].text
    assert pieces[2:] == ("- a.md\n", segments[2].text)
    assert [one.artifact.id for one in added] == [found.id, "b.md", PICTURE.id]
    assert images == PICTURE.images


def test_a_picture_has_no_text_and_weighs_what_pictures_weigh() -> None:
    (segment,), pieces, (added,), images = show(PICTURE)
    assert (segment.text, segment.tokens, pieces, added.pieces) == ("", 6, (), ())
    assert images == PICTURE.images


def test_a_picture_that_stands_is_referred_to_by_what_people_call_it() -> None:
    standing: dict[str, Standing] = {
        PICTURE.id: make_standing(PICTURE, form=Form.FULL, place="message:0", pieces=(), tokens=6)
    }
    (segment,), _, _, images = show(PICTURE, standing=standing)
    assert (segment.text, images) == ("- Plan (picture)\n", ())


def test_in_its_own_turn_the_active_note_is_the_active_note_and_later_a_note() -> None:
    active = make_artifact(Kind.ACTIVE_NOTE, text="A", source=Source(path="a.md"), title="a")
    (segment,), _, (added,), _ = show(active)
    assert (segment.kind, added.segment.kind) == (Kind.ACTIVE_NOTE, Kind.NOTE)


def test_an_update_joins_the_copy_that_it_updates_and_what_is_new_stands_at_the_end() -> None:
    before = {
        **stand(BODY),
        "z.md": make_standing(note("z.md", "Z"), form=Form.FULL, place=None, pieces=("Z",), tokens=1),
    }
    _, _, added, _ = show(note("b.md", "B"), note("a.md", BODY + "!"), standing=before)
    after = merge_standing(before, added)
    assert list(after) == ["a.md", "z.md", "b.md"]
    joined = after["a.md"]
    update = next(one for one in added if one.artifact.id == "a.md")
    assert joined.pieces == (*before["a.md"].pieces, *update.pieces)
    assert (joined.tokens, joined.place, joined.form) == (7 + update.tokens, HERE, Form.UPDATE)
    assert after["z.md"] is before["z.md"]
    assert len(before["a.md"].pieces) == 1
    assert merge_standing(before, ()) == before


def test_what_was_typed_is_one_segment_also_where_nothing_was() -> None:
    said = make_said("q", Voice.USER, "why so?", place=HERE, measure=QUARTERS)
    layer = build_user(said)
    assert (layer.id, layer.segments, layer.text, layer.tokens) == (LayerId.L5, (said.segment,), "why so?", 2)
    empty = build_user(make_said("q", Voice.USER, "", place=HERE, measure=QUARTERS))
    assert (len(empty.segments), empty.pieces, empty.tokens) == (1, (), 0)
