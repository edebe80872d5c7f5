"""A provider pool: providers opened when the first turn is sent to them, kept, and closed together."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from lamella.engine.sending.sending import Delivery, RetryPolicy
from lamella.engine.workers import Workers
from lamella.ports import ChatProvider, Clock


class ProviderOpener(Protocol):
    """Finds the provider of a model; ``named`` says that whoever runs this named it, not only a conversation."""

    def __call__(self, model: str, *, named: bool) -> ChatProvider: ...


class AnswerWitness(Protocol):
    """Is told each time that a model has answered; ``named`` as for whoever opened its provider."""

    def __call__(self, model: str, *, named: bool) -> None: ...


class ProviderPool:
    """Providers by model. One that was given serves every model; ``patience`` is for all of them."""

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
    ) -> None:
        self._open_provider = open_provider
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._given = given
        self._patience = patience or RetryPolicy()
        self._answered = answered
        self.workers = Workers()
        self._opened: dict[str, ChatProvider] = {}
        self._named: set[str] = set()

    def name(self, model: str | None) -> None:
        """Note a model that the user or the program named, so that keys may go where it stands."""
        if model is not None:
            self._named.add(model)

    def post(self, model: str, *, answer: int, window: int | None = None) -> Delivery:
        """What sending to a model works with; with a window, no answer is asked for that might not fit it."""
        return Delivery(
            # A provider may have a length, and be empty.
            provider=self._given if self._given is not None else self._find(model),
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
