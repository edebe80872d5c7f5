"""Folding: an epoch begins, and what stood in messages goes into the library and the strip."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lamella.core.artifacts.blocks import render_tool_stub, render_update
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import Measure, count_pieces
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form, Placement
from lamella.core.log.terms import History, Terms
from lamella.core.prompt.layers.library import Standing, carried_form, fold_shelf, make_standing, shelve
from lamella.core.prompt.layers.model import SYSTEM_PLACE, SegmentKind, message_place
from lamella.core.prompt.layers.opening import StandIn, make_stand_in, measure_opening, render_stand_in
from lamella.core.prompt.layers.rounds import list_calls, weigh_calls
from lamella.core.prompt.layers.strip import Exchange, Said, Series, count_messages, join_answer, make_said, shorten
from lamella.core.prompt.prompt import has_system, render_user
from lamella.core.prompt.state import State
from lamella.core.prompt.wishes import keep_hidden_wishes
from lamella.core.text.exact import list_exact
from lamella.core.text.said.talk import build_talk_outline
from lamella.core.values import replace

SHOWN_TURNS = {History.WINDOW: 10, History.STRIP: 2}
STRIP_TOKENS = 300
_STRIP_EXACT_TOKENS = 150
# The outline keeps the newest turns that its cap holds; reading more of them than that could never show.
_OUTLINED_TURNS = 60
# A summary of what is not shown covers whole groups of turns, so that not every turn needs another one.
_SUMMARISED_TOGETHER = 8


def fold(
    state: State,
    terms: Terms,
    measure: Measure,
    *,
    placement: Placement,
    attached: Sequence[Artifact] = (),
    told: str | None = None,
) -> State:
    """Everything earlier goes into the library and the strip; of tool results the calls stay.

    Where a placement keeps messages, only what stands behind them folds. A note whose text, as known or as attached
    now, is drawn into L1 stands there and not on the shelf. ``told`` is a summary of the oldest turns that the history
    mode does not show.
    """
    if placement.keep:
        return _fold_behind(state, terms, measure, placement=placement)
    folded = fold_library(state, terms, measure, forms=placement.forms, attached=attached)
    start = folded.talk.epoch_start
    ended = folded.talk.exchanges[start:]
    # Of most turns nothing stands there but what was typed.
    bare = [one.sent is one.user.message and not (one.rounds or one.tools) for one in ended]
    plain = tuple([one if is_bare else _close(one, measure) for one, is_bare in zip(ended, bare, strict=True)])
    exchanges = Series((*folded.talk.exchanges[:start], *plain)) if plain != ended else folded.talk.exchanges
    closed = sum([len(exchange.rounds) for exchange in ended])
    talk = replace(folded.talk, exchanges=exchanges, epoch_start=len(exchanges), spoken=folded.talk.spoken - closed)
    shown = replace(folded, talk=talk)
    return (
        shown if terms.history is History.FULL and not talk.hidden else hide_earlier(shown, terms, measure, told=told)
    )


def _fold_behind(state: State, terms: Terms, measure: Measure, *, placement: Placement) -> State:
    """An epoch begins behind the turns that begin before the first message that is not kept.

    Of the turns behind it the talk stays. What they brought and is known stands in the next question, first seen first;
    their tool results and pictures are over, as in any fold.
    """
    forms, keep = placement.forms, placement.keep or 0
    talk, first = state.talk, int(has_system(state.system, state.shelf))
    cut, end = talk.hidden, first
    while cut < len(talk.exchanges) and end < keep:
        end += count_messages(talk.exchanges[cut : cut + 1])
        cut += 1
    closed = [_close(exchange, measure) for exchange in talk.exchanges[cut:]]
    spoken = talk.spoken - sum([len(exchange.rounds) for exchange in talk.exchanges[cut:]])
    talk = replace(talk, exchanges=Series((*talk.exchanges[:cut], *closed)), spoken=spoken)
    held = {piece for exchange in talk.exchanges[talk.hidden : cut] for piece in exchange.sent.pieces}
    standing = {name: one for name, one in state.standing.items() if _stands_before(one, end)}
    place = message_place(first + talk.length)
    for name, entry in state.library.items():
        if name not in standing:
            form = forms.get(name) or carried_form(entry, terms)
            old = state.standing.get(name)
            left = [piece for piece in old.pieces if piece in held or _is_shelved(state, name, piece)] if old else []
            standing[name] = _stand_again(entry.artifact, form, left, place=place, measure=measure)
    return replace(state, talk=talk, standing=standing, epoch=state.epoch + 1, terms=terms)


def _stands_before(standing: Standing, end: int) -> bool:
    """Whether the newest piece of something stands in the system message or in one of the first so many messages."""
    place = standing.place
    if place is None or place == SYSTEM_PLACE:
        return standing.listed or place is not None
    return int(place.partition(":")[2]) < end


def _is_shelved(state: State, name: str, piece: str) -> bool:
    return name in state.shelf and piece in state.shelf[name].pieces


def _stand_again(artifact: Artifact, form: Form, left: Sequence[str], *, place: str, measure: Measure) -> Standing:
    """What is known in a question that it did not come with; a piece of it that is ``left`` above is replaced by it."""
    fresh = shelve(artifact, form=form, count=measure.count)
    if not left or fresh.form is not Form.FULL:
        form, text = fresh.form, fresh.pieces[-1]
    else:
        form, text = Form.UPDATE, render_update(artifact, diff=None)
    pieces = (*left, text)
    tokens = sum(measure.count(piece) for piece in pieces)
    return make_standing(artifact, form=form, place=place, pieces=pieces, tokens=tokens)


def fold_library(
    state: State,
    terms: Terms,
    measure: Measure,
    *,
    forms: Mapping[str, Form] = MappingProxyType({}),
    attached: Sequence[Artifact] = (),
) -> State:
    """An epoch begins: what is known stands on the shelf, and nothing of it in messages."""
    if state.measured_by != measure.name:
        state = measure_again(state, measure)
    inlined: dict[str, Artifact] = {artifact.id: artifact for artifact in state.system.inlined}
    before = state.terms
    carries_the_same = (
        before is not None and before.carry_forward is terms.carry_forward and before.attachments is terms.attachments
    )
    if carries_the_same and state.shelf_of is state.library and not inlined and not forms:
        # Most turns attach nothing: thousands of folds then share one shelf.
        shelf = state.shelf
    else:
        shelf = fold_shelf(
            state.library,
            shelf=state.shelf if carries_the_same else {},
            standing=state.standing,
            forms=forms,
            terms=terms,
            without=_find_drawn_in(state, inlined, attached),
            count=measure.count,
        )
    return replace(
        state,
        shelf=shelf,
        shelf_of=state.library if not inlined else None,
        standing={**{name: stand_inlined(a) for name, a in inlined.items()}, **shelf} if inlined else shelf,
        epoch=state.epoch if state.terms is None else state.epoch + 1,
        # What stood for hidden turns in the epoch before may be counted otherwise, or tell what is not told now.
        talk=state.talk if state.talk.stand_in is None else replace(state.talk, stand_in=None),
        terms=terms,
    )


def _find_drawn_in(state: State, inlined: Mapping[str, Artifact], attached: Sequence[Artifact]) -> set[str]:
    if not inlined:
        return set()
    known = [entry.artifact for entry in state.library.values()]
    return {a.id for a in (*known, *attached) if a.id in inlined and inlined[a.id].hash == a.hash}


def _close(exchange: Exchange, measure: Measure) -> Exchange:
    """An exchange whose epoch is over: what was attached to it is in the library, and of tools the calls are left."""
    closed = keep_tools(exchange, [stub_tool(tool, measure) for tool in exchange.tools], measure)
    if not closed.rounds:
        return closed
    lines = (*closed.lines, *list_calls(closed.rounds, measure))
    return join_answer(replace(closed, rounds=(), lines=lines), closed.joined, count=measure.count)


def keep_tools(exchange: Exchange, tools: Sequence[Standing], measure: Measure) -> Exchange:
    """An exchange whose question holds nothing but these tool results and what was typed."""
    if not tools:
        plain = not exchange.tools and exchange.sent == exchange.user.message
        return exchange if plain else replace(exchange, sent=exchange.user.message, tools=())
    pieces = [piece for tool in tools for piece in tool.pieces]
    sent = render_user(pieces, exchange.user.message.pieces, (), count=measure.count)
    return replace(exchange, sent=sent, tools=tuple(tools))


def keep_in_line(exchange: Exchange, stubs: Sequence[Standing], measure: Measure) -> Exchange:
    """The same with calls whose results are gone: a line of its own needs no label behind it."""
    pieces = (*(piece for stub in stubs for piece in stub.pieces), *exchange.user.message.pieces)
    sent = replace(exchange.user.message, pieces=pieces, tokens=count_pieces(pieces, measure.count), weights=())
    return replace(exchange, sent=sent, tools=tuple(stubs))


def is_in_line(exchange: Exchange) -> bool:
    """Whether a question holds calls whose results are gone, and what was typed without a label."""
    stubs = [tool for tool in exchange.tools if tool.form is Form.HANDLE]
    there = len(exchange.sent.pieces) == len(stubs) + len(exchange.user.message.pieces)
    return bool(stubs) and len(stubs) == len(exchange.tools) and there


def stub_tool(tool: Standing, measure: Measure) -> Standing:
    """A tool result as the call that gets it back."""
    if tool.form is Form.HANDLE:
        return tool
    text = render_tool_stub(tool.artifact)
    return make_standing(tool.artifact, form=Form.HANDLE, place=tool.place, pieces=(text,), tokens=measure.count(text))


def hide_earlier(state: State, terms: Terms, measure: Measure, *, told: str | None = None) -> State:
    """How many of the earlier exchanges are not shown, by the history mode, and what stands in for them."""
    talk = state.talk
    if terms.history is History.FULL:
        return state if not talk.hidden else replace(state, talk=replace(talk, hidden=0, stand_in=None, rules=None))
    return keep_hidden_wishes(_hide(state, terms, measure, told=told), measure, cues=terms.cues)


def _hide(state: State, terms: Terms, measure: Measure, *, told: str | None) -> State:
    talk = state.talk
    # The last turns that were asked: one that a compaction took out makes no older one show again.
    first = state.turns - (terms.history_turns or SHOWN_TURNS[terms.history])
    hidden = sum(exchange.number < first for exchange in talk.exchanges)
    if not hidden or terms.history is not History.STRIP:
        return replace(state, talk=replace(talk, hidden=hidden, stand_in=None))
    if told is None and hidden == talk.hidden and talk.stand_in is not None:
        return state
    stand_in = _outline(talk.exchanges[:hidden], measure, told)
    covered = talk.exchanges[: count_summarised(hidden)]
    retold = talk.retold if told is None else (told, name_questions(covered))
    return replace(state, talk=replace(talk, hidden=hidden, stand_in=stand_in, retold=retold))


def count_summarised(hidden: int) -> int:
    """How many of the turns that are not shown a summary covers; the newest of them are outlined."""
    return hidden - hidden % _SUMMARISED_TOGETHER


def name_questions(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """The ids of the questions of some turns."""
    return tuple([exchange.user.id for exchange in exchanges])


def _outline(hidden: Sequence[Exchange], measure: Measure, told: str | None) -> StandIn:
    count = measure.count
    newest = hidden[-_OUTLINED_TURNS:]
    rest = newest if told is None else hidden[count_summarised(len(hidden)) :]
    cap = max(0, STRIP_TOKENS - (count(told) if told else 0))
    talk = [(one.user.text, "\n\n".join(reply.original for reply in one.replies)) for one in rest]
    outline = build_talk_outline(talk, cap=cap, count=count)
    texts = [said.original for exchange in newest for said in exchange.said]
    # It is made anew when a conversation is opened: what was exact then is what stood there then.
    exact = list_exact(texts, cap=_STRIP_EXACT_TOKENS, count=count, former=True)
    content = "\n".join(part for part in (told, outline) if part)
    block = render_stand_in(SegmentKind.SUMMARY, content, covers=f"the {len(hidden):,} turns before", exact=exact)
    return make_stand_in(SegmentKind.SUMMARY, block, count=count)


def measure_again(state: State, measure: Measure) -> State:
    """Another family of models counts differently: what was counted before is counted again."""
    talk = state.talk
    exchanges = Series(_measure_exchange(exchange, measure) for exchange in talk.exchanges)
    return replace(
        state,
        talk=replace(talk, exchanges=exchanges, opening=measure_opening(talk.opening, measure.count), rules=None),
        shelf={},
        shelf_of=None,
        standing={},
        measured_by=measure.name,
    )


def _measure_exchange(exchange: Exchange, measure: Measure) -> Exchange:
    count = measure.count
    again = replace(
        exchange,
        user=_say_again(exchange.user, Voice.USER, measure),
        reply=_say_again(exchange.reply, Voice.REPLY, measure),
        tools=tuple(_measure_tool(tool, measure) for tool in exchange.tools),
        rounds=tuple(_measure_round(said, measure) for said in exchange.rounds),
        lines=tuple(replace(line, tokens=count(line.text)) for line in exchange.lines),
        joined=tuple(_say_again(reply, Voice.REPLY, measure) for reply in exchange.joined),
    )
    # Exchanges of earlier epochs hold nothing in their questions but what tools left.
    # Calls in lines stay so: of hidden ones nothing is closed any more.
    keep = keep_in_line if is_in_line(exchange) else keep_tools
    return join_answer(keep(again, again.tools, measure), again.joined, count=count)


def _say_again(said: Said, voice: Voice, measure: Measure) -> Said:
    if said.whole is not None:
        return shorten(said, said.text, form=said.segment.form, count=measure.count)
    again = make_said(said.id, voice, said.text, place=said.segment.place, measure=measure)
    return again if said.turn is None else replace(again, turn=said.turn)


def _measure_round(said: Said, measure: Measure) -> Said:
    tokens = weigh_calls(said.text, said.message.carried, measure)
    return Said(message=replace(said.message, tokens=tokens), segment=replace(said.segment, tokens=tokens))


def _measure_tool(tool: Standing, measure: Measure) -> Standing:
    tokens = sum(measure.count(piece) for piece in tool.pieces)
    return make_standing(tool.artifact, form=tool.form, place=tool.place, pieces=tool.pieces, tokens=tokens)


def stand_inlined(artifact: Artifact) -> Standing:
    """A note that stands inside L1's instructions: it can be referred to, and is not shelved again."""
    return make_standing(artifact, form=Form.FULL, place=SYSTEM_PLACE, pieces=(), tokens=0)
