"""Google's own SDK: opened when the first message is sent, its exceptions turned into ours."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamella.adapters.providers.connection.address import check_connection
from lamella.adapters.providers.connection.bounds import bound_answer
from lamella.adapters.providers.connection.failures import (
    Refusal,
    Target,
    explain_broken,
    explain_no_connection,
    explain_refusal,
    explain_timeout,
    read_wait,
)
from lamella.adapters.providers.connection.unstreamed import check_no_error, comes_whole
from lamella.adapters.providers.wire.fields import as_fields, fields_at, items_at, text_at
from lamella.errors import LamellaError, SdkMissingError, tell_install

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentResponse
    from httpx2 import AsyncClient, Response

ADDRESS = "https://generativelanguage.googleapis.com"
PATIENCE = 120.0
# What the SDK raises where a chunk is JSON and not what it expects.
UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
# Where answers of the request under way are noted. The SDK hands out none, and leaves those nobody reads on open.
_ANSWERS: ContextVar["list[Response] | None"] = ContextVar("answers", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkClient:
    """A client and its connections, which are ours to close."""

    client: "Client"
    http: "AsyncClient"

    async def close(self) -> None:
        await self.client.aio.aclose()
        self.client.close()
        await self.http.aclose()


def open_client(*, key: str, address: str) -> SdkClient:
    """A client that tries nothing twice. Silence is timed by the caller: the SDK's timeout bounds whole answers."""
    check_connection(provider="Gemini", key=key, address=address)
    try:
        from google.genai import Client
        from google.genai.types import HttpOptions, HttpRetryOptions
        from httpx2 import AsyncClient
    except ImportError as error:
        raise SdkMissingError("The package google-genai is not installed.", hint=tell_install("gemini")) from error
    # Without a client of ours the SDK takes aiohttp where that is installed, and raises its exceptions. No redirect is
    # followed: the key would go along.
    http = AsyncClient(timeout=None, event_hooks={"response": [bound_answer, _note]})
    options = HttpOptions(
        base_url=address,
        retry_options=HttpRetryOptions(attempts=1),
        httpx_async_client=http,
    )
    return SdkClient(client=Client(api_key=key, vertexai=False, http_options=options), http=http)


class WholeAnswer(Exception):  # noqa: N818 - it is an answer, if not the one that was asked for
    """An answer that is no stream."""

    def __init__(self, body: bytes) -> None:
        super().__init__("an answer in one piece")
        self.body = body


class Chunks:
    """A stream's chunks, each waited for with patience. Closing it closes the connection."""

    def __init__(self, chunks: "AsyncIterator[GenerateContentResponse]", *, patience: float, target: Target) -> None:
        self._chunks = chunks
        self._patience = patience
        self._target = target
        self._answers: list[Response] = []

    async def read_next(self) -> "GenerateContentResponse | None":
        """The next chunk; none after the last."""
        noted = _ANSWERS.set(self._answers)
        try:
            async with asyncio.timeout(self._patience):
                return await anext(self._chunks, None)
        except WholeAnswer as whole:
            check_no_error(whole.body, self._target)
            raise
        finally:
            _ANSWERS.reset(noted)

    async def close(self) -> None:
        for answer in self._answers:
            await answer.aclose()


async def _note(answer: "Response") -> None:
    answers = _ANSWERS.get()
    if answers is None:
        return
    answers.append(answer)
    if answer.status_code == 200 and comes_whole(answer.headers):
        # The SDK takes such an answer apart line by line, and fails in the middle of it.
        raise WholeAnswer(await answer.aread())


def explain(error: Exception, target: Target, *, begun: bool) -> LamellaError:
    """Whatever the SDK or its transport raised, as one of our errors; ``begun`` once an answer was arriving."""
    from google.genai.errors import APIError
    from httpx2 import HTTPError

    if isinstance(error, APIError):
        return explain_refusal(
            _read(error.code, error.details, headers=getattr(error.response, "headers", None)), target
        )
    if isinstance(error, TimeoutError):
        return explain_timeout(target)
    if isinstance(error, HTTPError) and not begun:
        return explain_no_connection(target, error)
    return explain_broken(target, str(error) or type(error).__name__)


def _read(code: int | None, details: object, *, headers: object) -> Refusal:
    fields = as_fields(details)
    error = fields_at(fields, "error") or fields
    told = items_at(error, "details")
    delay = next((text_at(detail, "retryDelay") for detail in told if text_at(detail, "retryDelay")), "")
    waits = {"retry-after": delay.removesuffix("s")} if delay else {}
    own = headers if isinstance(headers, Mapping) else {}
    return Refusal(
        status=code or 500,
        kind=text_at(error, "status"),
        words=text_at(error, "message"),
        wait=read_wait(waits or own),
        spoken="error" in fields,
    )
