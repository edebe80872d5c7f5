"""The draft: a request that is not sent yet, with what it weighs, on its way to becoming smaller."""

from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from lamella.core.budget.counting import Measure
from lamella.core.compaction.rules import ChainRules
from lamella.core.compaction.stages import Stage
from lamella.core.log.receipt import Step
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import Planner, advance, waiting
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import apply_step, fold_for_receipt, keep_before, settle
from lamella.core.prompt.state import State
from lamella.core.values import replace


class Stretch(NamedTuple):
    """The part of a conversation that may shrink: from the turn of an index to another, with all where none is named.

    Where it begins with the message ``since``, every byte before that stays as it was sent.
    """

    first: int = 0
    last: int | None = None
    since: str = ""

    def holds(self, number: int) -> bool:
        """Whether a turn is in it, by how many were asked before it."""
        return self.first <= number and (self.last is None or number <= self.last)


WHOLE = Stretch()


class Draft(Struct, frozen=True, kw_only=True, dict=True):
    """A state and the turn that is to be asked in it, with its prompt. ``goal`` is the size to come down to, in tokens.

    ``stages`` are those that are done, with their messages as the whole log has them; ``current`` are the messages of
    the one that is being worked on, none where work has no stages. As a last ``resort`` nothing that was said or
    attached before is spared: otherwise a question could not be asked at all. Where a turn is ``stuck``, the results
    that the model works with now are not spared either: it could not go on. Only what is in the ``span`` may go.
    """

    state: State
    turn: Turn
    chain: ChainRules
    measure: Measure
    place: Planner
    window: int
    prompt: Prompt
    goal: int
    stages: tuple[Stage, ...] = ()
    current: frozenset[str] | None = None
    resort: bool = False
    stuck: bool = False
    span: Stretch = WHOLE

    @property
    def tokens(self) -> int:
        return self.prompt.total

    @property
    def excess(self) -> int:
        return self.prompt.total - self.goal

    @cached_property
    def free(self) -> tuple[Exchange, ...]:
        """The exchanges that may go: all that are shown but the last, which goes as a last resort only.

        A turn stays whole where the user pinned what was asked or answered in it.
        """
        pinned = self.prompt.pinned
        talk = self.state.talk
        shown = talk.exchanges[talk.hidden : None if self.resort else -1]
        if self.span is not WHOLE:
            shown = tuple([one for one in shown if self.span.holds(one.number)])
        if not pinned:
            return shown
        return tuple([one for one in shown if pinned.isdisjoint([said.id for said in one.said])])

    def in_stage(self, exchange: Exchange) -> bool:
        """Whether a turn, or what joined it, is of the stage that is being worked on."""
        return self.current is not None and any(said.id in self.current for said in exchange.said)

    @property
    def held(self) -> frozenset[str]:
        """Artifacts attached or dropped now: made smaller in the library, they would free nothing."""
        attached = (artifact.id for artifact in (*self.turn.results, *self.turn.attached))
        return frozenset((*attached, *self.turn.drop))


def begin_draft(
    state: State,
    turn: Turn,
    *,
    chain: ChainRules,
    measure: Measure,
    place: Planner,
    window: int,
    goal: int,
    stages: tuple[Stage, ...] = (),
    as_is: Prompt | None = None,
    span: Stretch = WHOLE,
) -> Draft:
    """The draft that a compaction starts from: folded, as after any compaction, and nothing taken out yet.

    ``as_is`` is the turn's prompt before that, which may be the folded one already.
    """
    if span.since:
        folded = keep_before(state, span.since)
    else:
        folded = settle(fold_for_receipt(state, turn.terms, measure), turn.terms, measure)
    if span.since or as_is is None or not _is_folded(as_is, state):
        as_is = waiting(advance(folded, turn, place, measure=measure))
    return Draft(
        state=folded,
        turn=turn,
        chain=chain,
        measure=measure,
        place=place,
        window=window,
        prompt=as_is,
        goal=goal,
        stages=stages,
        span=span,
    )


def shrink_draft(draft: Draft, step: Step) -> Draft:
    """The draft without what one step takes out, weighed on the messages that would be sent."""
    state = apply_step(draft.state, step, draft.measure)
    if not draft.span.since:
        state = settle(state, draft.turn.terms, draft.measure)
    turn = draft.turn
    if turn.system is not None and turn.system.workflow_detail:
        turn = replace(turn, system=turn.system.shorten(step.removed))
    prompt = waiting(advance(state, turn, draft.place, measure=draft.measure))
    return replace(draft, state=state, turn=turn, prompt=prompt)


def _is_folded(as_is: Prompt, state: State) -> bool:
    """Whether folding first gives the same prompt: its planner folds everything, and no tool is cut to its call."""
    ended = state.talk.exchanges[state.talk.epoch_start :]
    folds = as_is.placement.keep == 0 and not as_is.placement.forms
    return folds and not any(exchange.tools or exchange.rounds for exchange in ended)
