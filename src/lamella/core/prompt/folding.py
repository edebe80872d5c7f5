"""Folding: an epoch begins, and what stood in messages goes into the library and the strip."""

from collections.abc import Sequence

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.log.terms import History
from lamella.core.prompt.layers.library import Standing, fold_shelf, make_standing
from lamella.core.prompt.layers.model import SYSTEM_PLACE, StandIn, message_place
from lamella.core.prompt.layers.opening import (
    Derived,
    Opening,
    make_derived,
    measure_opening,
    open_with,
    render_derived,
)
from lamella.core.prompt.layers.strip import Exchange, Said, join_answer, make_said
from lamella.core.prompt.render import render_user
from lamella.core.prompt.state import Rules, State
from lamella.core.text.exact import build_ledger
from lamella.core.text.talk import build_talk_outline
from lamella.core.values import replace

SHOWN_TURNS = {History.WINDOW: 10, History.STRIP: 2}
STRIP_TOKENS = 300
_STRIP_EXACT_TOKENS = 150
# The outline keeps the newest turns that its cap holds; reading more of them than that could never show.
_OUTLINED_TURNS = 60
# A summary of what is not shown covers whole groups of turns, so that not every turn needs another one.
_SUMMARISED_TOGETHER = 8


def fold(state: State, rules: Rules, *, attached: Sequence[Artifact] = (), told: str | None = None) -> State:
    """Everything earlier goes into the library and the strip; image notes and tool results leave with their turn.

    A note whose text, as known or as attached now, is drawn into L1 stands there and not on the shelf. ``told`` is a
    summary of the oldest turns that the history mode does not show.
    """
    if state.measured_by != rules.measure.name:
        state = _measure_again(state, rules)
    inlined = {artifact.id: artifact for artifact in state.system.inlined}
    drawn_in = {a.id for a in (*state.known.values(), *attached) if a.id in inlined and inlined[a.id].hash == a.hash}
    shelf = fold_shelf(
        [artifact for artifact in state.known.values() if artifact.id not in drawn_in],
        shelf=state.shelf if state.carry_forward is rules.carry_forward else {},
        standing=state.standing,
        forms=state.forms,
        carry_forward=rules.carry_forward,
        count=rules.measure.count,
    )
    folded = replace(
        state,
        shelf=shelf,
        standing={**{name: _inlined(artifact) for name, artifact in inlined.items()}, **shelf},
        epoch=state.epoch if state.layout is None else state.epoch + 1,
        epoch_start=len(state.exchanges),
        carry_forward=rules.carry_forward,
        layout=rules.layout,
        # What stood for hidden turns in the epoch before may be counted otherwise, or tell what is not told now.
        stand_in=None,
    )
    return draw_curtain(folded, rules, told)


def fold_keeping_tools(state: State, rules: Rules) -> State:
    """The same for a compaction, which says itself what becomes of the tool results that stand in messages."""
    start = state.epoch_start
    kept = tuple(keep_tools(exchange, exchange.tools, rules) for exchange in state.exchanges[start:])
    return replace(fold(replace(state, exchanges=(*state.exchanges[:start], *kept)), rules), epoch_start=start)


def keep_tools(exchange: Exchange, tools: Sequence[Standing], rules: Rules) -> Exchange:
    """An exchange whose message holds nothing but these tool results and what was typed."""
    if not tools:
        plain = not exchange.tools and exchange.sent == exchange.user.message
        return exchange if plain else replace(exchange, sent=exchange.user.message, tools=())
    pieces = [piece for tool in tools for piece in tool.pieces]
    sent = render_user(pieces, exchange.user.message.pieces, (), count=rules.measure.count)
    return replace(exchange, sent=sent, tools=tuple(tools))


def place_tools(state: State) -> State:
    """The same state once it is known which messages are sent: tool results stand where their messages stand."""
    first = (1 if state.shelf or any(state.system.named()) else 0) - 2 * state.hidden
    exchanges = list(state.exchanges)
    # Tool results whose messages went or are not shown stand nowhere, and cannot be referred to.
    standing = {name: one for name, one in state.standing.items() if one.artifact.kind is not Kind.TOOL}
    for index in range(max(state.epoch_start, state.hidden), len(exchanges)):
        if exchanges[index].tools:
            place = message_place(first + 2 * index)
            tools = tuple(_placed(tool, place) for tool in exchanges[index].tools)
            exchanges[index] = replace(exchanges[index], tools=tools)
            standing.update((tool.artifact.id, tool) for tool in tools)
    return replace(state, exchanges=tuple(exchanges), standing=standing)


