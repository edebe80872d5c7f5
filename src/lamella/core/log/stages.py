"""Stage events of a log: those of a branch, and what becomes of them where its messages get other ids."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from lamella.core.log.events.stage import StageEvent
from lamella.core.values import replace

# An event, and how many events the log had before it.
StageEntry = tuple[int, StageEvent]


def stages_on(entries: Iterable[StageEntry], path: Mapping[str, int]) -> list[tuple[int, StageEvent]]:
    """The stage events of a branch, each with how many of its messages came before it.

    ``path`` says when each message was said: what was asked before an event does not go on from it.
    """
    names = tuple(path)
    places = {name: at for at, name in enumerate(("", *names))}
    found: list[tuple[int, StageEvent]] = []
    for number, event in entries:
        place = places.get(event.after)
        if place is not None and (place == len(names) or path[names[place]] >= number):
            # Questions and replies take turns: what was done after a question that was answered since, was done after
            # its answer, since a turn is never divided.
            found.append((place + place % 2 if place < len(names) else place, event))
    # What was said again may stand after events that were later: a branch has them where they stand.
    return sorted(found, key=itemgetter(0))


def carry_stages(
    entries: Sequence[StageEntry], before: Mapping[str, int], now: Iterable[str], *, names: Mapping[str, str], at: int
) -> tuple[StageEntry, ...]:
    """The stage events of a log once a message of a branch was deleted: those behind it stand after its new messages.

    ``before`` is the branch as it was, ``now`` as it is, and ``names`` has the new ids of its messages.
    """
    kept, last, moved = frozenset(now), "", {"": ""}
    for name in before:
        last = names.get(name, name) if names.get(name, name) in kept else last
        moved[name] = last
    carried = [event for _, event in stages_on(entries, before) if moved[event.after] != event.after]
    return (*entries, *((at, replace(event, after=moved[event.after])) for event in carried))
