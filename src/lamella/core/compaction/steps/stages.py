"""Stages that are done: their messages out, what was decided in them in."""

from collections.abc import Collection, Iterator, Sequence

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.stages import StageRange
from lamella.core.log.receipt import Cut, StepName
from lamella.core.prompt.layers.model import StandIn
from lamella.core.prompt.layers.opening import render_derived
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.removal import message_ids


def cut_oldest_stages(draft: Draft) -> Cut | None:
    """The oldest stage that is done and still stands, but for the recent ones."""
    return _cut(draft, StepName.OLDEST_STAGES, recent=False)


def cut_recent_stages(draft: Draft) -> Cut | None:
    """The oldest of the recent stages that are done."""
    return _cut(draft, StepName.RECENT_STAGES, recent=True)


def _cut(draft: Draft, name: StepName, *, recent: bool) -> Cut | None:
    """One stage at a time: the draft is weighed again before the next one goes."""
    done: set[str] = set()
    for stage in draft.stages:
        # A reply whose question went joins the turn before, which may be the last of an earlier stage.
        done.update(stage.messages)
        removed = tuple(_within(draft.free, done)) if stage.range.recent is recent else ()
        if removed:
            return Cut(name=name, removed=removed, text=render_digest(stage.range))
    return None


def render_digest(stage: StageRange) -> str:
    """What was decided in a stage, as the block that stands in for its messages."""
    return render_derived(StandIn.DIGEST, f"- {stage.label}: {stage.decision}", covers=f"the stage {stage.label}")


def _within(exchanges: Sequence[Exchange], names: Collection[str]) -> Iterator[str]:
    for exchange in exchanges:
        said = message_ids(exchange)
        if all(name in names for name in said):
            yield from said
