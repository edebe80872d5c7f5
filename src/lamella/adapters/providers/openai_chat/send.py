"""Sending chat completions through OpenAI's own SDK, to OpenAI or to any server that speaks its API."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from lamella.adapters.providers.connection.failures import Target, explain_broken
from lamella.adapters.providers.connection.openai_sdk import ADDRESS, PATIENCE, explain, open_client
from lamella.adapters.providers.connection.unstreamed import comes_whole, read_batches
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.openai_chat.request import build_request
from lamella.adapters.providers.openai_chat.response import CompletionFold, read_reply
from lamella.adapters.providers.registry import bare_model
from lamella.core.messages.delta import Delta
from lamella.core.messages.request import Request
from lamella.ports import ModelBook

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIChatProvider:
    """OpenAI, vLLM, SGLang, llama.cpp, Ollama and others, by address. ``patience`` is the seconds of silence borne."""

    def __init__(
        self, *, key: str, address: str = ADDRESS, patience: float = PATIENCE, models: ModelBook | None = None
    ) -> None:
        # Servers at home mostly want no key, and the SDK wants one.
        self._key = key if key or address == ADDRESS else "none"
        self._address = address
        self._patience = patience
        self._models = models or BuiltInModels()
        self._client: AsyncOpenAI | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        self._client = self._client or open_client(key=self._key, address=self._address, patience=self._patience)
        target = Target(
            provider="The server" if self._address != ADDRESS else "OpenAI",
            model=bare_model(request.model),
            address=self._address,
            patience=self._patience,
        )
        body = build_request(request, self._models.model(request.model))
        fold = CompletionFold()
        begun = whole = False
        from httpx2 import HTTPError
        from openai import OpenAIError

        try:
            sending = self._client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
            async with await sending as chunks:
                begun, whole = True, comes_whole(chunks.response.headers)
                async with aclosing(read_batches(chunks, fold.take, target=target, read=read_reply)) as batches:
                    async for deltas in batches:
                        for delta in deltas:
                            yield delta
        except (OpenAIError, HTTPError, ValueError, RecursionError) as error:
            # What goes wrong after the reason to stop takes nothing from the answer but its usage.
            if not fold.finished:
                raise explain(error, target, begun=begun) from error
        if not fold.finished and not whole:
            raise explain_broken(target, "it ended before its last chunk")
        for delta in fold.end():
            yield delta

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
