"""What the ledger of a conversation says against the profiles of its models."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from lamella.core.ledger.cache import CacheProfile
from lamella.core.ledger.contradictions import Contradiction, Observation, find_contradictions
from lamella.core.log.branch import read_time
from lamella.core.log.call import ANSWER_PURPOSE, Call, Cause
from lamella.core.log.nodes import Told


class ModelDoubt(Struct, frozen=True, kw_only=True):
    """What was seen of a model that its profile does not fit; ``as_of`` is the day on which it was last seen."""

    model: str
    as_of: str
    seen: tuple[Contradiction, ...]

    @property
    def facts(self) -> dict[str, int | bool]:
        """What would fit, by the names of a file of facts."""
        return {name: value for one in self.seen for name, value in one.facts}


def find_doubts(
    told: Sequence[Told], ledger: Sequence[Sequence[Call]], profile: Callable[[str], CacheProfile]
) -> list[ModelDoubt]:
    """Each model of a branch whose reported cache contradicts its profile."""
    seen: dict[str, list[Observation]] = {}
    last: dict[str, int] = {}
    for at, calls in enumerate(ledger):
        asked = [call for call in calls if call.purpose == ANSWER_PURPOSE]
        before = [call for call in ledger[at - 1] if call.purpose == ANSWER_PURPOSE] if at else []
        observed = _see(told, at, asked=asked, before=before) if asked and before else None
        if observed is not None and asked[0].model is not None:
            seen.setdefault(asked[0].model, []).append(observed)
            last[asked[0].model] = at
    found = {model: find_contradictions(some, profile(model)) for model, some in seen.items()}
    return [
        ModelDoubt(model=model, as_of=told[last[model]].message.at[:10], seen=tuple(some))
        for model, some in found.items()
        if some
    ]


def _see(told: Sequence[Told], at: int, *, asked: Sequence[Call], before: Sequence[Call]) -> Observation | None:
    """The first request of a turn, if it goes on from the last one before it and both are reported."""
    call, earlier = asked[0], before[-1]
    moved = call.verdict.movement.cause is not Cause.NONE or call.verdict.movement.segment is not None
    if moved or call.model != earlier.model or call.usage.read is None:
        return None
    if call.usage.prompt is None or earlier.usage.prompt is None:
        return None
    now, then = read_time(told[at].message), read_time(told[at - 1].message)
    # Later requests of a turn are newer than its question, by nobody knows how much.
    exact = now is not None and then is not None and len(before) == 1
    return Observation(
        turn=at + 1,
        prompt=call.usage.prompt,
        read=call.usage.read,
        before=earlier.usage.prompt,
        pause=(now - then).total_seconds() if exact and now and then else None,
    )
