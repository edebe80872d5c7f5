"""The last turn of a branch: when it was asked, who answered it, what was sent for it, and how it is left."""

from collections.abc import Sequence
from datetime import datetime

from lamella.core.log.branch import read_calls, read_time
from lamella.core.log.events.message import MessageEvent, TurnSetup
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.terms import leaves_open
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, ToldSpan, list_spans
from lamella.core.log.terms import Layout, Terms
from lamella.engine.dialogue.world import SentTurn

_PAIR = 2
_USUAL = Terms()


def find_sent(told: Sequence[Told], log: Log) -> SentTurn:
    """What is known of the last turn of a branch, and of the request that was sent last, on whatever branch."""
    asked = log.nodes.get(log.last_sent[0])
    question = None if asked is None else asked.question
    return SentTurn(
        asked_at=read_time(told[-1].message) if told else None,
        answered_by=_find_answer(told),
        pause=_find_pause(told),
        imprint=None if question is None else question.imprint,
        kept=_find_kept(told, log),
    )


def _find_kept(told: Sequence[Told], log: Log) -> tuple[datetime, ...]:
    """When the last request was sent again since it was answered, so that a cache keeps it."""
    reply = told[-1].reply if told else None
    after = () if reply is None else log.asides.get(reply.id, ())
    return tuple(datetime.fromisoformat(one.started) for one in after if one.started)


def _find_answer(told: Sequence[Told]) -> str | None:
    """The provider's name for the last answer there is, before any questions that were left without one."""
    for turn in reversed(told):
        calls = read_calls(turn)
        if calls or (turn.reply is not None and turn.reply.text):
            return calls[-1].id if calls else None
    return None


def _find_pause(told: Sequence[Told]) -> float | None:
    """How long before the turn that waits the one before it was asked."""
    if len(told) < _PAIR or told[-1].reply is not None:
        return None
    earlier, later = read_time(told[-2].message), read_time(told[-1].message)
    return (later - earlier).total_seconds() if earlier and later else None


def find_model(told: Sequence[Told]) -> str | None:
    """The model that holds, from the events alone: to know it, no content has to be read."""
    for part in reversed(list_spans(told)):
        # Turns that only talk name none.
        named = part if isinstance(part, ToldSpan) else part.message.event if isinstance(part, Told) else None
        if isinstance(named, ToldSpan | MessageEvent) and named.model:
            return named.model
    return None


def find_runner(log: Log) -> str | None:
    """How the last question of the active branch is answered; none where nothing was asked yet."""
    last = log.nodes.get(log.head)
    if last is None:
        return None
    asked = log.nodes[last.event.parent].event if isinstance(last.event, ReplyEvent) else last.event
    # Nearly every turn asks this, and settling all of its terms for it would be the longer way.
    given = getattr(asked, "runner", None)
    return given if isinstance(given, str) else _USUAL.runner


def find_layout(log: Log) -> Layout | None:
    """The layout that a conversation was asked in last; none where nothing was asked, or the terms were left open."""
    last = log.nodes.get(log.head) or next(iter(log.nodes.values()), None)
    if last is None:
        return None
    asked = log.nodes[last.event.parent].event if isinstance(last.event, ReplyEvent) else last.event
    if isinstance(given := getattr(asked, "layout", None), Layout):
        return given
    # Another program's turns go on under the settings; the first events left out what was usual then.
    return None if leaves_open(asked) else _USUAL.layout


def name_empty(log: Log, message: str) -> str:
    """The id that the empty reply to a message has, if that is a question."""
    node = log.nodes.get(message)
    if node is None or not isinstance(node.event, MessageEvent):
        return ""
    return message_id(log.conversation, parent=node.event.id, role=Voice.REPLY, text="")


def left_path(log: Log, message: str) -> Sequence[Told]:
    """The turns that one asked after a message follows: a question that has its empty reply is left with that."""
    empty = name_empty(log, message)
    return log.path(empty if empty in log.nodes else message)


def find_lasting(log: Log) -> TurnSetup:
    """What holds for the next turn although no turn that it follows says so, where a question is left once more.

    It may be asked otherwise now than it was when it was left before.
    """
    asked = log.path()[-1].message.event
    return log.left.over(asked.lasting) if isinstance(asked, MessageEvent) else log.left
