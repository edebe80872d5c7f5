"""Folding turns: a state and what the user does become an envelope; that and the reply become the next state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.envelope.build import Ground, build_envelope
from lamella.core.history.attached import drop_known, find_leaving, gather, learn
from lamella.core.history.ids import message_id, turn_id
from lamella.core.history.state import OpenTurn, Rules, State, TurnInput
from lamella.core.layers.library import Standing, fold_shelf, make_standing
from lamella.core.layers.model import SYSTEM_PLACE, Form, LayerId, Layout, Role, message_place
from lamella.core.layers.strip import Exchange, Said, make_said
from lamella.core.layers.turn import merge_standing


def open_turn(state: State, turn: TurnInput, rules: Rules, *, checked: bool = True) -> OpenTurn:
    """The envelope of the turn that the user asks now. Only one that was built and checked before may go unchecked."""
    rules = turn_rules(rules, turn)
    drawn_in = {artifact.id for artifact in with_settings(state, turn).system.inlined}
    dropped = drop_known(state.known, turn.drop, standing=state.standing.keys() - drawn_in, drawn_in=drawn_in)
    known = dropped.known
    attached = gather(turn, known)
    now = begin_turn(state, turn, rules, known=known, attached=attached.artifacts)
    user = make_said(
        turn_id(state.conversation, state.head, turn), Role.USER, turn.text, place="", measure=rules.measure
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
        exchanges=now.exchanges,
        epoch_start=now.epoch_start,
        attached=attached.artifacts,
        user=user,
        dropped=dropped.left,
        rewritten=turn.rewritten,
        warnings=(
            *turn.warnings,
            *dropped.warnings,
            *attached.warnings,
            *find_leaving(known, attached.artifacts, image_notes=rules.image_notes),
        ),
    )
    built = build_envelope(ground, measure=rules.measure, budget=rules.budget, before=state.last, checked=checked)
    after = replace(
        now,
        head=user.id,
        known=learn(known, attached.artifacts, image_notes=rules.image_notes),
        standing=merge_standing(now.standing, built.turn.added),
        last=built.envelope,
    )
    tools = tuple(added for added in built.turn.added if added.artifact.kind is Kind.TOOL)
    placed = replace(user, segment=built.envelope.layer(LayerId.L5).segments[0])
    return OpenTurn(envelope=built.envelope, state=after, user=placed, attached=attached.artifacts, tools=tools)


def close_turn(opened: OpenTurn, reply: str, rules: Rules) -> State:
    """The state after the reply; a turn that was never answered gets the empty reply."""
    state = opened.state
    reply_id = message_id(state.conversation, parent=state.head, role=Role.REPLY, text=reply)
    sent = opened.envelope.messages
    place = message_place(len(sent))
    exchange = Exchange(
        user=opened.user,
        sent=sent[-1],
        tools=opened.tools,
        reply=make_said(reply_id, Role.REPLY, reply, place=place, measure=rules.measure),
    )
    return replace(state, head=reply_id, exchanges=(*state.exchanges, exchange))


def begin_turn(
    state: State, turn: TurnInput, rules: Rules, *, known: Mapping[str, Artifact], attached: Sequence[Artifact]
) -> State:
    """The state the turn is built on: with its settings in force, folded if an epoch begins."""
    now = replace(with_settings(state, turn), known=known)
    if begins_epoch(state, now, turn, rules=rules):
        return _fold(now, rules, attached=attached)
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
    if (layout, carry_forward, image_notes) == (rules.layout, rules.carry_forward, rules.image_notes):
        return rules
    return replace(rules, layout=layout, carry_forward=carry_forward, image_notes=image_notes)


def begins_epoch(state: State, now: State, turn: TurnInput, *, rules: Rules) -> bool:
    """Whether everything earlier folds into the library and the strip before this turn is built."""
    if rules.layout is Layout.LIBRARY or state.layout is not rules.layout or turn.rewritten is not None:
        return True
    parts_changed = state.system is not now.system and tuple(state.system.named()) != tuple(now.system.named())
    return parts_changed or state.tools != now.tools or state.model != now.model or bool(turn.drop) or turn.fold


def _fold(state: State, rules: Rules, *, attached: Sequence[Artifact]) -> State:
    """Everything earlier goes into the library and the strip; image notes and tool results leave with their turn.

    A note whose text, as known or as attached now, is drawn into L1 stands there and not on the shelf.
    """
    if state.measured_by != rules.measure.name:
        state = _measure_again(state, rules)
    inlined = {artifact.id: artifact for artifact in state.system.inlined}
    drawn_in = {a.id for a in (*state.known.values(), *attached) if a.id in inlined and inlined[a.id].hash == a.hash}
    shelf = fold_shelf(
        [artifact for artifact in state.known.values() if artifact.id not in drawn_in],
        shelf=state.shelf if state.carry_forward is rules.carry_forward else {},
        standing=state.standing,
        carry_forward=rules.carry_forward,
        count=rules.measure.count,
    )
    return replace(
        state,
        shelf=shelf,
        standing={**{name: _inlined(artifact) for name, artifact in inlined.items()}, **shelf},
        epoch=state.epoch if state.layout is None else state.epoch + 1,
        epoch_start=len(state.exchanges),
        carry_forward=rules.carry_forward,
        layout=rules.layout,
    )


def _measure_again(state: State, rules: Rules) -> State:
    """Another family of models counts differently: what was counted before is counted again."""
    exchanges = tuple(
        replace(
            exchange,
            user=_said_again(exchange.user, Role.USER, rules),
            reply=_said_again(exchange.reply, Role.REPLY, rules),
        )
        for exchange in state.exchanges
    )
    return replace(state, exchanges=exchanges, shelf={}, standing={}, measured_by=rules.measure.name)


def _said_again(said: Said, role: Role, rules: Rules) -> Said:
    return make_said(said.id, role, said.text, place=said.segment.place or "", measure=rules.measure)


def _inlined(artifact: Artifact) -> Standing:
    """A note that stands inside L1's instructions: it can be referred to, and is not shelved again."""
    return make_standing(artifact, form=Form.FULL, place=SYSTEM_PLACE, pieces=(), tokens=0)


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
