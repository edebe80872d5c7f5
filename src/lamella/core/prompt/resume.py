"""Resuming: the state a branch folds to, without building the envelope of every turn that ever was.

A turn is built from what is known and from the messages of its epoch. So only the turns of the last epoch are laid
out again, and only the last one is built in full, for the next to be compared with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Layout
from lamella.core.log.turn import PastTurn, TurnInput
from lamella.core.messages.model import Message
from lamella.core.prompt.applying import apply_receipt
from lamella.core.prompt.attached import drop_known, gather, learn_into
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.strip import Exchange, Said, make_said
from lamella.core.prompt.layers.turn import add_standing, show_turn
from lamella.core.prompt.render import render_user
from lamella.core.prompt.state import OpenTurn, Rules, State
from lamella.core.prompt.turns import (
    begin_turn,
    begins_epoch,
    open_turn,
    rebuild_turn,
    turn_rules,
    with_settings,
    without,
)
from lamella.core.values import replace

_NOTHING_SET = (None, None, None, None)
# Members by name of their own: see docs/decisions/msgspec.md.
_IN_PLACE, _USER, _REPLY = Layout.IN_PLACE, Voice.USER, Voice.REPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A conversation as it was left: the state, and the turn that still waits for its reply, if any.

    With an open turn, the state is the one that turn was asked in.
    """

    state: State
    opened: OpenTurn | None = None


def resume(
    past: Sequence[PastTurn],
    rules: Rules,
    *,
    conversation: str,
    model: str | None,
    receipts: Sequence[Receipt] = (),
) -> Resumed:
    """What turn-by-turn folding gives, at the cost of the last epoch. ``rules`` measure for the model in force.

    ``receipts`` are the compactions committed since the last turn.
    """
    state = State(conversation=conversation, model=model, measured_by=rules.measure.name)
    if not past:
        return Resumed(state=state)
    *earlier, newest = _between_compactions(past)
    for turns in earlier:
        state = _walk(_compact(state, turns[0], rules), turns, rules)
    state = _walk(_compact(state, newest[0], rules), newest[:-1], rules)
    last = past[-1]
    if last.reply is None:
        # Whether it fits is asked where it is sent again: what was sent already may be answered whatever its size.
        return Resumed(state=state, opened=open_turn(state, last.turn, rules))
    state = rebuild_turn(state, last.turn, rules, reply=last.reply)
    for receipt in receipts:
        state = apply_receipt(state, receipt, rules)
    return Resumed(state=state)


def _between_compactions(past: Sequence[PastTurn]) -> list[Sequence[PastTurn]]:
    """The turns cut before each that a compaction went before."""
    starts = [0, *(index for index, told in enumerate(past) if index and told.receipts), len(past)]
    return [past[start:end] for start, end in pairwise(starts)]


def _compact(state: State, told: PastTurn, rules: Rules) -> State:
    for receipt in told.receipts:
        state = apply_receipt(state, receipt, turn_rules(rules, told.turn))
    return state


def _walk(state: State, past: Sequence[PastTurn], rules: Rules) -> State:
    """The state after turns that were all answered, without their envelopes."""
    if not past:
        return state
    start = _last_epoch(state, past, rules)
    skimmed = _skim(state, past[:start], rules) if start else state
    return _lay_out(skimmed, past[start:], rules)


def _last_epoch(state: State, past: Sequence[PastTurn], rules: Rules) -> int:
    """The index of the turn that began the epoch which the last turn belongs to; the first if none of them did."""
    start = 0
    for index, told in enumerate(past):
        if _goes_on(told.turn, state.layout):
            continue
        own = turn_rules(rules, told.turn)
        now = with_settings(state, told.turn)
        if begins_epoch(state, now, told.turn, rules=own):
            start = index
        state = now if now.layout is own.layout else replace(now, layout=own.layout)
    return start


def _goes_on(turn: TurnInput, layout: Layout | None) -> bool:
    """Whether a turn sets nothing and so begins no epoch, as most turns of layout in_place."""
    return (
        layout is _IN_PLACE
        and turn.layout is _IN_PLACE
        and (turn.system, turn.tools, turn.model, turn.rewritten) == _NOTHING_SET
        and not (turn.drop or turn.fold)
    )


