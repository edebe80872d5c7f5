"""Playing a conversation and watching its requests: what breaks the prefix, what stands alone, what it costs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.workloads import Workload, WorkloadMessage
from lamella import Conversation, Message, Turn

READ_PRICE = 0.1
WRITE_PRICE = 1.25
SHIPPED_WARN = 0.60
SHIPPED_TARGET = 0.40
FORMER_TARGET = 0.70

_RESULT = re.compile(r"<tool_result>(.*?)</tool_result>\n", re.DOTALL)
_CALL = re.compile(r"[^\n]+\([^\n]*\)\n")
_LOOSE = re.compile(r"</?tool_result>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All requests of a conversation. ``sent`` and ``read`` in tokens: read is shared with the request before."""

    requests: int
    breaks: int
    orphans: int
    compactions: int
    sent: int
    read: int
    first: int
    last: int

    @property
    def breaks_per_100(self) -> float:
        return 100 * self.breaks / self.requests

    @property
    def cost(self) -> float:
        """In tokens at the list price: what is read from the cache costs a tenth, what is written a quarter more."""
        return READ_PRICE * self.read + WRITE_PRICE * (self.sent - self.read)


def play(workload: Workload, *, layout: str, window: int = 10**12, target: float = SHIPPED_TARGET) -> Played:
    """Ask and answer everything; without a window nothing is ever taken out."""
    warn = min(SHIPPED_WARN, target - 0.05)
    chat = Conversation(system=workload.system, layout=layout, window=window, reserve=0, warn=warn, target=target)
    turns: list[Turn] = []
    for message in workload.said:
        turns.append(chat.ask(message.typed, results=message.tools))
        chat.reply(message.reply)
    return Played(
        requests=len(turns),
        breaks=sum(not extends(before.messages, now.messages) for before, now in pairwise(turns)),
        orphans=sum(any(find_orphans(turn.messages, workload.said)) for turn in turns),
        compactions=sum(turn.compaction is not None for turn in turns),
        sent=sum(turn.tokens.total for turn in turns),
        read=sum(turn.prefix_change.common_tokens or 0 for turn in turns),
        first=turns[0].tokens.total,
        last=turns[-1].tokens.total,
    )


def extends(before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Whether a request begins with all of the one before it, byte for byte."""
    return len(before) <= len(now) and all(
        old.to_dict() == new.to_dict() for old, new in zip(before, now, strict=False)
    )


def find_orphans(messages: Sequence[Message], said: Sequence[WorkloadMessage]) -> Iterator[str]:
    """What of a request's tool results lacks its call, its other end, or the question it came with."""
    askers = [one.typed for one in said if one.tools]
    for message in messages:
        text = message.text
        for block in _RESULT.findall(text):
            if not _CALL.match(block) or not any(text.endswith(f"\n{typed}") for typed in askers):
                yield block
        yield from _LOOSE.findall(_RESULT.sub("", text))
