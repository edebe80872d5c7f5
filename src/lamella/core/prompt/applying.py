"""Applying a receipt: a state before a compaction becomes the state after it, the same way every time."""

from collections.abc import Collection
from typing import assert_never

from lamella.core.artifacts.blocks import render_tool_stub
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Cut, Receipt, StepName
from lamella.core.prompt.folding import draw_curtain, fold_keeping_tools, keep_tools, place_tools
from lamella.core.prompt.layers.library import Standing, make_standing, shelve
from lamella.core.prompt.layers.model import StandIn
from lamella.core.prompt.layers.opening import Derived, Opening, make_derived, open_with
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.removal import remove_messages
from lamella.core.prompt.state import Rules, State
from lamella.core.values import replace

# What the ledger names in place of a step: a compaction was undone, or had nothing to do but fold.
UNDONE = "undo"
FOLDED = "fold"
_SHRINKS = (StepName.PREVIEW, StepName.HANDLE)


def apply_receipt(state: State, receipt: Receipt, rules: Rules) -> State:
    """The state once a compaction is committed: an epoch begins, and what the receipt names is taken out."""
    now = fold_keeping_tools(state, rules)
    for step in receipt.steps:
        now = apply_cut(now, step.cut, rules)
    return replace(settle(now, rules), shrunk_to=receipt.tokens_after, compacted=_first_moved(receipt))


def apply_cut(state: State, cut: Cut, rules: Rules) -> State:
    """The state without what one step takes out. Ids that are not there are passed over."""
    match cut.name:
        case StepName.PREVIEW:
            return _shrink(state, cut.removed, Form.PREVIEW, rules=rules)
        case StepName.HANDLE:
            return _shrink(state, cut.removed, Form.HANDLE, rules=rules)
        case StepName.TOOL_RESULTS:
            return _stub(state, frozenset(cut.removed), rules)
        case StepName.CHITCHAT | StepName.EXPENDABLE:
            return _remove(state, cut, None, rules=rules)
        case StepName.OLDEST_STAGES | StepName.RECENT_STAGES:
            return _remove(state, cut, StandIn.DIGEST, rules=rules)
        case StepName.SUMMARY:
            return _remove(state, cut, StandIn.SUMMARY, rules=rules)
        case _:
            assert_never(cut.name)


def settle(state: State, rules: Rules) -> State:
    """The state with everything where it stands now that messages went."""
    return place_tools(draw_curtain(state, rules))


def _shrink(state: State, names: Collection[str], form: Form, *, rules: Rules) -> State:
    smaller = {
        name: shelve(state.known[name], form=form, count=rules.measure.count) for name in names if name in state.shelf
    }
    return replace(
        state,
        forms={**state.forms, **dict.fromkeys(smaller, form)},
        shelf={**state.shelf, **smaller},
        standing={**state.standing, **smaller},
    )


def _stub(state: State, names: Collection[str], rules: Rules) -> State:
    exchanges = list(state.exchanges)
    for index in range(state.epoch_start, len(exchanges)):
        if any(tool.artifact.id in names for tool in exchanges[index].tools):
            exchanges[index] = _stub_in(exchanges[index], names, rules)
    return replace(state, exchanges=tuple(exchanges))


def _stub_in(exchange: Exchange, names: Collection[str], rules: Rules) -> Exchange:
    tools = [stub_tool(tool, rules) if tool.artifact.id in names else tool for tool in exchange.tools]
    return keep_tools(exchange, tools, rules)


def stub_tool(tool: Standing, rules: Rules) -> Standing:
    """A tool result as the call that gets it back."""
    text = render_tool_stub(tool.artifact)
    return make_standing(
        tool.artifact, form=Form.HANDLE, place=tool.place or "", pieces=(text,), tokens=rules.measure.count(text)
    )


def _remove(state: State, cut: Cut, stands_in: StandIn | None, *, rules: Rules) -> State:
    count = rules.measure.count
    left = remove_messages(state.exchanges, frozenset(cut.removed), epoch_start=state.epoch_start, count=count)
    opening = state.opening
    if stands_in is not None and cut.text is not None:
        opening = _stand_in(opening, make_derived(stands_in, cut.text, count))
    return replace(
        state,
        exchanges=left.exchanges,
        epoch_start=left.epoch_start,
        opening=open_with(opening, left_out=left.messages, count=count),
    )


def _stand_in(opening: Opening, block: Derived) -> Opening:
    """The opening with one more block: a summary tells the ones before anew, a digest stands once."""
    if block.kind is StandIn.SUMMARY:
        return replace(opening, blocks=(*(b for b in opening.blocks if b.kind is not StandIn.SUMMARY), block))
    if any(other.text == block.text for other in opening.blocks):
        return opening
    return replace(opening, blocks=(*opening.blocks, block))


def _first_moved(receipt: Receipt) -> str:
    """The step that moved the earliest bytes: the library stands first, the opening before all messages, tools last."""
    names = [step.name for step in receipt.steps]
    return min(names, key=_how_late, default=FOLDED)


def _how_late(name: StepName) -> int:
    if name in _SHRINKS:
        return 0
    return 2 if name is StepName.TOOL_RESULTS else 1
