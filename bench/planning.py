"""What planning a compaction costs beside looking up the token counts of the same messages."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.text import make_text
from lamella import Conversation
from lamella.tokenizers.counter import OfflineTokenCounter

MESSAGES = 2_000
SAMPLES = 15
# Characters: about what people type and models answer in plain chats.
_TYPED = 160
_ANSWERED = 800
# Down to a half only replies leave; down to a twentieth the words of the user leave as well.
SHARES = (0.5, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Median times of a plan and of counting every message from memory, and how many messages the plan takes out."""

    plan_seconds: float
    count_seconds: float
    removed: int

    @property
    def ratio(self) -> float:
        return self.plan_seconds / self.count_seconds


def measure_planning(
    layout: str, *, share_left: float = SHARES[0], messages: int = MESSAGES, samples: int = SAMPLES
) -> Planning:
    """Plan to come down to a share, and count, in turn, so that whatever else the machine does slows both."""
    texts = [make_text(number, _ANSWERED if number % 2 else _TYPED) for number in range(messages)]
    count = OfflineTokenCounter().get_tokenizer(None).count
    total = sum(map(count, texts))
    chat = Conversation(system="You are terse.", layout=layout, window=2 * total, keep_ledger=False)
    for number in range(0, messages, 2):
        chat.ask(texts[number])
        chat.reply(texts[number + 1])
    share = share_left / 2
    plans: list[float] = []
    counts: list[float] = []
    for _ in range(samples):
        plans.append(_time(lambda: chat.plan(share)))
        counts.append(_time(lambda: [count(text) for text in texts]))
    receipt = chat.plan(share).receipt
    return Planning(
        plan_seconds=statistics.median(plans),
        count_seconds=statistics.median(counts),
        removed=sum(len(step.removed) for step in receipt.steps) if receipt else 0,
    )


def _time(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started