def draw_curtain(state: State, rules: Rules, told: str | None = None) -> State:
    """How many of the earlier exchanges are not shown, by the history mode, and what stands in for them."""
    if rules.history is History.FULL:
        return state if not state.hidden else replace(state, hidden=0, stand_in=None)
    # The last turns that were asked: one that a compaction took out makes no older one show again.
    first = state.turns - (rules.history_turns or SHOWN_TURNS[rules.history])
    hidden = sum(exchange.number < first for exchange in state.exchanges)
    if not hidden or rules.history is not History.STRIP:
        return replace(state, hidden=hidden, stand_in=None)
    if told is None and hidden == state.hidden and state.stand_in is not None:
        return state
    return replace(state, hidden=hidden, stand_in=_outline(state.exchanges[:hidden], rules, told))


def opening_of(state: State, rules: Rules) -> Opening:
    """What stands before the first exchange shown: for what compactions took out, and for what the mode hides."""
    if not state.hidden:
        return state.opening
    left_out = sum(len(exchange.said) for exchange in state.exchanges[: state.hidden])
    blocks = (state.stand_in,) if state.stand_in else ()
    return open_with(state.opening, left_out=left_out, blocks=blocks, count=rules.measure.count)


def summarised(hidden: int) -> int:
    """How many of the turns that are not shown a summary covers; the newest of them are outlined."""
    return hidden - hidden % _SUMMARISED_TOGETHER


def _outline(hidden: Sequence[Exchange], rules: Rules, told: str | None) -> Derived:
    count = rules.measure.count
    newest = hidden[-_OUTLINED_TURNS:]
    rest = newest if told is None else hidden[summarised(len(hidden)) :]
    cap = max(0, STRIP_TOKENS - (count(told) if told else 0))
    talk = [(one.user.text, "\n\n".join(reply.text for reply in one.replies)) for one in rest]
    outline = build_talk_outline(talk, cap=cap, count=count)
    texts = [said.text for exchange in newest for said in exchange.said]
    exact = build_ledger(texts, cap=_STRIP_EXACT_TOKENS, count=count)
    content = "\n".join(part for part in (told, outline) if part)
    covers = f"the {len(hidden):,} turns before"
    block = render_derived(StandIn.SUMMARY, content, covers=covers, exact=exact)
    return make_derived(StandIn.SUMMARY, block, count)


def _measure_again(state: State, rules: Rules) -> State:
    """Another family of models counts differently: what was counted before is counted again."""
    exchanges = tuple(_exchange_again(exchange, rules) for exchange in state.exchanges)
    return replace(
        state,
        exchanges=exchanges,
        shelf={},
        standing={},
        opening=measure_opening(state.opening, rules.measure.count),
        measured_by=rules.measure.name,
    )


def _exchange_again(exchange: Exchange, rules: Rules) -> Exchange:
    again = replace(
        exchange,
        user=_said_again(exchange.user, Voice.USER, rules),
        reply=_said_again(exchange.reply, Voice.REPLY, rules),
        tools=tuple(_tool_again(tool, rules) for tool in exchange.tools),
        joined=tuple(_said_again(reply, Voice.REPLY, rules) for reply in exchange.joined),
    )
    return join_answer(again, again.joined, count=rules.measure.count)


def _said_again(said: Said, role: Voice, rules: Rules) -> Said:
    return make_said(said.id, role, said.text, place=said.segment.place or "", measure=rules.measure)


def _tool_again(tool: Standing, rules: Rules) -> Standing:
    tokens = sum(rules.measure.count(piece) for piece in tool.pieces)
    return make_standing(tool.artifact, form=tool.form, place=tool.place or "", pieces=tool.pieces, tokens=tokens)


def _placed(tool: Standing, place: str) -> Standing:
    if tool.place == place:
        return tool
    return make_standing(tool.artifact, form=tool.form, place=place, pieces=tool.pieces, tokens=tool.tokens)


def _inlined(artifact: Artifact) -> Standing:
    """A note that stands inside L1's instructions: it can be referred to, and is not shelved again."""
    return make_standing(artifact, form=Form.FULL, place=SYSTEM_PLACE, pieces=(), tokens=0)
