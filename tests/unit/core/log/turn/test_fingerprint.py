"""Fingerprints: hashes and ratios of the request of a question, stored with it."""

from lamella.core.log.events.codec import build_question_batch, decode_event
from lamella.core.log.events.message import QuestionEvent, turn_from_event
from lamella.core.log.turn import RequestFingerprint, Turn, TurnSettings

KEPT = RequestFingerprint(
    renderer=1, system="s", library="l", prefix="p", whole="w", segments=(1, 0, 1, 2, 1), attached=9
)


def test_ratios_are_of_attachments_and_earlier_text() -> None:
    measured = RequestFingerprint(
        renderer=1, system="", library="", prefix="", whole="", attached=8, referred=6, context=5, compacted=1
    )
    assert (measured.dedup_ratio, measured.compacted_share) == (0.75, 0.2)
    assert (KEPT.dedup_ratio, KEPT.compacted_share) == (0.0, 0.0)
    bare = RequestFingerprint(renderer=1, system="", library="", prefix="", whole="")
    assert (bare.dedup_ratio, bare.compacted_share) == (0.0, 0.0)


def test_hashes_are_in_request_order() -> None:
    assert KEPT.hashes == ("s", "l", "p", "w")


def test_question_keeps_fingerprint_and_old_one_has_none() -> None:
    for fingerprint in (KEPT, None):
        batch = build_question_batch(Turn(text="hi", fingerprint=fingerprint), message_id="m", parent="", timestamp="")
        event = decode_event(batch.records[0])
        assert isinstance(event, QuestionEvent)
        assert event.imprint == fingerprint
        assert ("imprint" in batch.records[0].body) == (fingerprint is not None)
        assert turn_from_event(event, {}, defaults=TurnSettings()).fingerprint == fingerprint
