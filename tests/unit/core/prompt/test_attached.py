"""What is attached: each once, with the last word on it; and what is known of it afterwards."""

import pytest
from tests.unit.core.compaction.talking import note, result, selection
from tests.unit.pictures import png

from lamella.core.artifacts.make import make_artifact, make_image_value
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.log.placement import Form
from lamella.core.log.terms import ImageNotes
from lamella.core.log.turn import Turn
from lamella.core.prompt.attached import drop_known, find_leaving, gather, learn
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.values import replace
from lamella.errors import ArtifactError

PICTURE = make_image_value(png(2, 2), media_type="image/png", width=2, height=2)


def known(*artifacts: Artifact, at: int = 0) -> dict[str, LibraryEntry]:
    return {artifact.id: LibraryEntry(artifact=artifact, at=at) for artifact in artifacts}


def active(text: str, *, pictured: bool = False, policy: Policy | None = None) -> Artifact:
    images = (PICTURE,) if pictured else ()
    return make_artifact(
        Kind.ACTIVE_NOTE, text=text, source=Source(path="a.md"), title="a", images=images, policy=policy
    )


def test_results_come_before_what_is_attached_and_each_id_once() -> None:
    found, one = result("x", "found"), note("a.md", "A")
    artifacts, warnings = gather(Turn(text="", attached=(one, note("b.md", "B"), one), results=(found,)), {})
    assert [artifact.id for artifact in artifacts] == [found.id, "a.md", "b.md"]
    assert warnings == ()


def test_of_two_texts_the_last_is_used_and_that_is_said() -> None:
    (only,), (warning,) = gather(Turn(text="", attached=(note("a.md", "A"), note("a.md", "A2"))), {})
    assert only.text == "A2"
    assert "a.md is attached twice with different text" in warning


@pytest.mark.parametrize(
    ("first", "second", "policy"),
    [
        (Policy.PIN, None, Policy.PIN),
        (None, Policy.PIN, Policy.PIN),
        (Policy.PIN, Policy.FOLLOW, Policy.FOLLOW),
        (None, None, None),
    ],
)
def test_the_last_policy_given_holds(first: Policy | None, second: Policy | None, policy: Policy | None) -> None:
    attached = (note("a.md", "A", policy=first), note("a.md", "A", policy=second))
    (only,), _ = gather(Turn(text="", attached=attached), {})
    assert only.policy is policy


def test_a_snapshot_keeps_its_first_text_until_another_policy_is_given() -> None:
    library = known(note("a.md", "first", policy=Policy.SNAPSHOT))
    for policy, text in ((None, "first"), (Policy.SNAPSHOT, "first"), (Policy.FOLLOW, "now"), (Policy.PIN, "now")):
        (only,), _ = gather(Turn(text="", attached=(note("a.md", "now", policy=policy),)), library)
        assert only.text == text


def test_a_snapshot_that_is_the_active_note_now_is_so_with_its_first_text() -> None:
    library = known(replace(note("a.md", "first", policy=Policy.SNAPSHOT), condensed="short"))
    first, picture = gather(Turn(text="", attached=(active("now", pictured=True),)), library)[0]
    assert (first.kind, first.text, first.condensed) == (Kind.ACTIVE_NOTE, "first", None)
    assert picture.kind is Kind.IMAGE


def test_the_active_note_brings_its_pictures_once() -> None:
    artifacts, _ = gather(Turn(text="", attached=(active("A", pictured=True), active("A", pictured=True))), {})
    assert [artifact.kind for artifact in artifacts] == [Kind.ACTIVE_NOTE, Kind.IMAGE]
    assert artifacts[1].title == "a (embedded)"


def test_one_id_is_never_both_what_can_be_fetched_again_and_what_cannot() -> None:
    picked = replace(selection("a.md", "S"), id=note("a.md", "A").id)
    with pytest.raises(ArtifactError, match=r"a\.md"):
        gather(Turn(text="", attached=(picked,)), known(note("a.md", "A")))
    with pytest.raises(ArtifactError, match=r"a\.md"):
        gather(Turn(text="", attached=(note("a.md", "A"), picked)), {})


