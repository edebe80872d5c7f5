"""Sending through Google's own SDK, which is imported when the first message is sent."""

from collections.abc import AsyncIterator

from lamella.adapters.providers.connection.failures import Target, explain_broken
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.gemini.request import build_request
from lamella.adapters.providers.gemini.response import ContentFold
from lamella.adapters.providers.gemini.sdk import ADDRESS, PATIENCE, UNREADABLE, Chunks, SdkClient, explain, open_client
from lamella.adapters.providers.gemini.storage import ContentStore
from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.fields import as_fields
from lamella.core.messages.delta import Delta
from lamella.core.messages.request import Request
from lamella.errors import LamellaError, ProviderRefusedError, ProviderRetryError
from lamella.ports import ModelBook


class GeminiProvider:
    """Gemini. ``patience`` is how many seconds of silence are borne; ``store`` makes caches of their own."""

    def __init__(
        self,
        *,
        key: str,
        address: str = ADDRESS,
        patience: float = PATIENCE,
        models: ModelBook | None = None,
        store: ContentStore | None = None,
    ) -> None:
        self._key = key
        self._address = address
        self._patience = patience
        self._models = models or BuiltInModels()
        self._store = store
        self._opened: SdkClient | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        opened = self._opened = self._opened or open_client(key=self._key, address=self._address)
        target = self._target(bare_model(request.model))
        cached = None
        if self._store is not None:
            profile = self._models.model(request.model)
            cached = await self._store.find(opened.client, request, profile=profile, target=target)
        fold = ContentFold()
        from google.genai.errors import APIError
        from httpx2 import HTTPError

        body = build_request(request, cached=cached)
        coming = await opened.client.aio.models.generate_content_stream(**body)
        chunks = Chunks(coming, patience=self._patience, target=target)
        try:
            while (chunk := await chunks.read_next()) is not None:
                for delta in fold.take(as_fields(chunk)):
                    yield delta
        except (APIError, HTTPError, TimeoutError, *UNREADABLE) as error:
            # What goes wrong after the reason to stop takes nothing from the answer.
            if not fold.finished:
                raise await self._explain(error, target, request=request, cached=cached, begun=fold.begun) from error
        finally:
            await chunks.close()
        if not fold.finished:
            raise explain_broken(target, "it ended before its last chunk")
        for delta in fold.end():
            yield delta

    async def close(self) -> None:
        """Delete the caches that were made, then give back connections."""
        opened, self._opened = self._opened, None
        if opened is None and self._store is not None and self._store.pending:
            opened = open_client(key=self._key, address=self._address)
        if opened is None:
            return
        try:
            if self._store is not None:
                await self._store.clear(opened.client, self._target("caches"))
        finally:
            await opened.close()

    def _target(self, model: str) -> Target:
        return Target(provider="Gemini", model=model, address=self._address, patience=self._patience)

    async def _explain(
        self, error: Exception, target: Target, *, request: Request, cached: str | None, begun: bool
    ) -> LamellaError:
        found = explain(error, target, begun=begun)
        if cached and self._store and isinstance(found, ProviderRefusedError) and "cachedcontent" in str(found).lower():
            await self._store.forget(request)
            return ProviderRetryError(str(found), hint="The cache has ended. Send again: a new one is made.", wait=0.0)
        return found
