"""Replay: a conversation that is already known, walked turn by turn as it would have been sent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lamella.core.prompt.asked import Asked
from lamella.engine.turn import Turn
from lamella.engine.turns import TurnRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A turn as asked, when, and the reply it got."""

    asked: Asked
    reply: str
    at: datetime | None


def replay(runner: TurnRunner, turns: Iterable[Scripted]) -> Iterator[Turn]:
    """Each turn as it would have been sent; nothing is kept of a turn once the next is asked for."""
    for scripted in turns:
        yield runner.ask(scripted.asked, at=scripted.at)
        runner.reply(scripted.reply)
