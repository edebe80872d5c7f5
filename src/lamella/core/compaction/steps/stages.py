"""Stages that are done: their messages out, and their data to its short form. The digest in L1 stands for them."""

from collections.abc import Collection, Iterator, Sequence

from lamella.core.compaction.draft import WHOLE, Draft
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.layers.strip import Exchange


def cut_oldest_stages(draft: Draft) -> Step | None:
    """The oldest stage that is done and still stands, but for the recent ones."""
    return _cut(draft, StepName.OLDEST_STAGES, recent=False)


def cut_recent_stages(draft: Draft) -> Step | None:
    """The data of the recent stages to its short form, then the oldest of them that still stands."""
    return _shorten(draft) or _cut(draft, StepName.RECENT_STAGES, recent=True)


def _shorten(draft: Draft) -> Step | None:
    system = draft.turn.system or draft.state.system
    count = draft.measure.count
    if draft.span is not WHOLE or not system.workflow_detail or count(system.workflow_brief) >= count(system.workflow):
        return None
    return Step(name=StepName.RECENT_STAGES, removed=tuple(system.workflow_detail.split()))


def _cut(draft: Draft, name: StepName, *, recent: bool) -> Step | None:
    """One stage at a time: the draft is weighed again before the next one goes."""
    done: set[str] = set()
    for stage, messages in draft.stages:
        # A reply whose question went joins the turn before, which may be the last of an earlier stage.
        done.update(messages)
        removed = tuple(_within(draft.free, done)) if stage.recent is recent else ()
        if removed:
            return Step(name=name, removed=removed)
    return None


def _within(exchanges: Sequence[Exchange], names: Collection[str]) -> Iterator[str]:
    for exchange in exchanges:
        if all(said.id in names for said in exchange.said):
            yield from (said.id for said in exchange.said)
