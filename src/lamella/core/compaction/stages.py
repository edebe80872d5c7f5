"""Stages of a conversation as compaction sees them: ranges of messages, resolved on the whole log."""

from collections.abc import Iterable, Sequence

from msgspec import Struct


class StageRange(Struct, frozen=True, kw_only=True):
    """A stage that is done: the ids of its first and last message. What was decided in it stands in L1."""

    stage: str
    label: str
    first: str
    last: str
    recent: bool = False


# A stage with every message in it; and one that is not on this branch, with the reason.
Stage = tuple[StageRange, tuple[str, ...]]
MissingStage = tuple[StageRange, str]


def resolve_stages(
    ranges: Iterable[StageRange], path: Sequence[str]
) -> tuple[tuple[Stage, ...], tuple[MissingStage, ...]]:
    """Ranges on the branch's messages, oldest first, before anything is removed; and those that are none."""
    index = {name: at for at, name in enumerate(path)}
    stages: list[Stage] = []
    missing: list[MissingStage] = []
    for one in ranges:
        first, last = index.get(one.first), index.get(one.last)
        if first is None or last is None:
            gone = f"first message, {one.first}," if first is None else f"last message, {one.last},"
            missing.append((one, f"the stage {one.label} stays: its {gone} is not in this branch"))
        elif last < first:
            missing.append((one, f"the stage {one.label} stays: its first message comes after its last"))
        else:
            stages.append((one, tuple(path[first : last + 1])))
    return tuple(stages), tuple(missing)


def find_current(before: str | None, path: Sequence[str]) -> frozenset[str] | None:
    """The messages of the stage that is being worked on, given the last before it; none where work has no stages."""
    if before is None:
        return None
    return frozenset(path[path.index(before) + 1 :]) if before in path else frozenset(path)
