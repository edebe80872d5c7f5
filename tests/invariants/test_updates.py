"""A change is sent as an update: the new text, or a diff that gives it exactly, against the copy above."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.blocks import block_text, find_blocks, read_blocks
from tests.invariants.broken_prompts import segments_of
from tests.invariants.playing import play
from tests.invariants.strategies import Attach, Edit, Plan, Step, Thing, plans
from tests.invariants.texts import Words, readable
from tests.unit.patching import apply_diff

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId
from lamella.core.text.content import escape_line
from lamella.core.text.diff import build_short_diff

TRIED = settings.get_profile("invariants")

_LINES = ("", "a", "b", " a", "+b", "-a", "@@ -1 +1 @@", "\\", "</content>", "x\r", "\x0c", "\u2028", "é")
_lines = st.lists(st.sampled_from(_LINES), max_size=60).map("\n".join)


@TRIED
@given(old=_lines, new=_lines)
def test_diff_applied_to_the_older_text_gives_the_newer(old: str, new: str) -> None:
    padding = "\n".join(f"line {n}" for n in range(200))
    for before, after in ((old + padding, new + padding), (padding + old, padding + new)):
        diff = build_short_diff(before, after)
        if diff is not None:
            assert apply_diff(before, diff) == after
            assert len(diff) * 3 <= len(after)


@TRIED
@given(plan=plans())
def test_newest_text_of_updated_entry_follows_from_its_pieces(plan: Plan) -> None:
    for seen in play(plan):
        for segment in segments_of(seen.envelope, LayerId.L2):
            if segment.form is ArtifactForm.UPDATE and segment.id not in seen.expected.inlined:
                pieces = read_blocks(segment.text)
                assert block_text(pieces) == readable(seen.expected.known[segment.id].text)
                assert pieces[-1].is_update


@TRIED
@given(plan=plans())
def test_update_says_that_it_replaces_copy_above(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for segment in segments_of(seen.envelope, LayerId.L3):
            if segment.text and segment.form is not ArtifactForm.REFERENCE:
                assert blocks[segment.id][-1].is_update == (segment.form is ArtifactForm.UPDATE)
                copies = [block for block in blocks[segment.id][:-1] if block.is_copy or block.is_update]
                shrunk = blocks[segment.id][0].part == "preview" or f"<handle>{escape_line(segment.id)}: " in seen.text
                assert bool(copies or shrunk) or segment.form is ArtifactForm.FULL


def test_small_edit_is_diff_and_large_edit_is_full_text() -> None:
    note = Thing(key=0, kind="note", name="a.md", words=Words(length=120))
    edits = (Edit.NONE, Edit.SMALL, Edit.SMALL, Edit.LARGE, Edit.BACK)
    steps = tuple(Step(attach=(Attach(thing=0, edit=edit),)) for edit in edits)
    for layout in ("library", "in_place"):
        parts = []
        for seen in play(Plan(things=(note,), steps=steps, layout=layout)):
            found = find_blocks(seen.turn.messages)["a.md"]
            assert block_text(found) == seen.expected.attached["a.md"].text
            parts.append(found[-1].part)
        assert parts == ["content", "diff", "diff", "content", "content"]


def test_short_note_is_sent_again_as_text() -> None:
    note = Thing(key=0, kind="note", name="a.md")
    steps = tuple(Step(attach=(Attach(thing=0, edit=edit),)) for edit in (Edit.NONE, Edit.SMALL))
    seen = play(Plan(things=(note,), steps=steps, layout="in_place"))[-1]
    assert [(b.part, b.is_update) for b in find_blocks(seen.turn.messages)["a.md"]] == [
        ("content", False),
        ("content", True),
    ]
