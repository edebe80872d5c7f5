"""Invariant: within an epoch of layout in_place, each request extends the previous one."""

from hypothesis import given, settings
from tests.invariants.broken_prompts import broken_invariants, turns
from tests.invariants.playing import play
from tests.invariants.strategies import Plan, plans

from lamella import Conversation, Message
from lamella.core.prompt.invariants import GROWING_PREFIX
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")


def as_bytes(messages: tuple[Message, ...]) -> list[bytes]:
    """Each message as sent, down to its pictures."""
    return [repr(sorted(message.to_dict().items())).encode() for message in messages]


@TRIED
@given(plan=plans(layout="in_place"))
def test_within_an_epoch_each_request_starts_with_all_of_the_one_before(plan: Plan) -> None:
    for seen in play(plan):
        if seen.before is not None and seen.before.epoch == seen.envelope.epoch:
            before, now = as_bytes(seen.before.messages), as_bytes(seen.turn.messages)
            assert now[: len(before)] == before
            assert len(now) == len(before) + 2


@TRIED
@given(plan=plans(layout="in_place"))
def test_epoch_begins_exactly_when_prefix_must_move(plan: Plan) -> None:
    for seen in play(plan):
        if seen.before is not None:
            assert (seen.envelope.epoch == seen.before.epoch + 1) == seen.expected.begins_epoch
            assert seen.envelope.epoch - seen.before.epoch in (0, 1)


@TRIED
@given(plan=plans(layout="library"))
def test_in_layout_library_every_turn_begins_an_epoch(plan: Plan) -> None:
    assert [seen.envelope.epoch for seen in play(plan)] == list(range(len(plan.steps)))


def test_changed_earlier_message_violates_growing_prefix() -> None:
    first, second = turns("in_place")
    changed = replace(second.messages[1], pieces=("Something else.",))
    system, _, *later = second.messages
    rewritten = replace(second.envelope, messages=(system, changed, *later))
    assert broken_invariants(rewritten, before=first.envelope) == ["growing_prefix"]


def test_truncated_request_violates_growing_prefix() -> None:
    first, second = turns("in_place")
    cut = replace(second.envelope, messages=second.messages[:1])
    assert broken_invariants(cut, before=first.envelope) == ["growing_prefix"]


def test_new_epoch_may_change_anything() -> None:
    first, second = turns("in_place")
    cut = replace(second.envelope, messages=second.messages[:1], prompt=replace(second.envelope.prompt, epoch=1))
    assert broken_invariants(cut, before=first.envelope) == []


def test_plan_made_after_a_longer_request_is_checked_against_a_shorter_one() -> None:
    conversation = Conversation(layout="auto")
    before = conversation.ask("One?").envelope.prompt
    conversation.reply("Yes.")
    envelope = conversation.ask("Two?").envelope
    plan = replace(envelope.prompt.layout_plan, keep_messages=len(before.messages), within=1)
    resent = replace(envelope, prompt=replace(envelope.prompt, epoch=before.epoch + 1, layout_plan=plan))
    assert tuple(GROWING_PREFIX.check(resent, before)) == ()
