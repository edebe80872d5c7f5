"""Replay: a conversation that is already known, walked turn by turn as it would have been sent."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from lamella.core.log.turn import Turn
from lamella.core.messages.rounds import ToolRound
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.rounds import is_skipped, reopen_round
from lamella.engine.dialogue.turn import TurnView


class ScriptedTurn(Struct, frozen=True, kw_only=True):
    """A turn as asked, or as it was read then, when, what its tools were called for and gave, and the reply it got."""

    asked: Ask | Turn
    reply: str
    at: datetime | None
    rounds: tuple[ToolRound, ...] = ()


def replay(dialogue: Dialogue, turns: Iterable[ScriptedTurn]) -> Iterator[TurnView]:
    """Each turn as it would have been sent; nothing is kept of a turn once the next is asked for."""
    for scripted in turns:
        yield _play(dialogue, scripted)
        dialogue.reply(scripted.reply)


def _play(dialogue: Dialogue, scripted: ScriptedTurn) -> TurnView:
    """The last request of a turn: the one after all its rounds of tools that were not given up."""
    asked = scripted.asked
    # A history that was rewritten before a turn began an epoch then, and does again.
    rewritten = asked.rewritten if isinstance(asked, Turn) else None
    first = turn = dialogue.ask(asked, at=scripted.at, rewritten=rewritten)
    for one in scripted.rounds:
        said = reopen_round(one)
        dialogue.reply(Answer(reply=said), at=scripted.at)
        if is_skipped(one):
            dialogue.take(one.outputs, at=scripted.at)
        else:
            turn = dialogue.give(one.outputs, at=scripted.at)
    if turn is not first:
        # What a turn moved it moved with its first request, and what was compacted for any of them was for the turn.
        turn.page.entry = replace(turn.ledger, prefix=first.prefix)
        turn = replace(turn, compaction=turn.compaction or first.compaction)
    return turn
