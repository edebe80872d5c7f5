"""The draft: a request that is not sent yet, with what it weighs, on its way to becoming smaller."""

from dataclasses import dataclass

from lamella.core.budget.weigh import weigh
from lamella.core.compaction.stages import Stage
from lamella.core.log.receipt import Cut
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.applying import apply_cut, settle
from lamella.core.prompt.build import render_request
from lamella.core.prompt.folding import fold_keeping_tools
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import Rules, State
from lamella.core.prompt.turns import prepare_turn, turn_rules
from lamella.core.values import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A state and the turn that is to be asked in it. ``goal`` is the size to come down to, in tokens.

    ``stages`` are those that are done, with their messages as the whole log has them.
    """

    state: State
    turn: TurnInput
    rules: Rules
    tokens: int
    goal: int
    stages: tuple[Stage, ...] = ()

    @property
    def excess(self) -> int:
        return self.tokens - self.goal

    @property
    def free(self) -> tuple[Exchange, ...]:
        """The exchanges that may go: all that are shown but the last, which the model is answering to."""
        return self.state.exchanges[self.state.hidden : -1]

    @property
    def with_tools(self) -> int:
        """From which of them on the tool results stand in the messages."""
        return max(0, self.state.epoch_start - self.state.hidden)

    @property
    def held(self) -> frozenset[str]:
        """Artifacts attached or dropped now: made smaller in the library, they would free nothing."""
        attached = (artifact.id for artifact in (*self.turn.results, *self.turn.attached))
        return frozenset((*attached, *self.turn.drop))


def begin_draft(state: State, turn: TurnInput, rules: Rules, *, goal: int, stages: tuple[Stage, ...] = ()) -> Draft:
    """The draft that a compaction starts from: folded, as after any compaction, and nothing taken out yet."""
    rules = turn_rules(rules, turn)
    folded = settle(fold_keeping_tools(state, rules), rules)
    tokens = weigh_turn(folded, turn, rules)
    return Draft(state=folded, turn=turn, rules=rules, tokens=tokens, goal=goal, stages=stages)


def shrink_draft(draft: Draft, cut: Cut) -> Draft:
    """The draft without what one step takes out, weighed on the messages that would be sent."""
    state = settle(apply_cut(draft.state, cut, draft.rules), draft.rules)
    return replace(draft, state=state, tokens=weigh_turn(state, draft.turn, draft.rules))


def weigh_turn(state: State, turn: TurnInput, rules: Rules) -> int:
    """What the request of a turn weighs, without building its layers."""
    prepared = prepare_turn(state, turn, rules)
    messages = render_request(prepared.ground, rules.measure).messages
    return weigh(messages, prepared.ground.tools, rules.measure)
