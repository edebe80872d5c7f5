"""Invariant: a request has every artifact at most once, except updates."""

from hypothesis import given, settings
from tests.invariants.blocks import Block, find_blocks
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.expected_history import newest
from tests.invariants.playing import Seen, play
from tests.invariants.strategies import Plan, plans

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_no_text_is_sent_twice(plan: Plan) -> None:
    for seen in play(plan):
        for name, blocks in find_blocks(seen.turn.messages).items():
            copies = [block.body for block in blocks if block.is_copy]
            assert len(copies) == len(set(copies)), f"{name} is said twice"
            allowed = 2 if name in seen.expected.inlined else 1  # L1 may draw in another text than was attached
            assert len(copies) <= allowed, f"{name} stands {len(copies)} times"
            assert sum(block.part == "preview" for block in blocks) <= 1


@TRIED
@given(plan=plans())
def test_end_marker_of_each_text_is_found_once(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for fact in newest(seen.expected):
            standing = blocks.get(fact.id, [])
            if len(standing) == 1 and not fact.picture:
                times = 0 if standing[0].part == "preview" else 1
                assert seen.text.count(fact.tail) == times, fact.id


@TRIED
@given(plan=plans())
def test_image_is_sent_once(plan: Plan) -> None:
    for seen in play(plan):
        pictures = [image.data for message in seen.turn.messages for image in message.images]
        assert len(pictures) == len(set(pictures))
        wanted = {fact.picture for fact in seen.expected.attached.values() if fact.picture}
        assert wanted <= set(pictures)


@TRIED
@given(plan=plans())
def test_artifact_is_at_place_of_its_segment(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        last = len(seen.turn.messages) - 1
        for layer_id in (LayerId.L2, LayerId.L3):
            for segment in segments_of(seen.envelope, layer_id):
                if segment.text and segment.form not in (ArtifactForm.REFERENCE, ArtifactForm.HANDLE):
                    pieces = [b for b in blocks[segment.id] if (b.message == last) == (layer_id is LayerId.L3)]
                    assert segment.place == place_of(seen, pieces[-1])


def place_of(seen: Seen, block: Block) -> str:
    speaker = seen.turn.messages[block.message].role
    return "system" if speaker == "system" else f"message:{block.message}"


def test_second_full_copy_violates_invariant() -> None:
    _, second = turns("library")
    segments = segments_of(second.envelope, LayerId.L3)
    again = [replace(s, form=ArtifactForm.FULL) if s.form is ArtifactForm.REFERENCE else s for s in segments]
    assert broken_invariants(with_segments(second.envelope, LayerId.L3, again)) == ["single_copy"]


def test_full_copy_of_note_in_instructions_violates_invariant() -> None:
    first, _ = turns("library")
    note = next(s for s in segments_of(first.envelope, LayerId.L3) if s.id == "a.md")
    parts = [replace(part, inlines=((note.id, note.hash),)) for part in segments_of(first.envelope, LayerId.L1)]
    assert broken_invariants(with_segments(first.envelope, LayerId.L1, parts)) == ["single_copy"]
