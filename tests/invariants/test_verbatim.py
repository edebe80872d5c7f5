"""Invariant: text that cannot be fetched again is verbatim, and leaves only when the user drops it."""

from hypothesis import given, settings
from tests.invariants.blocks import block_text, find_blocks
from tests.invariants.broken_prompts import broken_invariants, segments_of, turns, with_segments
from tests.invariants.expected_history import newest
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans
from tests.invariants.texts import readable

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


@TRIED
@given(plan=plans())
def test_unrecoverable_text_stays_whole_until_dropped(plan: Plan) -> None:
    for seen in play(plan):
        blocks = find_blocks(seen.turn.messages)
        for fact in newest(seen.expected):
            if fact.fetched_again or fact.picture:
                continue
            assert [block.part for block in blocks[fact.id]] == ["content"], fact.id
            assert block_text(blocks[fact.id]) == readable(fact.text)


@TRIED
@given(plan=plans(layout="library"))
def test_selection_keeps_its_bytes(plan: Plan) -> None:
    texts: dict[str, str] = {}
    for seen in play(plan):
        for segment in segments_of(seen.envelope, LayerId.L2):
            if not segment.recoverable:
                assert texts.setdefault(segment.id, segment.text) == segment.text


@TRIED
@given(plan=plans())
def test_recoverable_flag_matches_what_can_be_refetched(plan: Plan) -> None:
    for seen in play(plan):
        facts = {**seen.expected.known, **seen.expected.attached}
        for layer_id in (LayerId.L2, LayerId.L3):
            for segment in segments_of(seen.envelope, layer_id):
                if segment.id in facts:
                    assert segment.recoverable == facts[segment.id].fetched_again


def test_shortened_selection_violates_verbatim() -> None:
    _, second = turns("library")
    shrunk = [
        s if s.recoverable else replace(s, form=ArtifactForm.PREVIEW) for s in segments_of(second.envelope, LayerId.L2)
    ]
    assert broken_invariants(with_segments(second.envelope, LayerId.L2, shrunk)) == ["verbatim"]


def test_missing_selection_violates_verbatim() -> None:
    first, second = turns("library")
    left = [s for s in segments_of(second.envelope, LayerId.L2) if s.recoverable]
    lost = with_segments(second.envelope, LayerId.L2, left)
    assert broken_invariants(lost, before=first.envelope) == ["verbatim"]


def test_dropped_selection_may_disappear() -> None:
    first, second = turns("library")
    picked = [s.id for s in segments_of(second.envelope, LayerId.L2) if not s.recoverable]
    left = [s for s in segments_of(second.envelope, LayerId.L2) if s.recoverable]
    prompt = replace(second.envelope.prompt, dropped=tuple(picked))
    dropped = replace(with_segments(second.envelope, LayerId.L2, left), prompt=prompt)
    assert broken_invariants(dropped, before=first.envelope) == []
