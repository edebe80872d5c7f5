"""Retelling: the events of an answer from what is written down of it, for who heard only a part or came later."""

from collections.abc import Iterator, Mapping, Sequence

from lamella.core.log.branch import read_rounds
from lamella.core.log.events.call import read_call
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.nodes import Told
from lamella.core.messages.rounds import ToolRound
from lamella.engine.runs.place import EventPlace, TellingEvent
from lamella.engine.sending.delivery import STOPPED
from lamella.engine.sending.events import Event, EventName

# The run of what is told from the store.
_STORED = "0"


def retell_turn(told: Told, contents: Mapping[str, bytes], *, place: EventPlace | None) -> Sequence[TellingEvent]:
    """What is written down of an answer, after a place in it; the last event is the end, if there was one."""
    done, said = (0, 0) if place is None else (place.round, place.said)
    message = told.message.id
    found: list[TellingEvent] = []
    rounds = read_rounds(told, contents)
    for number, one in enumerate(rounds[done:], start=done):
        heard = said if number == done else 0
        found += [(_place(message, number, heard + shift), event) for shift, event in _retell_round(one, heard)]
    if told.reply is None:
        return _number(found)
    heard = said if done >= len(rounds) else 0
    rest, length = told.reply.text[heard:], len(told.reply.text)
    if rest:
        found.append((_place(message, len(rounds), length), Event(kind=EventName.DELTA, text=rest)))
    event = told.reply.event
    calls = [read_call(call) for call in event.calls] if isinstance(event, ReplyEvent) else []
    end = _place(message, len(rounds), length)
    found += [(end, Event(kind=EventName.USAGE, usage=call.usage)) for call in calls[-1:]]
    return _number([*found, (end, Event(kind=EventName.DONE))])


def was_stopped(told: Told) -> bool:
    """Whether somebody stopped an answer that is written down."""
    event = None if told.reply is None else told.reply.event
    return isinstance(event, ReplyEvent) and any(read_call(call).stop == STOPPED for call in event.calls[-1:])


def _retell_round(one: ToolRound, heard: int) -> Iterator[tuple[int, Event]]:
    """The events of a round, each with how much more was said by then."""
    rest = one.text[heard:]
    if rest:
        yield len(rest), Event(kind=EventName.DELTA, text=rest)
    for call in one.calls:
        yield len(rest), Event(kind=EventName.TOOL, call=call)
    for output in one.outputs:
        yield len(rest), Event(kind=EventName.TOOL, output=output)


def _place(message: str, number: int, said: int) -> EventPlace:
    return EventPlace(message, _STORED, 0, number, said)


def _number(found: Sequence[TellingEvent]) -> list[TellingEvent]:
    return [(place._replace(number=number), event) for number, (place, event) in enumerate(found, start=1)]
