"""The planners of the layouts: ``library`` takes everything in at once, ``in_place`` lets the prefix grow.

``auto`` follows what prices decided when the turn was asked, once and for all.
"""

from collections.abc import Mapping

from lamella.core.log.placement import Placement
from lamella.core.log.terms import Layout
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import Planner
from lamella.core.prompt.receipts import UNDONE
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import moves_rules
from lamella.core.values import replace

_STAYS = Placement(why="nothing that was sent has to move")
_STAYS_PRICED = replace(_STAYS, priced=True)
_TAKES_IN = Placement(keep=0, promotes=True, why="what earlier turns attached goes into the system message")


def place_in_library(_state: State, _turn: Turn) -> Placement:
    """Every turn folds: what was attached before it stands in the system message."""
    return _TAKES_IN


def place_in_turn(state: State, turn: Turn) -> Placement:
    """What was sent stays where it stands until an epoch ends."""
    why = _why_fold(state, turn)
    return _STAYS if why is None else Placement(keep=0, why=why)


def _why_fold(state: State, turn: Turn) -> str | None:
    if state.terms is None:
        return "nothing was sent before"
    if state.terms.layout is not turn.terms.layout:
        return "the layout changed"
    if turn.rewritten is not None and not turn.unmoved:
        return "what was said before was rewritten"
    return _why_settings_fold(state, turn) or find_wish(turn)


def _why_settings_fold(state: State, turn: Turn) -> str | None:
    system = turn.system
    if system is not None and tuple(state.system.named()) != tuple(system.named()):
        return "the system prompt changed"
    if turn.tools is not None and state.tools != turn.tools:
        return "the tools changed"
    if turn.model is not None and state.model != turn.model:
        return "the model changed"
    if turn.rules is not None and moves_rules(state, turn.rules):
        return "the rules changed"
    return None


def find_wish(turn: Turn) -> str | None:
    """Why a turn has something folded although all of it could stay; none where it does not."""
    if turn.drop:
        return "something was dropped"
    return "a fold was asked for" if turn.fold else None


def place_by_plan(state: State, turn: Turn) -> Placement:
    """What was planned for the turn holds; where nothing was, or a compaction went before it, what has to fold does."""
    # What is written down of a plan says nothing of what every plan of this layout has.
    planned = None if turn.placement is None else replace(turn.placement, priced=True)
    if planned is not None and planned.keep == 0:
        return planned
    if planned is not None and state.compacted == UNDONE:
        # It is asked again as it is told from then on, where nobody knows any more that something was undone.
        state = replace(state, compacted=None)
    # On another branch something else may go before it: what a turn changes that is deleted there changes with this.
    forced = find_forced(state, turn)
    if planned is not None and forced is None and not _was_compacted(state):
        return planned
    if state.kept is not None and forced is None:
        return keep_kept(state, planned or _STAYS_PRICED)
    why = forced or (find_wish(turn) if planned is None else None)
    stays = planned or _STAYS_PRICED
    return stays if why is None else _fold_all(stays, why)


def _fold_all(planned: Placement, why: str) -> Placement:
    # Where messages end up is not known: only what comes before all of them can be marked.
    marks = tuple([mark for mark in planned.marks if mark == 0])
    return replace(planned, keep=0, within=0, order=(), forms={}, marks=marks, served=None, lasting=None, why=why)


def find_forced(state: State, turn: Turn) -> str | None:
    """Why nothing of what was sent can stay, whatever it costs; none where something can."""
    if state.terms is None:
        return "nothing was sent before"
    if state.terms.layout is not turn.terms.layout:
        return "the layout changed"
    if turn.rewritten is not None and not turn.unmoved:
        return "what was said before was rewritten"
    if _was_compacted(state) and state.kept is None:
        return "what was said before was compacted"
    return _why_settings_fold(state, turn)


def keep_kept(state: State, planned: Placement) -> Placement:
    """What a compaction left as it was stays, and behind it an epoch begins."""
    why = "what was said before was compacted from some message on"
    return replace(_fold_all(planned, why), keep=state.kept, marks=())


def _was_compacted(state: State) -> bool:
    """Whether something was folded since the last request: by a receipt, by one that is tried, or by undoing one."""
    return state.compacted is not None or (state.last is not None and state.last.epoch != state.epoch)


PLANNERS: Mapping[Layout, Planner] = {
    Layout.LIBRARY: place_in_library,
    Layout.IN_PLACE: place_in_turn,
    Layout.AUTO: place_by_plan,
}


def place(state: State, turn: Turn) -> Placement:
    """Where things stand, by the planner of the turn's layout."""
    return PLANNERS[turn.terms.layout](state, turn)
