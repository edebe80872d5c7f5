"""Sending through Anthropic's own SDK, which is imported when the first message is sent."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from lamella.adapters.providers.anthropic.request import CacheMode, build_request
from lamella.adapters.providers.anthropic.response import MessageFold, read_reply
from lamella.adapters.providers.connection.address import check_connection
from lamella.adapters.providers.connection.bounds import bound_answer, bound_opening
from lamella.adapters.providers.connection.failures import (
    Refusal,
    Target,
    explain_broken,
    explain_no_connection,
    explain_refusal,
    explain_timeout,
    read_wait,
)
from lamella.adapters.providers.connection.rest import read_out
from lamella.adapters.providers.connection.unstreamed import comes_whole, read_batches
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.fields import Fields, as_fields, fields_at, text_at
from lamella.core.messages.delta import Delta, Stop
from lamella.core.messages.request import Request
from lamella.errors import LamellaError, SdkMissingError, tell_install
from lamella.ports import ModelBook

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

PATIENCE = 120.0
_ADDRESS = "https://api.anthropic.com"


class AnthropicProvider:
    """Claude, or whatever speaks its API at an address. ``patience`` is how many seconds of silence are borne."""

    def __init__(
        self,
        *,
        key: str,
        address: str = _ADDRESS,
        patience: float = PATIENCE,
        caching: CacheMode = CacheMode.EXPLICIT,
        models: ModelBook | None = None,
    ) -> None:
        self._key = key
        self._address = address
        self._patience = patience
        self._caching = caching
        self._models = models or BuiltInModels()
        self._client: AsyncAnthropic | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        client = self._open()
        target = Target(
            provider="Anthropic", model=bare_model(request.model), address=self._address, patience=self._patience
        )
        body = build_request(request, self._models.model(request.model), caching=self._caching)
        fold = MessageFold()
        from anthropic import AnthropicError
        from httpx2 import HTTPError

        failures = (AnthropicError, HTTPError, ValueError, RecursionError)
        try:
            async with (
                await client.messages.create(**body, stream=True) as events,
                aclosing(read_batches(events, fold.take, target=target, read=read_reply)) as batches,
            ):
                async for deltas in batches:
                    for delta in deltas:
                        if isinstance(delta, Stop):
                            await read_out(batches, *failures)
                        yield delta
                    # Nothing that belongs to the answer comes after its end, if anything does.
                    if fold.finished or comes_whole(events.response.headers):
                        return
        except failures as error:
            raise explain(error, target) from error
        if not fold.finished:
            raise explain_broken(target, "it ended before its last event")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self) -> "AsyncAnthropic":
        if self._client is None:
            check_connection(provider="Anthropic", key=self._key, address=self._address)
            try:
                from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
            except ImportError as error:
                raise SdkMissingError(
                    "The package anthropic is not installed.", hint=tell_install("anthropic")
                ) from error
            # No redirect is followed: the whole conversation would go where the server says, and the key with it.
            http = DefaultAsyncHttpxClient(event_hooks={"response": [bound_answer]}, follow_redirects=False)
            self._client = AsyncAnthropic(
                api_key=self._key,
                base_url=self._address,
                timeout=self._patience,
                max_retries=0,
                http_client=bound_opening(http),
            )
        return self._client


def explain(error: Exception, target: Target) -> LamellaError:
    """Whatever the SDK or its transport raised, as one of our errors."""
    from anthropic import APIConnectionError, APIStatusError, APITimeoutError
    from httpx2 import ConnectError, TimeoutException

    if isinstance(error, APIStatusError):
        return explain_refusal(_read(error.status_code, error.body, wait=read_wait(error.response.headers)), target)
    if isinstance(error, APITimeoutError | TimeoutException):
        return explain_timeout(target)
    if isinstance(error, APIConnectionError | ConnectError):
        return explain_no_connection(target, error)
    return explain_broken(target, str(error) or type(error).__name__)


def _read(status: int, body: object, *, wait: float | None) -> Refusal:
    fields: Fields = as_fields(body)
    error = fields_at(fields, "error")
    words = text_at(error, "message") or (body if isinstance(body, str) else "")
    return Refusal(status=status, kind=text_at(error, "type"), words=words, wait=wait, spoken=bool(error))