def _skim(state: State, past: Sequence[PastTurn], rules: Rules) -> State:
    """Turns of earlier epochs: what was said and what is known; how they were laid out no longer matters."""
    known: dict[str, Artifact] = dict(state.known)
    exchanges = list(state.exchanges)
    attached_at = dict(state.attached_at)
    epoch, turns, head = state.epoch, state.turns, state.head
    for told in past:
        own = turn_rules(rules, told.turn)
        now = with_settings(state, told.turn)
        epoch += state.layout is not None and begins_epoch(state, now, told.turn, rules=own)
        state = now if now.layout is own.layout else replace(now, layout=own.layout)
        known = drop_known(known, told.turn.drop).known if told.turn.drop else known
        user, reply = _say(told, state.conversation, head, place=1 + 2 * len(exchanges), rules=rules)
        comes_with = bool(told.turn.attached or told.turn.results)
        if comes_with:
            attached = gather(told.turn, known).artifacts
            learn_into(known, attached, image_notes=own.image_notes)
            attached_at.update((artifact.id, turns) for artifact in attached)
            state = _restore(state, attached)
        exchanges.append(
            Exchange(user=user, sent=user.message, tools=(), reply=reply, attached=comes_with, number=turns)
        )
        turns, head = turns + 1, reply.id
    return replace(
        state,
        known=known,
        exchanges=tuple(exchanges),
        head=head,
        epoch=epoch,
        turns=turns,
        attached_at=attached_at,
        compacted=None,
    )


def _restore(state: State, attached: Sequence[Artifact]) -> State:
    """What is attached again stands in full again."""
    forms = without(state.forms, [artifact.id for artifact in attached])
    return state if forms is state.forms else replace(state, forms=forms)


def _lay_out(state: State, past: Sequence[PastTurn], rules: Rules) -> State:
    """The turns of the last epoch, laid out as they were sent, without their envelopes."""
    first = past[0].turn
    own = turn_rules(rules, first)
    known = drop_known(state.known, first.drop).known
    now = begin_turn(state, first, own, known=known, attached=gather(first, known).artifacts)
    standing = dict(now.standing)
    exchanges = list(now.exchanges)
    attached_at = dict(now.attached_at)
    system = (1 if now.shelf or any(now.system.named()) else 0) - 2 * now.hidden
    head = now.head
    for turns, told in enumerate(past, start=now.turns):
        place = system + 2 * len(exchanges)
        user, reply = _say(told, state.conversation, head, place=place, rules=rules)
        head = reply.id
        turn = told.turn
        if turn.system is not None:
            # The same text drawn in from other notes begins no epoch, and is the system prompt from here on.
            now = with_settings(now, turn)
        if not turn.attached and not turn.results:
            exchanges.append(Exchange(user=user, sent=user.message, tools=(), reply=reply, number=turns))
            continue
        attached = gather(turn, known).artifacts
        sent, added = _send(attached, user, standing, rules=rules)
        tools = tuple(one for one in added if one.artifact.kind is Kind.TOOL)
        exchanges.append(
            Exchange(user=user, sent=sent, tools=tools, reply=reply, attached=bool(attached), number=turns)
        )
        add_standing(standing, added)
        learn_into(known, attached, image_notes=turn_rules(rules, turn).image_notes)
        attached_at.update((artifact.id, turns) for artifact in attached)
        now = _restore(now, attached)
    return replace(
        now,
        head=head,
        known=known,
        standing=standing,
        exchanges=tuple(exchanges),
        turns=now.turns + len(past),
        attached_at=attached_at,
        compacted=None,
    )


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
    text, measure = told.reply or "", rules.measure
    asked = told.turn.id or turn_id(conversation, parent, told.turn)
    user = make_said(asked, _USER, told.turn.text, place=message_place(place), measure=measure)
    answered = told.reply_id or message_id(conversation, parent=asked, role=_REPLY, text=text)
    return user, make_said(answered, _REPLY, text, place=message_place(place + 1), measure=measure)
