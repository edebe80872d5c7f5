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
class ResolvedStages:
    """The stages found, in the order given, and which were not, and why."""

    stages: tuple[Stage, ...]
    missing: tuple[str, ...]


def resolve_stages(ranges: Iterable[StageRange], path: Sequence[str]) -> ResolvedStages:
    """Ranges on the branch's messages, oldest first, before anything is removed from it."""
    index = {name: at for at, name in enumerate(path)}
    stages: list[Stage] = []
    missing: list[str] = []
    for one in ranges:
        first, last = index.get(one.first), index.get(one.last)
        if first is None or last is None or last < first:
            missing.append(f"the stage {one.label} stays: its first or last message is not in this branch")
        else:
            stages.append(Stage(range=one, messages=tuple(path[first : last + 1])))
    return ResolvedStages(stages=tuple(stages), missing=tuple(missing))