def test_what_is_learnt_stands_at_its_first_seen_place_with_its_newest_text() -> None:
    before = known(note("a.md", "A"), note("b.md", "B"))
    after = learn(before, [note("a.md", "A2"), note("c.md", "C")], at=3, image_notes=ImageNotes.HANDLE)
    assert [(name, entry.artifact.text, entry.at) for name, entry in after.items()] == [
        ("a.md", "A2", 3),
        ("b.md", "B", 0),
        ("c.md", "C", 3),
    ]
    assert [entry.artifact.text for entry in before.values()] == ["A", "B"]
    assert learn(before, [], at=3, image_notes=ImageNotes.HANDLE) == before


def test_attached_again_a_policy_stays_and_a_smaller_form_does_not() -> None:
    pinned = note("a.md", "A", policy=Policy.PIN)
    before = {"a.md": LibraryEntry(artifact=pinned, at=0, form=Form.HANDLE)}
    for text in ("A", "A2"):
        entry = learn(before, [note("a.md", text)], at=2, image_notes=ImageNotes.HANDLE)["a.md"]
        assert (entry.artifact.text, entry.artifact.policy, entry.form, entry.at) == (text, Policy.PIN, None, 2)
    same = learn(before, [note("a.md", "A")], at=2, image_notes=ImageNotes.HANDLE)["a.md"].artifact
    assert same is pinned


def test_a_summary_of_this_turn_is_what_is_known_from_then_on() -> None:
    before = known(note("a.md", "A"))
    after = learn(before, [replace(note("a.md", "A"), condensed="short")], at=1, image_notes=ImageNotes.HANDLE)
    assert after["a.md"].artifact.condensed == "short"
    again = learn(after, [note("a.md", "A")], at=2, image_notes=ImageNotes.HANDLE)
    assert again["a.md"].artifact.condensed is None


def test_tool_results_are_not_learnt_and_of_notes_with_pictures_what_the_terms_say() -> None:
    pictured = active("A", pictured=True)
    before = known(note("a.md", "A"))
    for terms, form in ((ImageNotes.HANDLE, Form.HANDLE), (ImageNotes.TEXT, None)):
        after = learn(before, [pictured, result("x", "found")], at=1, image_notes=terms)
        assert {name: entry.form for name, entry in after.items()} == {"a.md": form}
        assert find_leaving(after, [pictured], image_notes=ImageNotes.TEXT) == ()
    handled = learn(before, [pictured], at=1, image_notes=ImageNotes.HANDLE)
    assert find_leaving(handled, [pictured], image_notes=ImageNotes.HANDLE) == ()
    (leaving,) = find_leaving(before, [pictured], image_notes=ImageNotes.HANDLE)
    assert leaving.startswith("a.md embeds a picture now")
    assert find_leaving(before, [pictured], image_notes=ImageNotes.TEXT) == ()
    assert find_leaving({}, [pictured], image_notes=ImageNotes.HANDLE) == ()


def test_what_is_dropped_leaves_once_and_is_named_once() -> None:
    library = known(note("a.md", "A"), note("b.md", "B"))
    kept, left, warnings = drop_known(library, ["a.md", "a.md", "picture.md"], standing={"picture.md"})
    assert (list(kept), left, warnings) == (["b.md"], ("a.md", "picture.md"), ())
    assert list(library) == ["a.md", "b.md"]


def test_what_cannot_be_dropped_is_said() -> None:
    library = known(note("pinned.md", "P", policy=Policy.PIN), note("drawn.md", "D"))
    kept, left, warnings = drop_known(
        library, ["pinned.md", "drawn.md", "only-drawn.md", "nowhere.md"], drawn_in={"drawn.md", "only-drawn.md"}
    )
    assert (list(kept), left) == (["pinned.md"], ("drawn.md",))
    assert [warning.partition(" ")[0] for warning in warnings] == ["pinned.md", "drawn.md", "only-drawn.md", "Nothing"]
    assert "pinned and was not dropped" in warnings[0]
    assert "stays in the system prompt" in warnings[2]


def test_a_passage_is_known_and_not_held_where_attachments_are() -> None:
    passage = make_artifact(Kind.PASSAGE, text="x", source=Source(path="a.md", place="Costs"))
    learnt = learn({}, [note("a.md", "A"), passage], at=3, image_notes=ImageNotes.TEXT, held=True)
    assert [(entry.at, entry.held) for entry in learnt.values()] == [(3, True), (3, None)]
