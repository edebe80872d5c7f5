"""Delivery: what sending works with, how patient it is, and how it ends that somebody stopped or that broke."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from msgspec import Struct

from lamella.core.log.call import CacheUse
from lamella.core.messages.delta import Delta
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.engine.sending.deltas import foresee, read_answer
from lamella.engine.sending.editing import AnswerEditor
from lamella.engine.workers import Workers
from lamella.errors import ProviderRefusedError, ProviderRetryError
from lamella.ports import ChatProvider, Clock

STOPPED = "stopped"
BROKEN = "broken"
SILENCE = 120.0
# How many tokens an answer may have where nobody says.
ANSWER = 1_024
# Nobody knows of every model whether it sees; what a server says of a picture that it does not take is its own affair.
_BLIND = " If the model does not see pictures, say so in model_facts (sees = false): it gets words in their place."


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often, and how long between: waits double from ``first`` to ``longest`` seconds, and up to half is added.

    A provider that asks for more than ``at_most`` seconds is not waited for. After ``silence`` seconds in which nothing
    comes, a try has failed.
    """

    tries: int = 4
    first: float = 1.0
    longest: float = 30.0
    at_most: float = 120.0
    silence: float = SILENCE

    def wait(self, number: int, *, asked_for: float | None, jitter: float) -> float:
        """How long to wait before the try of this number; what the provider asks for is the least."""
        doubled: float = min(self.longest, self.first * 2 ** (number - 1))
        return max(asked_for or 0.0, doubled * (1 + jitter / 2))


class Delivery(Struct, frozen=True, kw_only=True):
    """What sending works with. ``sleep`` and ``jitter`` come in, so that nothing here asks the clock or rolls dice.

    What is built, read and written down is done by ``workers``: it never holds up the loop of whoever sends. With a
    ``window``, a request that leaves less of it than the ``answer`` may have is not sent. ``answered`` is called when
    something of an answer has come. ``model`` is who is asked. What it says goes through the ``editor``.
    """

    provider: ChatProvider
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    workers: Workers = msgspec.field(default_factory=Workers)
    patience: RetryPolicy = RetryPolicy()
    answer: int = ANSWER
    window: int | None = None
    answered: Callable[[], None] | None = None
    model: str = ""
    editor: AnswerEditor | None = None


@dataclass(slots=True)
class Attempt:
    """What has come of an answer so far."""

    started: datetime
    deltas: list[Delta] = field(default_factory=list)
    first: float | None = None
    retries: int = 0
    foreseen: CacheUse | None = None


async def hear(
    heard: Attempt, make: Callable[[], Awaitable[Request]], post: Delivery
) -> AsyncGenerator[Delta | tuple[ProviderRetryError, float], None]:
    """What a model answers to a request, tried again where that may help: why, and how long is waited, comes before.

    Whoever hears it keeps what is said: once anything was, nothing is tried again.
    """
    while True:
        try:
            request = await make()
            heard.foreseen = await foresee(post.provider, request)
            async with aclosing(read_answer(post.provider, request)) as coming:
                async for delta in coming:
                    heard.first = tell_seconds(heard.started, post.clock.now()) if heard.first is None else heard.first
                    yield delta
        except ProviderRetryError as error:
            wait = None if heard.deltas else _find_wait(error, heard.retries, post)
            if wait is None:
                raise
            heard.retries += 1
            yield error, wait
            await post.sleep(wait)
        else:
            return


def _find_wait(error: ProviderRetryError, retries: int, post: Delivery) -> float | None:
    """How long to wait before one more try after so many, none where it is enough."""
    patience = post.patience
    if retries + 1 >= patience.tries or (error.wait or 0.0) > patience.at_most:
        return None
    return patience.wait(retries + 1, asked_for=error.wait, jitter=post.jitter())


def tell_blind(error: BaseException, sent: Sequence[Message]) -> None:
    """A refusal of a request with pictures in it may be of those."""
    if type(error) is ProviderRefusedError and any(message.images for message in sent):
        error.hint += _BLIND


def tell_seconds(since: datetime, now: datetime) -> float:
    """How long something took, to a tenth of a millisecond: nobody reads more, and less is written down for it."""
    return round((now - since).total_seconds(), 4)
