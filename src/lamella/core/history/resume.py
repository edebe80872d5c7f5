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
from lamella.core.layers.library import Standing
from lamella.core.layers.model import Role, message_place
from lamella.core.layers.strip import Exchange, Said, make_said
from lamella.core.layers.turn import add_standing, show_turn
from lamella.core.messages.model import Message
from lamella.core.messages.render import render_user


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A turn of the past: what was asked, and the reply with its id, if there was one."""

    turn: TurnInput
    reply: str | None = None
    reply_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A conversation as it was left: the state, and the turn that still waits for its reply, if any.

    With an open turn, the state is the one that turn was asked in.
    """

    state: State
    opened: OpenTurn | None = None


def resume(past: Sequence[PastTurn], rules: Rules, *, conversation: str, model: str | None) -> Resumed:
    """What turn-by-turn folding gives, at the cost of the last epoch. ``rules`` measure for the model in force."""
    state = State(conversation=conversation, model=model, measured_by=rules.measure.name)
    if not past:
        return Resumed(state=state)
    start = _last_epoch(state, past, rules)
    state = _skim(state, past[:start], rules)
    if start < len(past) - 1:
        state = _lay_out(state, past[start:-1], rules)
    last = past[-1]
    if last.reply is None:
        return Resumed(state=state, opened=open_turn(state, last.turn, rules))
    # Its laws and its size were checked when it was sent; it is only what the next turn is compared with.
    opened = open_turn(state, last.turn, rules, checked=False)
    return Resumed(state=close_turn(opened, last.reply, rules))


def _last_epoch(state: State, past: Sequence[PastTurn], rules: Rules) -> int:
    """The index of the turn that began the epoch which the last turn belongs to."""
    start = 0
    for index, told in enumerate(past):
        own = turn_rules(rules, told.turn)
        now = with_settings(state, told.turn)
        if begins_epoch(state, now, told.turn, rules=own):
            start = index
        state = now if now.layout is own.layout else replace(now, layout=own.layout)
    return start


def _skim(state: State, past: Sequence[PastTurn], rules: Rules) -> State:
    """Turns of earlier epochs: what was said and what is known; how they were laid out no longer matters."""
    known: dict[str, Artifact] = {}
    exchanges: list[Exchange] = []
    epoch = -1
    for told in past:
        own = turn_rules(rules, told.turn)
        now = with_settings(state, told.turn)
        epoch += begins_epoch(state, now, told.turn, rules=own)
        state = now if now.layout is own.layout else replace(now, layout=own.layout)
        known = drop_known(known, told.turn.drop).known if told.turn.drop else known
        if told.turn.attached or told.turn.results:
            learn_into(known, gather(told.turn, known).artifacts, image_notes=own.image_notes)
        parent = exchanges[-1].reply.id if exchanges else ""
        user, reply = _say(told, state.conversation, parent, place=1 + 2 * len(exchanges), rules=rules)
        exchanges.append(Exchange(user=user, sent=user.message, tools=(), reply=reply))
    head = exchanges[-1].reply.id if exchanges else ""
    return replace(state, known=known, exchanges=tuple(exchanges), head=head, epoch=max(0, epoch))


def _lay_out(state: State, past: Sequence[PastTurn], rules: Rules) -> State:
    """The turns of the last epoch, laid out as they were sent, without their envelopes."""
    first = past[0].turn
    own = turn_rules(rules, first)
    known = drop_known(state.known, first.drop).known
    now = begin_turn(state, first, own, known=known, attached=gather(first, known).artifacts)
    standing = dict(now.standing)
    exchanges = list(now.exchanges)
    system = 1 if now.shelf or any(now.system.named()) else 0
    for told in past:
        place = system + 2 * len(exchanges)
        parent = exchanges[-1].reply.id if exchanges else ""
        user, reply = _say(told, state.conversation, parent, place=place, rules=rules)
        # The same text drawn in from other notes begins no epoch, and is the system prompt from here on.
        now = with_settings(now, told.turn)
        if not told.turn.attached and not told.turn.results:
            exchanges.append(Exchange(user=user, sent=user.message, tools=(), reply=reply))
            continue
        attached = gather(told.turn, known).artifacts
        sent, added = _send(attached, user, standing, rules=rules)
        tools = tuple(one for one in added if one.artifact.kind is Kind.TOOL)
        exchanges.append(Exchange(user=user, sent=sent, tools=tools, reply=reply))
        add_standing(standing, added)
        learn_into(known, attached, image_notes=turn_rules(rules, told.turn).image_notes)
    return replace(now, head=exchanges[-1].reply.id, known=known, standing=standing, exchanges=tuple(exchanges))


def _send(
    attached: Sequence[Artifact], user: Said, standing: dict[str, Standing], *, rules: Rules
) -> tuple[Message, tuple[Standing, ...]]:
    """A message as it was sent, and what it added."""
    place = user.segment.place or ""
    turn = show_turn(attached, standing=standing, place=place, measure=rules.measure)
    sent = render_user(turn.pieces, user.message.pieces, turn.images, count=rules.measure.count)
    return sent, turn.added


def _say(told: PastTurn, conversation: str, parent: str, *, place: int, rules: Rules) -> tuple[Said, Said]:
    """What was typed and what was answered."""
    text = told.reply or ""
    asked = turn_id(conversation, parent, told.turn)
    user = make_said(asked, Role.USER, told.turn.text, place=message_place(place), measure=rules.measure)
    answered = told.reply_id or message_id(conversation, parent=asked, role=Role.REPLY, text=text)
    return user, make_said(answered, Role.REPLY, text, place=message_place(place + 1), measure=rules.measure)
