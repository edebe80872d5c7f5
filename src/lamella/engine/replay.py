"""Replay: a conversation that is already known, walked turn by turn as it would have been sent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lamella.engine.ask import Ask
from lamella.engine.dialogue import Dialogue
from lamella.engine.turn import TurnView


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A turn as asked, when, and the reply it got."""

    asked: Ask
    reply: str
    at: datetime | None


def replay(runner: Dialogue, turns: Iterable[Scripted]) -> Iterator[TurnView]:
    """Each turn as it would have been sent; nothing is kept of a turn once the next is asked for."""
    for scripted in turns:
        yield runner.ask(scripted.asked, at=scripted.at)
        runner.reply(scripted.reply)
