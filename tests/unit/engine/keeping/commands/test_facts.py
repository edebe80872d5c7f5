"""Which requests of a branch say something of a cache: those that go on from the one before, and are reported."""

from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.call import Call, Cause, Movement, Outcome, Verdict
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.nodes import Node, Told
from lamella.core.messages.usage import Usage
from lamella.engine.keeping.commands.facts import ModelDoubt, find_doubts

PROFILE = CacheProfile(name="one", minimum=1_024, lifetime=300)


def call(
    read: int | None, plain: int, *, cause: Cause = Cause.NONE, model: str = "one", purpose: str = "answer"
) -> Call:
    verdict = Verdict(outcome=Outcome.HIT, movement=Movement(cause=cause))
    return Call(model=model, verdict=verdict, usage=Usage(plain=plain, read=read), purpose=purpose)


def find(*ledger: list[Call], minutes: int = 1) -> list[ModelDoubt]:
    told = [
        Told(
            message=Node(
                event=MessageEvent(id=f"q{at}", parent="", text=""),
                at=f"2026-11-17T{at * minutes // 60:02}:{at * minutes % 60:02}:00Z",
            ),
            reply=None,
        )
        for at in range(len(ledger))
    ]
    return find_doubts(told, ledger, lambda _: PROFILE)


def test_a_request_that_goes_on_is_held_against_the_profile_of_its_model() -> None:
    (doubt,) = find([call(0, 700)], [call(690, 100)])
    assert (doubt.model, doubt.as_of, doubt.facts) == ("one", "2026-11-17", {"minimum": 690})
    assert [one.turns for one in doubt.seen] == [(2,)]


def test_what_moved_or_went_to_another_model_or_is_not_reported_says_nothing() -> None:
    assert find([call(0, 700)], [call(690, 100, cause=Cause.EPOCH_FOLDED)]) == []
    assert find([call(0, 700, model="other")], [call(690, 100)]) == []
    assert find([call(0, 700)], [call(None, 790)]) == []
    assert find([call(0, 700, purpose="summary")], [call(690, 100)]) == []
    assert find([], [call(690, 100)]) == []


def test_a_pause_counts_where_it_is_known_to_the_second() -> None:
    (doubt,) = find([call(0, 3_000)], [call(2_990, 100)], minutes=20)
    assert doubt.facts == {"lifetime": 1_200}
    # The second request of the turn before may have been any time later.
    assert find([call(0, 2_000), call(2_000, 1_000)], [call(2_990, 100)], minutes=20) == []
