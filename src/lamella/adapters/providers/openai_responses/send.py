"""Sending responses through OpenAI's own SDK."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from lamella.adapters.providers.connection.failures import Target, explain_broken, explain_refusal
from lamella.adapters.providers.connection.openai_sdk import ADDRESS, PATIENCE, explain, open_client
from lamella.adapters.providers.connection.rest import read_out
from lamella.adapters.providers.connection.unstreamed import comes_whole, read_batches
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.openai_responses.request import build_request
from lamella.adapters.providers.openai_responses.response import ResponseFold, read_reply
from lamella.adapters.providers.registry import bare_model
from lamella.core.messages.delta import Delta, Stop
from lamella.core.messages.request import Request
from lamella.ports import ModelBook

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIResponsesProvider:
    """OpenAI's models through the Responses API. ``patience`` is how many seconds of silence are borne."""

    def __init__(
        self, *, key: str, address: str = ADDRESS, patience: float = PATIENCE, models: ModelBook | None = None
    ) -> None:
        self._key = key
        self._address = address
        self._patience = patience
        self._models = models or BuiltInModels()
        self._client: AsyncOpenAI | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        self._client = self._client or open_client(key=self._key, address=self._address, patience=self._patience)
        target = Target(
            provider="OpenAI", model=bare_model(request.model), address=self._address, patience=self._patience
        )
        body = build_request(request, self._models.model(request.model))
        fold = ResponseFold()
        begun = False
        from httpx2 import HTTPError
        from openai import OpenAIError

        failures = (OpenAIError, HTTPError, ValueError, RecursionError)
        try:
            async with await self._client.responses.create(**body, stream=True) as events:
                begun = True
                async with aclosing(read_batches(events, fold.take, target=target, read=read_reply)) as batches:
                    async for deltas in batches:
                        for delta in deltas:
                            if isinstance(delta, Stop):
                                await read_out(batches, *failures)
                            yield delta
                        # Nothing that belongs to the answer comes after its end, if anything does.
                        if fold.finished or comes_whole(events.response.headers):
                            return
        except failures as error:
            raise explain(error, target, begun=begun) from error
        if fold.failure is not None:
            raise explain_refusal(fold.failure, target)
        if not fold.finished:
            raise explain_broken(target, "it ended before its last event")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
