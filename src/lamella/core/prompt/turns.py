"""Folding turns: a state and what the user does become an envelope; that and the reply become the next state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.terms import Layout
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.attached import drop_known, find_leaving, gather, learn
from lamella.core.prompt.build import Ground, build_envelope, rebuild_request
from lamella.core.prompt.envelope import Sent
from lamella.core.prompt.folding import fold, opening_of
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import SYSTEM_PLACE, LayerId, message_place
from lamella.core.prompt.layers.strip import Exchange, Said, make_said
from lamella.core.prompt.layers.turn import merge_standing
from lamella.core.prompt.state import OpenTurn, Rules, State
from lamella.core.values import replace

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn laid on its state: what the envelope is built from, and the state, folded if an epoch begins."""

    ground: Ground
    state: State
    rules: Rules


def prepare_turn(state: State, turn: TurnInput, rules: Rules) -> Prepared:
    """Everything that the turn's request is made of."""
    rules = turn_rules(rules, turn)
    drawn_in = {artifact.id for artifact in with_settings(state, turn).system.inlined}
    dropped = drop_known(state.known, turn.drop, standing=state.standing.keys() - drawn_in, drawn_in=drawn_in)
    known = dropped.known
    attached = gather(turn, known)
    now = begin_turn(state, turn, rules, known=known, attached=attached.artifacts)
    user = make_said(
        turn_id(state.conversation, state.head, turn), Voice.USER, turn.text, place="", measure=rules.measure
    )
    ground = Ground(
        conversation_id=state.conversation,
        epoch=now.epoch,
        layout=rules.layout,
        model=now.model,
        tools=now.tools,
        system=now.system,
        shelf=tuple(now.shelf.values()),
        library=_library(now),
        carried=_carried(now),
        standing=now.standing,
        exchanges=now.exchanges[now.hidden :] if now.hidden else now.exchanges,
        epoch_start=max(0, now.epoch_start - now.hidden),
        attached=attached.artifacts,
        user=user,
        dropped=dropped.left,
        rewritten=turn.rewritten,
        opening=opening_of(now, rules),
        compacted=state.compacted,
        warnings=(
            *turn.warnings,
            *dropped.warnings,
            *attached.warnings,
            *find_leaving(known, attached.artifacts, image_notes=rules.image_notes),
        ),
    )
    return Prepared(ground=ground, state=now, rules=rules)


def open_turn(state: State, turn: TurnInput, rules: Rules, *, checked: bool = True) -> OpenTurn:
    """The envelope of the turn that the user asks now. Only one that was built and checked before may go unchecked."""
    prepared = prepare_turn(state, turn, rules)
    ground, own = prepared.ground, prepared.rules
    built = build_envelope(ground, measure=own.measure, budget=own.budget, before=state.last, checked=checked)
    after = _send(prepared, built.envelope, built.turn.added)
    placed = replace(ground.user, segment=built.envelope.segments(LayerId.L5)[0])
    tools = _tools_of(built.turn.added)
    return OpenTurn(envelope=built.envelope, state=after, user=placed, attached=ground.attached, tools=tools)


def rebuild_turn(state: State, turn: TurnInput, rules: Rules, *, reply: str) -> State:
    """The state after a turn of the past. Its laws and its size were checked when it was sent."""
    prepared = prepare_turn(state, turn, rules)
    sent, shown = rebuild_request(prepared.ground, prepared.rules.measure)
    after = _send(prepared, sent, shown.added)
    placed = replace(prepared.ground.user, segment=sent.segments(LayerId.L5)[0])
    asked = Exchange(
        user=placed,
        sent=sent.messages[-1],
        tools=_tools_of(shown.added),
        reply=_make_reply(after, reply, place=len(sent.messages), rules=rules),
        attached=bool(prepared.ground.attached),
        number=after.turns,
    )
    return _answer(after, asked)


def _send(prepared: Prepared, sent: Sent, added: Sequence[Standing]) -> State:
    """The state once a request was sent."""
    now, attached = prepared.state, prepared.ground.attached
    names = {artifact.id for artifact in attached}
    return replace(
        now,
        head=prepared.ground.user.id,
        known=learn(now.known, attached, image_notes=prepared.rules.image_notes),
        standing=merge_standing(now.standing, added),
        last=sent,
        forms=without(now.forms, names),
        attached_at={**now.attached_at, **dict.fromkeys(names, now.turns)} if names else now.attached_at,
        compacted=None,
    )


