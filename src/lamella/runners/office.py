"""The post office: providers opened when the first turn is sent to them, kept, and closed together."""

from collections.abc import Awaitable, Callable

from lamella.ports import ChatProvider, Clock
from lamella.runners.sending import Post


class PostOffice:
    """Providers by model. One that was given serves every model."""

    def __init__(
        self,
        open_provider: Callable[[str], ChatProvider],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        jitter: Callable[[], float],
        given: ChatProvider | None = None,
    ) -> None:
        self._open_provider = open_provider
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._given = given
        self._opened: dict[str, ChatProvider] = {}

    def post(self, model: str, *, answer: int) -> Post:
        """What sending to a model works with."""
        return Post(
            provider=self._given or self._find(model),
            clock=self._clock,
            sleep=self._sleep,
            jitter=self._jitter,
            answer=answer,
        )

    def _find(self, model: str) -> ChatProvider:
        if model not in self._opened:
            self._opened[model] = self._open_provider(model)
        return self._opened[model]

    async def close(self) -> None:
        """Give back what was opened here."""
        while self._opened:
            _, provider = self._opened.popitem()
            await provider.close()
