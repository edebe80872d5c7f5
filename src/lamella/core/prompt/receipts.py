"""Applying a receipt: a state before a compaction becomes the state after it, the same way every time."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from types import MappingProxyType

from lamella.core.artifacts.model import Kind
from lamella.core.budget.counting import Measure
from lamella.core.log.placement import Form
from lamella.core.log.receipt import CHAIN, Receipt, Step, StepName, is_stage
from lamella.core.log.terms import History, Terms
from lamella.core.prompt.folding import fold_library, hide_earlier, keep_tools, stub_tool
from lamella.core.prompt.layers.library import list_handles, may_list, shelve
from lamella.core.prompt.layers.model import Count, SegmentKind, message_place
from lamella.core.prompt.layers.opening import Opening, StandIn, make_stand_in, open_with, stand_first
from lamella.core.prompt.layers.rounds import TOOL_KIND, stub_result
from lamella.core.prompt.layers.strip import Exchange, Said, Series, Talk, count_messages, join_answer, shorten
from lamella.core.prompt.prompt import has_system
from lamella.core.prompt.state import State
from lamella.core.text.said.replies import outline_reply, stub_reply
from lamella.core.values import replace

# What the ledger names in place of a step: a compaction was undone, or had nothing to do but fold.
UNDONE = "undo"
FOLDED = "fold"
_SHRINKS = {StepName.PREVIEW: Form.PREVIEW, StepName.HANDLE: Form.HANDLE}
_STANDS_IN = {
    StepName.OLDEST_STAGES: SegmentKind.DIGEST,
    StepName.RECENT_STAGES: SegmentKind.DIGEST,
    StepName.SUMMARY: SegmentKind.SUMMARY,
    StepName.RULES: SegmentKind.RULES,
}


def apply_receipt(state: State, receipt: Receipt, terms: Terms, *, measure: Measure) -> State:
    """The state once a compaction is committed: an epoch begins, and what the receipt names is taken out."""
    now = keep_before(state, receipt.since) if receipt.since else fold_for_receipt(state, terms, measure)
    for step in receipt.steps:
        now = apply_step(now, step, measure, chain=receipt.chain)
    now = now if receipt.since else settle(now, terms, measure)
    return replace(now, shrunk_to=receipt.tokens_after, compacted=_first_moved(receipt))


def apply_receipts(state: State, receipts: Sequence[Receipt], terms: Terms, *, measure: Measure) -> State:
    """The state once several compactions are committed, one after another."""
    for receipt in receipts:
        state = apply_receipt(state, receipt, terms, measure=measure)
    return state


def fold_for_receipt(state: State, terms: Terms, measure: Measure) -> State:
    """The state that a compaction starts from: folded, but for tool results, of which it says itself what becomes."""
    start = state.talk.epoch_start
    kept = [
        one if one.sent is one.user.message and not one.tools else keep_tools(one, one.tools, measure)
        for one in state.talk.exchanges[start:]
    ]
    talk = replace(state.talk, exchanges=Series((*state.talk.exchanges[:start], *kept)))
    folded = fold_library(replace(state, talk=talk), terms, measure)
    # Of the very first turn, too, some rounds may have been sent already; and a turn under another layout, which is not
    # seen to be another any more, may have begun an epoch before it was compacted.
    begun = int(state.terms is not None and state.terms.layout is not terms.layout)
    return hide_earlier(replace(folded, epoch=state.epoch + 1 + begun), terms, measure)


def keep_before(state: State, since: str) -> State:
    """The state that a compaction from a message on starts from: nothing folds, and what is before it stays."""
    talk = state.talk
    at = [index for index, exchange in enumerate(talk.exchanges) if any(said.id == since for said in exchange.said)]
    before = talk.exchanges[talk.hidden : at[0]] if at else ()
    kept = int(has_system(state.system, state.shelf)) + count_messages(before)
    return replace(state, epoch=state.epoch + 1, kept=kept if at else None)


def apply_step(state: State, step: Step, measure: Measure, *, chain: int = CHAIN) -> State:
    """The state without what one step takes out, by the rules of a chain. Ids that are not there are passed over.

    What is not said of a step here takes messages out, and nothing stands in for them.
    """
    if step.name is StepName.HANDLE and chain > 1:
        return _list(state, step.removed, measure)
    if step.name in _SHRINKS:
        return _shrink(state, step.removed, _SHRINKS[step.name], measure=measure)
    if step.name is StepName.TOOL_RESULTS:
        return _stub(state, frozenset(step.removed), measure)
    if step.name is StepName.REPLIES:
        gone = frozenset(step.removed) - _find_pinned(state)
        gists = dict(zip(step.removed, step.gists, strict=False))
        return shorten_replies(state, gone, outline_reply, form=Form.PREVIEW, count=measure.count, gists=gists)
    if step.name is StepName.RECENT_STAGES:
        state = replace(state, system=state.system.shorten(step.removed))
    return _remove(state, step, _STANDS_IN.get(step.name), measure=measure, chain=chain)


def settle(state: State, terms: Terms, measure: Measure) -> State:
    """The state with everything where it stands now that messages went.

    Tool results whose messages went or are not shown stand nowhere, and cannot be referred to.
    """
    shows_all = terms.history is History.FULL and not state.talk.hidden
    now = state if shows_all else hide_earlier(state, terms, measure)
    talk = now.talk
    standing = {name: one for name, one in now.standing.items() if one.artifact.kind is not Kind.TOOL}
    exchanges = [*talk.exchanges[:]]
    if not any(exchange.tools for exchange in exchanges):
        return replace(now, standing=standing)
    at = int(has_system(now.system, now.shelf))
    for index in range(talk.hidden, len(exchanges)):
        exchange = exchanges[index]
        if exchange.tools:
            place = message_place(at)
            tools = tuple(
                tool if tool.place == place else replace(tool, segment=replace(tool.segment, place=place))
                for tool in exchange.tools
            )
            exchanges[index] = replace(exchange, tools=tools)
            standing.update((tool.artifact.id, tool) for tool in tools)
        at += 2 + len(exchange.rounds)
    return replace(now, talk=replace(talk, exchanges=Series(exchanges)), standing=standing)


def _shrink(state: State, names: Collection[str], form: Form, *, measure: Measure) -> State:
    smaller = {
        name: shelve(state.library[name].artifact, form=form, count=measure.count)
        for name in names
        if name in state.shelf
    }
    library = {name: replace(entry, form=form) if name in smaller else entry for name, entry in state.library.items()}
    # A shelf without what L1 draws in is not the library's: it serves no fold that draws in something else.
    shelf_of = None if state.shelf_of is None else library
    shelf = {**state.shelf, **smaller}
    return replace(state, library=library, shelf=shelf, shelf_of=shelf_of, standing={**state.standing, **smaller})


def _list(state: State, names: Collection[str], measure: Measure) -> State:
    """These entries in the list of handles, with those that it has."""
    gone = {name for name in names if name in state.shelf and may_list(state.library[name].artifact)}
    library = {
        name: replace(entry, form=Form.HANDLE, listed=True) if name in gone else entry
        for name, entry in state.library.items()
    }
    handles = [entry for name, entry in library.items() if entry.listed and name in state.shelf]
    listed = list_handles(handles, count=measure.count) if handles else {}
    shelf = {**{name: one for name, one in state.shelf.items() if name not in listed}, **listed}
    shelf_of = None if state.shelf_of is None else library
    return replace(state, library=library, shelf=shelf, shelf_of=shelf_of, standing={**state.standing, **listed})


# What makes a text shorter, given its turn and its gist, where that is known; none where it does not.
Shorter = Callable[[str, int, str | None], str | None]


def shorten_replies(
    state: State,
    names: Collection[str],
    shorter: Shorter,
    *,
    form: Form,
    count: Count,
    gists: Mapping[str, str] = MappingProxyType({}),
) -> State:
    """The state with replies as less than their words: what ``shorter`` makes of each, if anything."""
    exchanges = [*state.talk.exchanges[:]]
    for index, exchange in enumerate(exchanges):
        reply, joined = exchange.reply, exchange.joined
        if not joined:
            # Nearly all: hundreds of them in a compaction.
            shown = reply.segment
            if shown.id not in names or shown.form is form:
                continue
        elif all(one.segment.id not in names or one.segment.form is form for one in (reply, *joined)):
            continue
        replies: list[Said] = []
        for said in (reply, *joined):
            text = None
            if said.segment.id in names and said.segment.form is not form:
                whole = said.segment.text if said.whole is None else said.whole[said.segment.id]
                text = shorter(whole, said.turn or exchange.number + 1, gists.get(said.segment.id))
            replies.append(said if text is None else shorten(said, text, form=form, count=count))
        cut_down = replace(exchange, reply=replies[0])
        plain = not joined and not exchange.lines
        exchanges[index] = cut_down if plain else join_answer(cut_down, replies[1:], count=count)
    return replace(state, talk=replace(state.talk, exchanges=Series(exchanges)))


def _leave_line(text: str, turn: int, _gist: str | None) -> str | None:
    return stub_reply(turn) if text else None


def _stub(state: State, names: Collection[str], measure: Measure) -> State:
    talk = state.talk
    exchanges = Series(_stub_in(exchange, names, measure) for exchange in talk.exchanges)
    return replace(state, talk=replace(talk, exchanges=exchanges, stubbed=talk.stubbed.union(names)))


def _stub_in(exchange: Exchange, names: Collection[str], measure: Measure) -> Exchange:
    if any(tool.artifact.id in names for tool in exchange.tools):
        tools = [stub_tool(tool, measure) if tool.artifact.id in names else tool for tool in exchange.tools]
        exchange = keep_tools(exchange, tools, measure)
    if any(said.id in names for said in exchange.rounds):
        rounds = (stub_result(said, measure) if _is_result(said, names) else said for said in exchange.rounds)
        exchange = replace(exchange, rounds=tuple(rounds))
    return exchange


def _is_result(said: Said, names: Collection[str]) -> bool:
    return said.id in names and said.segment.kind == TOOL_KIND and said.segment.form is Form.FULL


def _remove(state: State, step: Step, stands_in: SegmentKind | None, *, measure: Measure, chain: int) -> State:
    count = measure.count
    gone = frozenset(step.removed)
    if state.pinned:
        gone -= _find_pinned(state)
    if chain > 1:
        # A reply may go without its question: the line that is left of it keeps the roles alternating.
        stays = gone - _find_whole_turns(state.talk, gone)
        state = shorten_replies(state, stays, _leave_line, form=Form.HANDLE, count=count)
    talk = state.talk
    exchanges, messages, start = remove_messages(talk, gone, count=count)
    opening = talk.opening
    if stands_in is not None and step.text is not None:
        block = make_stand_in(stands_in, step.text, content=step.content, count=count)
        opening = _stand_in(opening, block)
    opening = open_with(opening, left_out=messages, brief=chain > 1, count=count)
    spoken = count_messages(exchanges)
    left = replace(talk, exchanges=Series(exchanges), epoch_start=start, opening=opening, spoken=spoken)
    return replace(state, talk=left)


def _find_whole_turns(talk: Talk, gone: Set[str]) -> set[str]:
    """The replies that go with their questions, and with all that joined them: no line is left of any."""
    return {
        reply.segment.id
        for exchange in talk.exchanges
        if exchange.user.segment.id in gone and all(reply.segment.id in gone for reply in exchange.replies)
        for reply in exchange.replies
    }


def _find_pinned(state: State) -> frozenset[str]:
    """Everything said in turns that hold a pinned message: whoever wrote a receipt that names it did not know that."""
    pinned = state.pinned
    if not pinned:
        return frozenset()
    said = ([one.id for one in exchange.said] for exchange in state.talk.exchanges)
    return frozenset(name for names in said if not pinned.isdisjoint(names) for name in names)


def remove_messages(talk: Talk, gone: Set[str], *, count: Count) -> tuple[tuple[Exchange, ...], int, int]:
    """The talk without these messages, how many went, and where the epoch starts in what is left.

    A question alone may go where an exchange stands before it; an answer goes only with its question.
    """
    left: list[Exchange] = []
    joined: dict[int, list[Said]] = {}
    messages = start = 0
    every = talk.exchanges[:]
    if gone.isdisjoint([exchange.user.segment.id for exchange in every]):
        return every, 0, talk.epoch_start
    for index, exchange in enumerate(every):
        if index == talk.epoch_start:
            start = len(left)
        if exchange.user.segment.id not in gone:
            left.append(exchange)
        elif all(reply.segment.id in gone for reply in (exchange.reply, *exchange.joined)):
            messages += 2 + len(exchange.joined)
        elif left:
            messages += 1
            last = len(left) - 1
            number = exchange.number + 1
            moved = [replace(one, turn=one.turn or number) for one in (exchange.reply, *exchange.joined)]
            joined.setdefault(last, list(left[last].joined)).extend(moved)
        else:
            left.append(exchange)
    for index, replies in joined.items():
        left[index] = join_answer(left[index], replies, count=count)
    return tuple(left), messages, start if talk.epoch_start < len(every) else len(left)


def _stand_in(opening: Opening, block: StandIn) -> Opening:
    """The opening with one more block: a summary tells the ones before anew, and so do wishes, which stand first."""
    others = tuple(other for other in opening.blocks if other.kind is not block.kind)
    if block.kind is SegmentKind.SUMMARY:
        return replace(opening, blocks=(*others, block))
    if block.kind is SegmentKind.RULES:
        return stand_first(opening, block)
    if any(other.text == block.text for other in opening.blocks):
        return opening
    return replace(opening, blocks=(*opening.blocks, block))


def _first_moved(receipt: Receipt) -> str:
    """The step that moved the earliest bytes: L1, then the library, the opening before all messages, tools last."""
    first = min(receipt.steps, key=_how_late, default=None)
    return FOLDED if first is None else first.name


def _how_late(step: Step) -> int:
    # The data of stages stands in the system prompt, before everything else.
    if any(map(is_stage, step.removed)):
        return -1
    if step.name in _SHRINKS:
        return 0
    return 2 if step.name is StepName.TOOL_RESULTS else 1
