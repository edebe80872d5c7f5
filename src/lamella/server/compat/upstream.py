"""Requests to the HTTP API of a provider, and the responses as they come.

``UpstreamClient`` sends bodies with the operator's key and returns a response as soon as its status is known. Only
headers on a list pass in either direction. Redirects are not followed, because a server could otherwise send a
conversation and the key somewhere else.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lamella
from lamella.errors import (
    InvalidReplyError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    SdkNotInstalledError,
    install_hint,
)
from lamella.ports import HttpEndpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

_CONNECT_SECONDS = 20.0
# Models that think for long send nothing meanwhile.
_SILENCE_SECONDS = 600.0
_MAX_ERROR_BYTES = 262_144
_MAX_BODY_BYTES = 268_435_456
_FIRST_ERROR_STATUS = 300
_REQUEST_HEADERS = (
    "anthropic-version", "anthropic-beta", "openai-organization", "openai-project", "openai-beta", "session-id",
    "session_id", "thread-id", "x-client-request-id", "x-session-id", "conversation_id", "originator",
)  # fmt: skip
_REQUEST_HEADER_PREFIXES = ("x-codex-", "x-claude-code-")
_RESPONSE_HEADERS = (
    "content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry",
    "openai-processing-ms", "openai-version", "openai-model",
)  # fmt: skip
_RESPONSE_HEADER_PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-", "x-codex-")


@dataclass(slots=True)
class UpstreamResponse:
    """A response of which the status and the headers have arrived."""

    status: int
    headers: dict[str, str]
    response: "Response"

    @property
    def is_error(self) -> bool:
        """Return whether the upstream refused the request."""
        return self.status >= _FIRST_ERROR_STATUS

    @property
    def is_stream(self) -> bool:
        """Return whether the body is a stream of events."""
        return "event-stream" in self.headers.get("content-type", "").lower()

    async def iter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives; raises a provider error if the connection breaks."""
        from httpx2 import HTTPError, StreamError, TimeoutException

        # Compressed bytes are unpacked, because the header that names the compression is not passed on.
        packed = self.response.headers.get("content-encoding", "identity") != "identity"
        parts = self.response.aiter_bytes() if packed else self.response.aiter_raw()
        size = 0
        try:
            async for part in parts:
                size += len(part)
                if size > _MAX_BODY_BYTES:
                    raise InvalidReplyError("The provider's answer is too large.", hint="Ask for less at once.")
                yield part
        except TimeoutException as error:
            raise _timeout_error() from error
        except (HTTPError, StreamError, OSError) as error:
            raise InvalidReplyError(
                f"The provider broke off its answer: {type(error).__name__}.", hint="Send the request again."
            ) from error
        finally:
            await self.close()

    async def read(self, *, limit: int = _MAX_BODY_BYTES) -> bytes:
        """Return the whole body, cut off at a limit."""
        parts, size = [], 0
        async for part in self.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > limit:
                break
        return b"".join(parts)[:limit]

    async def read_error(self) -> bytes:
        """Return the beginning of the body of an error."""
        with suppress(InvalidReplyError, ProviderTimeoutError):
            return await self.read(limit=_MAX_ERROR_BYTES)
        return b""

    async def close(self) -> None:
        await self.response.aclose()


class UpstreamClient:
    """Sends requests to the APIs of providers over connections that are reused."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None

    async def send(
        self,
        endpoint: HttpEndpoint,
        path: str,
        body: bytes | None,
        *,
        method: str = "POST",
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> UpstreamResponse:
        """Send a request and return the response when its status is known.

        ``headers`` are those of the client, of which only those on the list are sent.
        """
        from httpx2 import HTTPError, InvalidURL, TimeoutException

        client = self._get_client()
        sent = {**select_request_headers(headers or {}), **_choose_api_version_headers(endpoint, headers or {})}
        address = f"{endpoint.base_url}{path}" + (f"?{query}" if query else "")
        request = client.build_request(method, address, content=body, headers=sent)
        try:
            async with asyncio.timeout(_SILENCE_SECONDS):
                response = await client.send(request, stream=True)
        except (TimeoutException, TimeoutError) as error:
            raise _timeout_error() from error
        except (HTTPError, InvalidURL, OSError) as error:
            raise ProviderUnreachableError(
                f"{endpoint.provider} cannot be reached at {endpoint.base_url}: {type(error).__name__}.",
                hint="Check the address, the port and the network of the server.",
            ) from error
        return UpstreamResponse(response.status_code, select_response_headers(response.headers), response)

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _get_client(self) -> "AsyncClient":
        if self._client is None:
            try:
                from httpx2 import AsyncClient, Limits, Timeout
            except ImportError as error:
                raise SdkNotInstalledError("The package httpx2 is not installed.", hint=install_hint("web")) from error
            self._client = AsyncClient(
                timeout=Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
                limits=Limits(max_connections=None, max_keepalive_connections=100),
                follow_redirects=False,
                headers={"user-agent": f"lamella/{lamella.__version__}", "accept-encoding": "identity"},
            )
        return self._client


def _choose_api_version_headers(endpoint: HttpEndpoint, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an endpoint; the client's version of the API counts if it names one."""
    own = {"content-type": "application/json", **endpoint.headers}
    return {**own, "anthropic-version": headers["anthropic-version"]} if _has_api_version(own, headers) else own


def _has_api_version(own: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    return "anthropic-version" in own and bool(headers.get("anthropic-version"))


def select_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a client that an upstream may see; its key is none of them."""
    return {
        name: value
        for name, value in headers.items()
        if _is_forwarded(name, _REQUEST_HEADERS, _REQUEST_HEADER_PREFIXES)
    }


def select_response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an upstream that a client gets."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: value
        for name, value in named.items()
        if _is_forwarded(name, _RESPONSE_HEADERS, _RESPONSE_HEADER_PREFIXES)
    }


def _is_forwarded(name: str, names: tuple[str, ...], prefixes: tuple[str, ...]) -> bool:
    return name in names or name.startswith(prefixes)


def _timeout_error() -> ProviderTimeoutError:
    return ProviderTimeoutError(
        f"The provider sent nothing for {_SILENCE_SECONDS:g} seconds.", hint="Send the request again."
    )
