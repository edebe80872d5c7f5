"""Telling: turns that were said elsewhere, written down as they are. Nothing is sent, read or expanded for them."""

from collections.abc import Sequence

from lamella.core.log.events.codec import join_written, write_message, write_reply
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.log import Log
from lamella.core.log.records import Written
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.text.content import normalise
from lamella.core.values import replace
from lamella.engine.keeping.backend import ChatRules
from lamella.engine.keeping.lasting import PART_SETTINGS
from lamella.errors import CallError

Said = tuple[str, str]


def write_said(log: Log, said: Sequence[Said], *, rules: ChatRules, at: str) -> Written:
    """Questions with their answers after the last message; the first of a conversation has what settings give it."""
    head = log.head
    if head and log.nodes[head].role is Voice.USER:
        raise CallError("A question waits for its answer.", hint="Have it answered first, or go back to an answer.")
    parts: list[Written] = []
    for asked, answered in said:
        text = normalise(asked)
        turn = Turn(text=text, typed=text, terms=rules.terms)
        turn = turn if head else replace(turn, model=rules.model, system=_give_system(rules))
        question = turn_id(log.conversation, head, turn)
        reply = normalise(answered)
        parts.append(write_message(turn, message_id=question, parent=head, at=at))
        head = message_id(log.conversation, parent=question, role=Voice.REPLY, text=reply)
        parts.append(write_reply(reply, message_id=head, parent=question, at=at))
    return join_written(*parts)


def _give_system(rules: ChatRules) -> SystemParts | None:
    given = {name: normalise(text) for name, text in rules.parts(PART_SETTINGS).items()}
    # What its templates mean is found out when it is sent.
    return SystemParts(**given, inlined=(), typed_instructions=given.get("instructions", "")) if given else None
