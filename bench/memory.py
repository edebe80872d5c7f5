"""What holding a conversation costs beside the bytes of its artifacts."""

import gc
import tracemalloc

from bench.text import NOTE_BYTES, make_notes
from lamella import Conversation

TURNS = 100
NOTES_A_TURN = 100


def measure_memory(layout: str) -> float:
    """Peak memory while 10,000 artifacts are attached and sent, as a multiple of their bytes."""
    gc.collect()
    tracemalloc.start()
    chat = Conversation(system="You are terse.", layout=layout, window=10**12)
    for number in range(1, TURNS + 1):
        turn = chat.ask("What do these say?", attach=make_notes(number, NOTES_A_TURN))
        chat.reply("They say what they say.")
    total = sum(len(message.text) for message in turn.messages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if total < TURNS * NOTES_A_TURN * NOTE_BYTES:
        raise AssertionError(f"only {total:,} characters were sent")
    return peak / (TURNS * NOTES_A_TURN * NOTE_BYTES)
