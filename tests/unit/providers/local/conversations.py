"""A stored conversation with attachments and an edit, for the embedded model.

Run as a program it goes on with a conversation that another process left, and prints what was forecast and reported.
"""

import asyncio
import json
import sys
from collections.abc import Sequence

from bench.local import LocalAnswer, Served, Talker

import lamella
from lamella import Conversation, Note
from lamella.core.log.call import PrefixChange

CHAT = "harbour"
TIDES = "High tide is at noon. Low tide is at six. " + "The water rises for six hours, then it falls again. "
SHIPS = "The Anna sails on Monday. The Bertha stays in the dock. " + "Each has a crew of ten and a cook. "
EARLY = (
    LocalAnswer(typed="When is high tide?", notes=(Note(path="tides.md", text=TIDES),)),
    LocalAnswer(typed="And low tide?"),
    LocalAnswer(typed="Which ship sails?", notes=(Note(path="ships.md", text=SHIPS),)),
    LocalAnswer(typed="Which one stays?"),
    LocalAnswer(typed="And now?", notes=(Note(path="tides.md", text=TIDES.replace("noon", "one")),)),
    LocalAnswer(typed="Are you sure?"),
)
LATE = (LocalAnswer(typed="Say it again."), LocalAnswer(typed="Thanks."))


async def talk(chat: Conversation, turns: Sequence[LocalAnswer]) -> tuple[list[Served], list[PrefixChange]]:
    """Ask a fresh engine, and answer with what it says."""
    talker, movements = Talker(window=1_024), list[PrefixChange]()
    for message in turns:
        turn = chat.ask(message.typed, attach=message.notes)
        movements.append(turn.prefix_change.prefix_change)
        chat.reply(await talker.say(turn.messages, answer=4))
    await talker.close()
    return talker.served, movements


def main(store: str) -> None:
    with lamella.open(store) as engine:
        served, movements = asyncio.run(talk(engine.chat(CHAT), LATE))
    told = [[one.forecast.prompt_tokens, one.forecast.cached_tokens, one.prompt, one.cached] for one in served]
    sys.stdout.write(json.dumps({"served": told, "moved": [str(movement) for movement in movements]}))


if __name__ == "__main__":
    main(sys.argv[1])
