"""Stages that are done: their messages out, what was decided in them in."""

from collections.abc import Collection, Iterator, Sequence

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.stages import StageRange
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.layers.model import SegmentKind
from lamella.core.prompt.layers.opening import render_stand_in
from lamella.core.prompt.layers.strip import Exchange


def cut_oldest_stages(draft: Draft) -> Step | None:
    """The oldest stage that is done and still stands, but for the recent ones."""
    return _cut(draft, StepName.OLDEST_STAGES, recent=False)


def cut_recent_stages(draft: Draft) -> Step | None:
    """The oldest of the recent stages that are done."""
    return _cut(draft, StepName.RECENT_STAGES, recent=True)


def _cut(draft: Draft, name: StepName, *, recent: bool) -> Step | None:
    """One stage at a time: the draft is weighed again before the next one goes."""
    done: set[str] = set()
    for stage, messages in draft.stages:
        # A reply whose question went joins the turn before, which may be the last of an earlier stage.
        done.update(messages)
        removed = tuple(_within(draft.free, done)) if stage.recent is recent else ()
        if removed:
            return Step(name=name, removed=removed, text=render_digest(stage), content=_tell(stage))
    return None


def render_digest(stage: StageRange) -> str:
    """What was decided in a stage, as the block that stands in for its messages."""
    return render_stand_in(SegmentKind.DIGEST, _tell(stage), covers=f"the stage {stage.label}")


def _tell(stage: StageRange) -> str:
    return f"- {stage.label}: {stage.decision}"


def _within(exchanges: Sequence[Exchange], names: Collection[str]) -> Iterator[str]:
    for exchange in exchanges:
        if all(said.id in names for said in exchange.said):
            yield from (said.id for said in exchange.said)
