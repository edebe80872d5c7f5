"""Invariant: a reference points only to text that the request has in full, or in full with updates."""

from hypothesis import given, settings
from tests.invariants.blocks import block_text, find_blocks
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.expected_history import digest
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import readable

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_referenced_text_is_readable_above(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages[:-1])
        earlier_pictures = [image.data for message in seen.turn.messages[:-1] for image in message.images]
        for segment in segments_of(seen.envelope, LayerId.L3):
            if segment.form is not ArtifactForm.REFERENCE:
                continue
            if segment.kind == "image":
                assert segment.hash in [f"sha256:{digest(picture)}" for picture in earlier_pictures]
                continue
            fact = seen.expected.attached[segment.id]
            assert block_text(blocks[segment.id]) == readable(fact.text)


@TRIED
@given(plan=plans())
def test_reference_line_names_the_id_that_the_block_above_names(plan: Plan) -> None:
    for seen in play(plan):
        lines = seen.turn.messages[-1].text.split("\n")
        for segment in segments_of(seen.envelope, LayerId.L3):
            if segment.form is ArtifactForm.REFERENCE:
                assert segment.text.endswith("\n")
                assert segment.text.count("\n") == 1
                assert segment.text.removesuffix("\n") in lines


def test_reference_to_missing_entry_violates_invariant() -> None:
    _, second = turns("library")
    left = [s for s in segments_of(second.envelope, LayerId.L2) if s.id != "a.md"]
    assert broken_invariants(with_segments(second.envelope, LayerId.L2, left)) == ["reference_targets"]


def test_reference_to_outline_violates_invariant() -> None:
    _, second = turns("library")
    shrunk = [
        replace(s, form=ArtifactForm.PREVIEW) if s.id == "a.md" else s for s in segments_of(second.envelope, LayerId.L2)
    ]
    assert broken_invariants(with_segments(second.envelope, LayerId.L2, shrunk)) == ["reference_targets"]


def test_reference_to_other_text_of_same_id_violates_invariant() -> None:
    _, second = turns("in_place")
    other = "sha256:" + "0" * 64
    stale = [replace(s, content=other) if s.id == "a.md" else s for s in segments_of(second.envelope, LayerId.L2)]
    assert broken_invariants(with_segments(second.envelope, LayerId.L2, stale)) == ["reference_targets"]
