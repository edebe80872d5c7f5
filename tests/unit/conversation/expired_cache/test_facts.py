"""Requests of a branch that can be compared with a cache profile: they extend the previous one and are reported."""

from lamella.conversation.expired_cache import ProfileMismatch, profile_mismatches
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.call import CacheOutcome, CacheVerdict, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.turn_records import MessageNode, TurnRecord
from lamella.core.messages import Usage

PROFILE = CacheProfile(name="one", minimum=1_024, lifetime=300)


def call(
    read: int | None,
    plain: int,
    *,
    cause: PrefixChangeCause = PrefixChangeCause.NONE,
    model: str = "one",
    purpose: str = "answer",
) -> ModelCall:
    verdict = CacheVerdict(outcome=CacheOutcome.HIT, prefix_change=PrefixChange(cause=cause))
    return ModelCall(model=model, verdict=verdict, usage=Usage(plain=plain, read=read), purpose=purpose)


def find(*ledger: list[ModelCall], minutes: int = 1) -> list[ProfileMismatch]:
    records = [
        TurnRecord(
            message=MessageNode(
                event=QuestionEvent(id=f"q{at}", parent="", text=""),
                at=f"2026-11-17T{at * minutes // 60:02}:{at * minutes % 60:02}:00Z",
            ),
            reply=None,
        )
        for at in range(len(ledger))
    ]
    return profile_mismatches(records, ledger, lambda _: PROFILE)


def test_extended_request_is_compared_with_profile() -> None:
    (doubt,) = find([call(0, 700)], [call(690, 100)])
    assert (doubt.model, doubt.as_of, doubt.corrected_facts) == ("one", "2026-11-17", {"minimum": 690})
    assert [one.turns for one in doubt.contradictions] == [(2,)]


def test_moved_prefix_other_model_and_missing_report_give_no_mismatch() -> None:
    assert find([call(0, 700)], [call(690, 100, cause=PrefixChangeCause.EPOCH_FOLDED)]) == []
    assert find([call(0, 700, model="other")], [call(690, 100)]) == []
    assert find([call(0, 700)], [call(None, 790)]) == []
    assert find([call(0, 700, purpose="summary")], [call(690, 100)]) == []
    assert find([], [call(690, 100)]) == []


def test_exact_pause_is_compared_with_lifetime() -> None:
    (doubt,) = find([call(0, 3_000)], [call(2_990, 100)], minutes=20)
    assert doubt.corrected_facts == {"lifetime": 1_200}
    # The second request of the turn before may have been any time later.
    assert find([call(0, 2_000), call(2_000, 1_000)], [call(2_990, 100)], minutes=20) == []
