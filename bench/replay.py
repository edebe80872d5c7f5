"""How the time to replay a conversation grows beside the bytes that its requests send."""

import math
import time
from dataclasses import dataclass

from lamella import Conversation

AT_TURNS = (500, 4_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A conversation of small talk: its turns, the bytes of all its requests, and the CPU time to build them."""

    turns: int
    sent_bytes: int
    seconds: float


def measure_replay(turns: int, layout: str) -> Replayed:
    """Build every turn of a conversation from its first, each request rendered whole, with the ledger on."""
    chat = Conversation(system="You are terse.", layout=layout, window=10**12)
    sent = history = 0
    started = time.process_time()
    for number in range(turns):
        question, reply = f"Question {number}: and what then?", f"Answer {number}: then the next thing."
        chat.ask(question)
        chat.reply(reply)
        history += len(question)
        sent += history
        history += len(reply)
    return Replayed(turns=turns, sent_bytes=sent, seconds=time.process_time() - started)


def replay_slope(short: Replayed, long: Replayed) -> float:
    """How the time grows with the bytes sent, on logarithmic scales; 1 is in proportion."""
    return math.log(long.seconds / short.seconds) / math.log(long.sent_bytes / short.sent_bytes)
