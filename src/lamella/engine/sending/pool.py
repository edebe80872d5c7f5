"""A provider pool: providers opened when the first turn is sent to them, kept, and closed together."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol

from lamella.engine.sending.delivery import Delivery, RetryPolicy
from lamella.engine.workers import Workers
from lamella.ports import ChatProvider, Clock


class ProviderOpener(Protocol):
    """Finds the provider of a model; ``named`` says that whoever runs this named it, not only a conversation."""

    def __call__(self, model: str, *, named: bool) -> ChatProvider: ...


class AnswerWitness(Protocol):
    """Is told each time that a model has answered; ``named`` as for whoever opened its provider."""

    def __call__(self, model: str, *, named: bool) -> None: ...


def _no_check(model: str, *, named: bool) -> None:
    del model, named


def _is_bound(_model: str) -> bool:
    return False


class ProviderPool:
    """Providers by model. One that was given serves every model; ``patience`` is for all of them.

    Connections belong to the event loop that they were opened on. ``roams`` tells of which models the provider may be
    asked by any loop; ``check`` refuses a model that is not to be asked.
    """

    def __init__(
        self,
        open_provider: ProviderOpener,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        jitter: Callable[[], float],
        given: ChatProvider | None = None,
        patience: RetryPolicy | None = None,
        answered: AnswerWitness | None = None,
        check: AnswerWitness = _no_check,
        roams: Callable[[str], bool] = _is_bound,
        answers: Mapping[str, int] | None = None,
    ) -> None:
        self._open_provider = open_provider
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._given = given
        self._patience = patience or RetryPolicy()
        self._answered = answered
        self._check = check
        self.roams = roams
        # How many tokens an answer of a model may have where nobody says; of others as many as is usual.
        self.answers = answers or {}
        # The loop that something was sent from last.
        self._loop: asyncio.AbstractEventLoop | None = None
        self.workers = Workers()
        self._opened: dict[str, ChatProvider] = {}
        self._named: set[str] = set()

    def name(self, model: str | None) -> None:
        """Note a model that the user or the program named, so that keys may go where it stands."""
        if model is not None:
            self._named.add(model)

    def check(self, model: str) -> None:
        """Refuse a model that only somebody else's words name; nothing is opened for that."""
        if self._given is None:
            self._check(model, named=model in self._named)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that providers are used on, while it runs."""
        return self._loop if self._loop is not None and self._loop.is_running() else None

    @asynccontextmanager
    async def lend(self, model: str, *, answer: int) -> AsyncGenerator[Delivery, None]:
        """What sends from a loop that is not that of others: over connections of its own, which are closed again."""
        if self._given is not None or (model in self._opened and self.roams(model)):
            provider = self._opened[model] if self._given is None else self._given
            yield self._make(provider, model, answer=answer, window=None)
            return
        provider = self._open_provider(model, named=model in self._named)
        try:
            yield self._make(provider, model, answer=answer, window=None)
        finally:
            await provider.close()

    def post(self, model: str, *, answer: int, window: int | None = None) -> Delivery:
        """What sending to a model works with; with a window, no answer is asked for that might not fit it."""
        # Whoever makes a post sends from the loop that runs here, if one does.
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        # A provider may have a length, and be empty.
        provider = self._given if self._given is not None else self._find(model)
        return self._make(provider, model, answer=answer, window=window)

    def _make(self, provider: ChatProvider, model: str, *, answer: int, window: int | None) -> Delivery:
        return Delivery(
            provider=provider,
            clock=self._clock,
            sleep=self._sleep,
            jitter=self._jitter,
            workers=self.workers,
            patience=self._patience,
            answer=answer,
            window=window,
            model=model,
            answered=partial(self._answered, model, named=model in self._named) if self._answered else None,
        )

    def _find(self, model: str) -> ChatProvider:
        if model not in self._opened:
            self._opened[model] = self._open_provider(model, named=model in self._named)
        return self._opened[model]

    async def close(self) -> None:
        """Give back what was opened here."""
        while self._opened:
            _, provider = self._opened.popitem()
            await provider.close()


class GuestPool(ProviderPool):
    """A pool for those who are let in: what they name is somebody else's word, and only what was ``named`` here is not.

    So nobody can have a key sent to a place that the person who runs this never named or said yes to.
    """

    def admit(self, model: str) -> None:
        """Let guests ask a model that whoever runs this named."""
        self._named.add(model)

    def name(self, model: str | None) -> None:
        """Nothing: whoever is let in only says it."""

    def post(self, model: str, *, answer: int, window: int | None = None) -> Delivery:
        """What sending to a model works with, once it is known that it may be asked."""
        self.check(model)
        return super().post(model, answer=answer, window=window)
