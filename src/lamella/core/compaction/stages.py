"""Stages of a conversation as compaction sees them: ranges of messages, resolved on the whole log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRange:
    """A stage that is done: the ids of its first and last message, and what was decided in it."""

    stage: str
    label: str
    decision: str
    first: str
    last: str
    recent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage's range, and every message in it."""

    range: StageRange
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """A stage's range that is none on this branch, and why."""

    range: StageRange
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStages:
    """The stages found and those that were not, each in the order given."""

    stages: tuple[Stage, ...]
    missing: tuple[Unresolved, ...]


def resolve_stages(ranges: Iterable[StageRange], path: Sequence[str]) -> ResolvedStages:
    """Ranges on the branch's messages, oldest first, before anything is removed from it."""
    index = {name: at for at, name in enumerate(path)}
    stages: list[Stage] = []
    missing: list[Unresolved] = []
    for one in ranges:
        first, last = index.get(one.first), index.get(one.last)
        if first is None or last is None:
            gone = f"first message, {one.first}," if first is None else f"last message, {one.last},"
            missing.append(_unresolved(one, f"its {gone} is not in this branch"))
        elif last < first:
            missing.append(_unresolved(one, "its first message comes after its last"))
        else:
            stages.append(Stage(range=one, messages=tuple(path[first : last + 1])))
    return ResolvedStages(stages=tuple(stages), missing=tuple(missing))


def _unresolved(one: StageRange, why: str) -> Unresolved:
    return Unresolved(range=one, why=f"the stage {one.label} stays: {why}")
