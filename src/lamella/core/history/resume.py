"""Resuming: the state a branch folds to, without building the envelope of every turn that ever was.

A turn is built from what is known and from the messages of its epoch. So only the turns of the last epoch are laid
out again, and only the last one is built in full, for the next to be compared with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.history.attached import drop_known, gather, learn_into
from lamella.core.history.ids import message_id, turn_id
from lamella.core.history.state import OpenTurn, Rules, State, TurnInput
from lamella.core.history.turns import begin_turn, begins_epoch, close_turn, open_turn, turn_rules, with_settings
from lamella.core.layers.model import Role, message_place
from lamella.core.layers.strip import Exchange, Said, make_said
from lamella.core.layers.turn import build_turn, merge_standing
from lamella.core.messages.render import render_user

Past = Sequence[tuple[TurnInput, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A conversation as it was left: the state, and the turn that still waits for its reply, if any.

    With an open turn, the state is the one that turn was asked in.
    """

    state: State
    opened: OpenTurn | None = None


def resume(past: Past, rules: Rules, *, conversation: str, model: str | None) -> Resumed:
    """What turn-by-turn folding gives, at the cost of the last epoch. ``rules`` measure for the model in force."""
    state = State(conversation=conversation, model=model, measured_by=rules.measure.name)
    if not past:
        return Resumed(state=state)
    start = _last_epoch(state, past, rules)
    state = _skim(state, past[:start], rules)
    for turn, reply in past[start:-1]:
        state = _lay_out(state, turn, reply or "", rules=rules)
    turn, reply = past[-1]
    opened = open_turn(state, turn, rules)
    if reply is None:
        return Resumed(state=state, opened=opened)
    return Resumed(state=close_turn(opened, reply, rules))


def _last_epoch(state: State, past: Past, rules: Rules) -> int:
    """The index of the turn that began the epoch which the last turn belongs to."""
    start = 0
    for index, (turn, _) in enumerate(past):
        own = turn_rules(rules, turn)
        now = with_settings(state, turn)
        if begins_epoch(state, now, turn, rules=own):
            start = index
        state = replace(now, layout=own.layout)
    return start


def _skim(state: State, past: Past, rules: Rules) -> State:
    """Turns of earlier epochs: what was said and what is known; how they were laid out no longer matters."""
    known: dict[str, Artifact] = {}
    exchanges: list[Exchange] = []
    head, epoch = "", -1
    for turn, reply in past:
        own = turn_rules(rules, turn)
        now = with_settings(state, turn)
        epoch += begins_epoch(state, now, turn, rules=own)
        state = replace(now, layout=own.layout)
        known = drop_known(known, turn.drop)[0] if turn.drop else known
        learn_into(known, gather(turn, known).artifacts, image_notes=own.image_notes)
        place = 1 + 2 * len(exchanges)
        user = make_said(
            turn_id(state.conversation, head, turn),
            Role.USER,
            turn.text,
            place=message_place(place),
            measure=rules.measure,
        )
        answer = _answer(state.conversation, user.id, reply or "", place=place + 1, rules=rules)
        exchanges.append(Exchange(user=user, sent=user.message, tools=(), reply=answer))
        head = answer.id
    return replace(state, known=known, exchanges=tuple(exchanges), head=head, epoch=max(0, epoch))


def _lay_out(state: State, turn: TurnInput, reply: str, *, rules: Rules) -> State:
    """A turn of the last epoch, laid out as it was sent, without its envelope."""
    own = turn_rules(rules, turn)
    known, _ = drop_known(state.known, turn.drop)
    attached = gather(turn, known).artifacts
    now = begin_turn(state, turn, own, known=known, attached=attached)
    place = (1 if now.shelf or any(now.system.named()) else 0) + 2 * len(now.exchanges)
    built = build_turn(
        attached, standing=now.standing, layout=own.layout, place=message_place(place), measure=rules.measure
    )
    user = make_said(
        turn_id(state.conversation, state.head, turn),
        Role.USER,
        turn.text,
        place=message_place(place),
        measure=rules.measure,
    )
    answer = _answer(state.conversation, user.id, reply, place=place + 1, rules=rules)
    exchange = Exchange(
        user=user,
        sent=render_user(built.layer.pieces, user.message.pieces, built.images, count=rules.measure.count),
        tools=tuple(added for added in built.added if added.artifact.kind is Kind.TOOL),
        reply=answer,
    )
    learn_into(known, attached, image_notes=own.image_notes)
    return replace(
        now,
        head=answer.id,
        known=known,
        standing=merge_standing(now.standing, built.added) if built.added else now.standing,
        exchanges=(*now.exchanges, exchange),
    )


def _answer(conversation: str, parent: str, text: str, *, place: int, rules: Rules) -> Said:
    name = message_id(conversation, parent=parent, role=Role.REPLY, text=text)
    return make_said(name, Role.REPLY, text, place=message_place(place), measure=rules.measure)