def _tools_of(added: Sequence[Standing]) -> tuple[Standing, ...]:
    return tuple(one for one in added if one.artifact.kind is Kind.TOOL)


def without(mapping: Mapping[str, _Value], names: Collection[str]) -> Mapping[str, _Value]:
    """The mapping less some names; the same object where it has none of them."""
    if not any(name in mapping for name in names):
        return mapping
    return {name: value for name, value in mapping.items() if name not in names}


def close_turn(opened: OpenTurn, reply: str, rules: Rules) -> State:
    """The state after the reply; a turn that was never answered gets the empty reply."""
    state, sent = opened.state, opened.envelope.messages
    exchange = Exchange(
        user=opened.user,
        sent=sent[-1],
        tools=opened.tools,
        reply=_make_reply(state, reply, place=len(sent), rules=rules),
        attached=bool(opened.attached),
        number=state.turns,
    )
    return _answer(state, exchange)


def _make_reply(state: State, text: str, *, place: int, rules: Rules) -> Said:
    name = message_id(state.conversation, parent=state.head, role=Voice.REPLY, text=text)
    return make_said(name, Voice.REPLY, text, place=message_place(place), measure=rules.measure)


def _answer(state: State, exchange: Exchange) -> State:
    return replace(state, head=exchange.reply.id, exchanges=(*state.exchanges, exchange), turns=state.turns + 1)


def begin_turn(
    state: State, turn: TurnInput, rules: Rules, *, known: Mapping[str, Artifact], attached: Sequence[Artifact]
) -> State:
    """The state the turn is built on: with its settings in force, folded if an epoch begins."""
    now = replace(with_settings(state, turn), known=known)
    if begins_epoch(state, now, turn, rules=rules):
        return fold(now, rules, attached=attached, told=turn.strip)
    return now


def with_settings(state: State, turn: TurnInput) -> State:
    """The state with what the turn changes from now on."""
    if turn.system is None and turn.tools is None and turn.model in (None, state.model):
        return state
    return replace(
        state,
        system=turn.system if turn.system is not None else state.system,
        tools=turn.tools if turn.tools is not None else state.tools,
        model=turn.model if turn.model is not None else state.model,
    )


def turn_rules(rules: Rules, turn: TurnInput) -> Rules:
    """The rules a turn was asked under, where it says so."""
    layout = turn.layout or rules.layout
    carry_forward = turn.carry_forward or rules.carry_forward
    image_notes = rules.image_notes if turn.image_notes is None else turn.image_notes
    history, shown = (turn.history, turn.history_turns) if turn.history else (rules.history, rules.history_turns)
    if (layout, carry_forward, image_notes) == (rules.layout, rules.carry_forward, rules.image_notes) and (
        history,
        shown,
    ) == (rules.history, rules.history_turns):
        return rules
    return replace(
        rules,
        layout=layout,
        carry_forward=carry_forward,
        image_notes=image_notes,
        history=history,
        history_turns=shown,
    )


def begins_epoch(state: State, now: State, turn: TurnInput, *, rules: Rules) -> bool:
    """Whether everything earlier folds into the library and the strip before this turn is built."""
    if rules.layout is Layout.LIBRARY or state.layout is not rules.layout or turn.rewritten is not None:
        return True
    parts_changed = state.system is not now.system and tuple(state.system.named()) != tuple(now.system.named())
    return parts_changed or state.tools != now.tools or state.model != now.model or bool(turn.drop) or turn.fold


def _library(state: State) -> tuple[Standing, ...]:
    standings = (state.standing[name] for name in state.known)
    return tuple(standing for standing in standings if standing.pieces)


def _carried(state: State) -> tuple[Standing, ...]:
    """What the request holds without knowing it; a note inlined in L1 has no pieces there and is L1's."""
    return tuple(
        standing
        for name, standing in state.standing.items()
        if name not in state.known
        and standing.artifact.kind is not Kind.TOOL
        and (standing.place != SYSTEM_PLACE or standing.pieces)
    )
