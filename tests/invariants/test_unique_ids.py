"""Invariant: no id appears twice in a layer. The library's ids are those known, in first-seen order."""

from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_no_layer_names_an_id_twice(plan: Plan) -> None:
    for seen in play(plan):
        for layer in seen.envelope.layers:
            names = [segment.id for segment in layer.segments]
            assert sorted(names) == sorted(set(names))


@TRIED
@given(plan=plans())
def test_library_has_earlier_attachments_in_first_seen_order(plan: Plan) -> None:
    for seen in play(plan):
        drawn_in = seen.expected.inlined  # these are in L1, and in L2 only while their texts differ
        names = [segment.id for segment in segments_of(seen.envelope, LayerId.L2) if segment.id not in drawn_in]
        assert names == [name for name in seen.expected.known if name not in drawn_in]


@TRIED
@given(plan=plans())
def test_turn_names_each_attachment_once(plan: Plan) -> None:
    for seen in play(plan):
        named = [s.id for s in segments_of(seen.envelope, LayerId.L3) if s.id in seen.expected.attached]
        assert sorted(named) == sorted(seen.expected.attached)
        extra = [s for s in segments_of(seen.envelope, LayerId.L3) if s.id not in seen.expected.attached]
        assert {s.kind for s in extra} <= {"image"}, "only the pictures of the active note come along"


def test_duplicate_id_violates_unique_ids() -> None:
    _, second = turns("library")
    segments = segments_of(second.envelope, LayerId.L3)
    reference = next(segment for segment in segments if segment.form is ArtifactForm.REFERENCE)
    assert broken_invariants(with_segments(second.envelope, LayerId.L3, [*segments, reference])) == ["unique_ids"]
