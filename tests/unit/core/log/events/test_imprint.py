"""Imprints: hashes and measures of what a question sent, kept with it."""

from lamella.core.log.events.codec import read_event, write_message
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.message import MessageEvent, read_turn
from lamella.core.log.terms import Terms
from lamella.core.log.turn import Turn

KEPT = Imprint(renderer=1, system="s", library="l", prefix="p", whole="w", segments=(1, 0, 1, 2, 1), attached=9)


def test_shares_are_of_what_was_attached_and_of_what_came_before() -> None:
    measured = Imprint(
        renderer=1, system="", library="", prefix="", whole="", attached=8, referred=6, context=5, compacted=1
    )
    assert (measured.dedup_ratio, measured.compacted_share) == (0.75, 0.2)
    assert (KEPT.dedup_ratio, KEPT.compacted_share) == (0.0, 0.0)
    bare = Imprint(renderer=1, system="", library="", prefix="", whole="")
    assert (bare.dedup_ratio, bare.compacted_share) == (0.0, 0.0)


def test_hashes_stand_in_the_order_of_the_request() -> None:
    assert KEPT.hashes == ("s", "l", "p", "w")


def test_a_question_keeps_its_imprint_and_one_of_an_older_version_has_none() -> None:
    for imprint in (KEPT, None):
        written = write_message(Turn(text="hi", imprint=imprint), message_id="m", parent="", at="")
        event = read_event(written.records[0])
        assert isinstance(event, MessageEvent)
        assert event.imprint == imprint
        assert ("imprint" in written.records[0].body) == (imprint is not None)
        assert read_turn(event, {}, usual=Terms()).imprint == imprint
