"""Connections to providers: errors, responses that are not streams, limits, and OpenAI's client.

``error_from_response`` translates an error response, and ``connection_error`` and ``timeout_error`` a failed
connection. The exceptions of an SDK are classified by its provider. ``read_delta_batches`` also reads an answer, an
error or a web page that arrives instead of a stream. ``limit_response`` limits the size and the duration of a
response, because SDKs read lines of unlimited length, and some copy the event received so far with every line of it.
"""

import json
import re
from asyncio import get_running_loop, timeout, timeout_at
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lamella.core.messages import Delta, ModelReply, ReasoningDelta, StopDelta, TextDelta
from lamella.errors import (
    AuthenticationError,
    ContextOverflowError,
    InvalidReplyError,
    LamellaError,
    ModelNotFoundError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitError,
    RequestRejectedError,
    SdkNotInstalledError,
    WrongEndpointError,
    install_hint,
)
from lamella.ports import HttpEndpoint
from lamella.providers.entry import validate_key_and_address
from lamella.providers.wire import Fields, as_fields, error_status_at, get_fields_at, get_text_at

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response
    from openai import AsyncOpenAI

_MAX_QUOTE_LENGTH = 500
# The visible text of an HTML page comes after its style sheets, so more than the quoted length has to be searched.
_MAX_PAGE_LENGTH = 256 * 1_024
_HTML_START = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)
# No pattern here reads past the next angle bracket, so that the search takes time linear in the size of the page.
_HTML_TAG = re.compile(r"<[^<>]*>")
_INVISIBLE_ELEMENTS = tuple(
    re.compile(rf"<(/?){name}\b[^<>]*>", re.IGNORECASE) for name in ("style", "script", "title")
)
_OVERFLOW_PHRASES = (
    "prompt is too long",
    "exceed context limit",
    "context_length_exceeded",
    "maximum context length",
    "exceed_context_size",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "context window",
    "request_too_large",
)
_BILLING_PHRASES = ("insufficient_quota", "billing_error")
_BAD_KEY_PHRASES = ("api_key_invalid", "invalid_api_key", "api key not valid")
# Errors inside a stream arrive after the HTTP status 200. Only their kind identifies them.
_STATUS_OF_KIND = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "model_not_found": 404,
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """The recipient of a request, for error messages.

    ``window`` is set if the server reported the size of its context window.
    """

    provider: str
    model: str
    address: str
    timeout: float
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """An error response: its status, the provider's error kind, its message, and how many seconds to wait.

    ``is_api_error`` is whether the body was an error in the format of the provider's API. Otherwise it may be any web
    page.
    """

    status: int
    kind: str = ""
    message: str = ""
    retry_after: float | None = None
    is_api_error: bool = True


def error_from_response(response: ErrorResponse, target: RequestTarget) -> LamellaError:
    """Return the Lamella error for an error response."""
    status = _STATUS_OF_KIND.get(response.kind, 500) if response.status < 300 else response.status
    answered = "with an error" if response.status < 300 else str(status)
    summary = f"{target.provider} answered {answered}" + (
        f": {_shorten_to_one_sentence(response.message)}" if response.message else "."
    )
    description = f"{response.kind} {response.message}".lower()
    if status in (401, 403) or any(sign in description for sign in _BAD_KEY_PHRASES):
        return AuthenticationError(
            summary, hint=f"Check the key for {target.provider}, and that it may use {target.model}."
        )
    # Checked before the status: an empty account can look like a rate limit, and a retry would not help.
    if any(sign in description for sign in _BILLING_PHRASES) or status == 402:
        return RequestRejectedError(
            summary, hint=f"The account with {target.provider} has no credit left. Waiting will not help."
        )
    if status == 413 or (status < 500 and any(sign in description for sign in _OVERFLOW_PHRASES)):
        smaller = f"a window of {target.window} or less" if target.window else "a smaller window"
        return ContextOverflowError(
            summary, hint=f"Attach less, or only some lines of a file; {smaller} makes Lamella shrink earlier."
        )
    if status in (404, 405) or status < 400:
        return _not_found_error(response, target, summary)
    return _error_for_status(status, response, target, text=summary)


def _not_found_error(response: ErrorResponse, target: RequestTarget, text: str) -> LamellaError:
    """Return the error for a redirect, an unknown model or an unknown path."""
    if 300 <= response.status < 400:
        return WrongEndpointError(
            text,
            hint=f"{target.address} leads elsewhere, and no redirect is followed: nothing goes where a server says. "
            "Name the address that it leads to.",
        )
    names_model = response.kind == "model_not_found" or target.model.lower() in response.message.lower()
    if response.is_api_error and names_model:
        return ModelNotFoundError(
            text, hint=f"{target.provider} has no model {target.model} for this key. Check its name."
        )
    return WrongEndpointError(text, hint=f"{target.address} does not speak this API. Check the address.")


def _error_for_status(status: int, response: ErrorResponse, target: RequestTarget, *, text: str) -> LamellaError:
    """Return the error for a remaining status. Most of these can be retried."""
    wait = response.retry_after
    when = f"Try again in {_format_number(wait)} seconds." if wait is not None else "Try again later."
    match status:
        case 429:
            return RateLimitError(text, hint=when, wait=wait)
        case 503 | 529:
            return ProviderOverloadedError(text, hint=when, wait=wait)
        case 408 | 504:
            return ProviderTimeoutError(text, hint=when, wait=wait)
    if status < 500:
        return RequestRejectedError(
            text, hint=f"{target.provider} does not take this request. Mend what its words name."
        )
    return ProviderError(text, hint="This is the provider's doing. Try again, or ask another model.")


def timeout_error(target: RequestTarget) -> LamellaError:
    """Return the error for a provider that sent nothing within the timeout."""
    return ProviderTimeoutError(
        f"{target.provider} sent nothing for {target.timeout:g} seconds.",
        hint="Try again, or raise the timeout for models that think long.",
    )


def connection_error(target: RequestTarget, cause: BaseException) -> LamellaError:
    """Return the error for a connection that could not be established."""
    reason = str(cause.__cause__ or cause) or type(cause).__name__
    return ProviderUnreachableError(
        f"{target.provider} cannot be reached at {target.address}: {_shorten_to_one_sentence(reason)}",
        hint="Check the address, the port and the network.",
    )


def invalid_answer_error(target: RequestTarget, reason: str) -> LamellaError:
    """Return the error for an answer that ends early or is invalid."""
    return InvalidReplyError(
        f"{target.provider} broke off its answer: {_shorten_to_one_sentence(reason)}",
        hint="Ask again. If it persists, something between here and the provider changes answers.",
    )


def unexpected_page_error(target: RequestTarget, body: bytes) -> LamellaError:
    """Return the error for an unrelated page instead of an answer, such as one from a wrong server."""
    content = (
        f"something that is no answer: {_shorten_to_one_sentence(body.decode(errors='replace'))}"
        if body.strip()
        else "nothing."
    )
    return WrongEndpointError(
        f"{target.provider} answered with {content}",
        hint=f"{target.address} does not speak this API. Check the address.",
    )


def unexpected_body_error(target: RequestTarget, body: bytes) -> LamellaError:
    """Return the error for a body without streaming that is not a known kind of answer."""
    return InvalidReplyError(
        f"{target.provider} sent no stream, and what it sent is no answer: {_shorten_to_one_sentence(body.decode(errors='replace'))}",
        hint=f"Check that what answers at {target.address} speaks this API, and that it can stream.",
    )


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the provider's headers ask the client to wait, or None.

    A date in ``retry-after`` is compared with the response's own ``date`` header, if it has one.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    after = headers.get("retry-after")
    seconds = _parse_number(after)
    return seconds if seconds is not None or after is None else _seconds_until(after, headers.get("date"))


def _seconds_until(moment: str, date: str | None) -> float | None:
    try:
        start = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return max((parsedate_to_datetime(moment) - start).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _parse_number(text: str | None) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found < float("inf") else None


def _format_number(number: float) -> str:
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def _shorten_to_one_sentence(message: str) -> str:
    """Return a text shortened to one line that ends a sentence. Of an HTML page only the visible text remains."""
    message = message[:_MAX_PAGE_LENGTH]
    if _HTML_START.match(message):
        message = _HTML_TAG.sub(" ", _remove_invisible_elements(message))
    text = " ".join(message.split())
    text = text if len(text) <= _MAX_QUOTE_LENGTH else f"{text[:_MAX_QUOTE_LENGTH]}…"
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _remove_invisible_elements(page: str) -> str:
    """Remove the content of invisible HTML elements. An element that is never closed loses only its tag."""
    for unseen in _INVISIBLE_ELEMENTS:
        texts, slashes = (parts := unseen.split(page))[::2], parts[1::2]
        closed = len(slashes) - slashes[::-1].index("/") if "/" in slashes else 0
        seen = (slash == "/" or index >= closed for index, slash in enumerate(slashes))
        page = " ".join([texts[0], *(text for text, shown in zip(texts[1:], seen, strict=True) if shown)])
    return page


# Responses that are not streams although a stream was requested.

_UNSTREAMED_TYPES = ("json", "html")


class _Response(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...

    def aread(self) -> Awaitable[bytes]: ...


class EventStream(Protocol):
    """A stream of an SDK's events, with the HTTP response that it reads from."""

    @property
    def response(self) -> _Response: ...

    def __aiter__(self) -> AsyncIterator[object]: ...


def is_response_without_stream(headers: Mapping[str, str]) -> bool:
    """Return whether the content type says that a response is not a stream.

    Only JSON and HTML count. A stream with another wrong content type is read as a stream.
    """
    return any(kind in headers.get("content-type", "").lower() for kind in _UNSTREAMED_TYPES)


async def read_delta_batches(
    stream: EventStream,
    to_deltas: Callable[[Fields], Iterable[Delta]],
    *,
    target: RequestTarget,
    to_reply: Callable[[object], ModelReply | None],
) -> AsyncGenerator[Iterable[Delta], None]:
    """Yield the deltas of each event, or of the whole answer if the response is not a stream.

    ``to_deltas`` converts one event into deltas. ``to_reply`` converts a complete answer into a reply.
    """
    if is_response_without_stream(stream.response.headers):
        yield read_answer_without_stream(await stream.response.aread(), target, to_reply)
        return
    async for event in stream:
        yield to_deltas(as_fields(event))


def read_answer_without_stream(
    body: bytes, target: RequestTarget, to_reply: Callable[[object], ModelReply | None]
) -> Iterator[Delta]:
    """Yield the deltas of an answer that arrived without streaming, or raise the error that the body describes."""
    reply = to_reply(_parse_json_body(body, target))
    if reply is None:
        raise unexpected_body_error(target, body)
    if reply.reasoning:
        yield ReasoningDelta(text=reply.reasoning)
    if reply.text:
        yield TextDelta(text=reply.text)
    yield from reply.calls
    yield reply.usage
    yield StopDelta(reason=reply.stop, id=reply.id, diagnosis=reply.diagnosis, provider_reply=reply.provider_reply)


def raise_body_error(body: bytes, target: RequestTarget) -> None:
    """Raise the error that a body describes which should have been a stream. Always raises."""
    _parse_json_body(body, target)
    raise unexpected_body_error(target, body)


def _parse_json_body(body: bytes, target: RequestTarget) -> Fields:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise unexpected_page_error(target, body) from None
    fields = as_fields(found)
    # Some servers send an empty error field with every answer.
    if fields.get("error"):
        raise error_from_response(_error_from_fields(fields), target)
    return fields


def _error_from_fields(fields: Fields) -> ErrorResponse:
    error = get_fields_at(fields, "error")
    words = get_text_at(error, "message") or get_text_at(fields, "error") or json.dumps(fields["error"])
    status = error_status_at(error, "code")
    code = "" if status else get_text_at(error, "code")
    return ErrorResponse(
        status=status or 200, kind=code or get_text_at(error, "type") or get_text_at(error, "status"), message=words
    )


# Limits on the size and duration of a response.

_Client = TypeVar("_Client", bound="AsyncClient")
_KILOBYTE = 1_024
_MEGABYTE = 1_024 * _KILOBYTE
# Every chunk counts as at least this many bytes, so that an endless stream of one-byte chunks reaches the limit too.
_MIN_COUNTED_BYTES = 64
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")
_EVENT_END = re.compile(rb"\n\r?\n|\r\r")
# Five consecutive line-end characters contain a blank line, whichever line ending the server uses.
_LINE_BREAK_RUN = re.compile(rb"[\r\n]{5,}")
_COMMENT = re.compile(rb"^:[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """The maximum of decompressed bytes and of seconds for a response.

    ``max_event_bytes`` and ``max_event_lines`` limit one event, or a response without streaming. ``max_stream_bytes``
    limits all events together. A reply of 128,000 tokens has 45 MB as events, or 1 MB as a single body.
    ``max_error_bytes`` limits an error response; error messages quote at most a few hundred characters of it.
    ``max_header_seconds`` is how many seconds may pass until a response begins, including the time to send the request.
    It also limits the whole of an error response. It is needed because the timeouts of HTTP clients start again with
    every byte.
    """

    max_event_bytes: int = 4 * _MEGABYTE
    max_event_lines: int = 4_096
    max_stream_bytes: int = 64 * _MEGABYTE
    max_error_bytes: int = 256 * _KILOBYTE
    max_seconds: float = 3_600.0
    max_header_seconds: float = 600.0


class ResponseTooLarge(ValueError):  # noqa: N818 - the name describes the response
    """A response exceeds a limit."""


def limit_response_start(http: _Client, bounds: ResponseLimits = ResponseLimits()) -> _Client:  # noqa: B008 - it is frozen
    """Make an HTTP client wait only ``opening`` seconds for the response headers, however slowly they arrive.

    Changes the given client and returns it.
    """
    send = http.send

    async def send_bounded(request: "Request", **how: Any) -> "Response":  # noqa: ANN401 - passed on to the client
        from httpx2 import ReadTimeout

        try:
            async with timeout(bounds.max_header_seconds):
                return await send(request, **how)
        except TimeoutError as error:
            raise ReadTimeout(
                f"no answer began within {bounds.max_header_seconds:,.0f} seconds", request=request
            ) from error

    setattr(http, "send", send_bounded)  # noqa: B010 - replaces the method of this one client
    return http


async def limit_response(response: "Response", bounds: ResponseLimits = ResponseLimits()) -> None:  # noqa: B008 - it is frozen
    """Make a response stop at its limits. Used as a response hook of an HTTP client, before the body is read.

    Bytes are counted after decompression. Decompressed data arrives at most one megabyte at a time, so a decompression
    bomb is stopped while it expands.
    """
    unpacked, packed = response.aiter_bytes, response.aiter_raw

    def read_packed(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        return _limit_compressed_body(packed(chunk_size), bounds)

    def read(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        if _count_compressions(response) > 1:
            return _reject_double_compression(response)
        parts = unpacked(chunk_size)
        if response.status_code >= 300:
            return _limit_error_body(response, parts, bounds)
        return _limit_body(parts, bounds, in_events=not is_response_without_stream(response.headers))

    # All other methods that read the body call this one. A custom transport would ignore the system's proxy settings.
    setattr(response, "aiter_bytes", read)  # noqa: B010 - replaces the method of this one response
    if _count_compressions(response):
        setattr(response, "aiter_raw", read_packed)  # noqa: B010 - replaces the method of this one response


def _count_compressions(response: "Response") -> int:
    """Return how many compressions the response headers name."""
    named = response.headers.get("content-encoding", "").lower().split(",")
    return sum(packing.strip() not in {"", "identity"} for packing in named)


async def _reject_double_compression(response: "Response") -> AsyncGenerator[bytes, None]:
    """Reject a body that is compressed more than once, without reading it.

    No legitimate server does that. A few kilobytes can contain gigabytes that decompress to nothing and are therefore
    not counted (9 kB took 4 s, 2026-11-18). An error response is read as empty, a successful one raises
    ``ResponseTooLarge``.
    """
    await response.aclose()
    if response.status_code < 300:
        raise ResponseTooLarge("it is packed more than once")
    yield b""


async def _limit_compressed_body(
    parts: AsyncGenerator[bytes, None], bounds: ResponseLimits
) -> AsyncGenerator[bytes, None]:
    """Yield compressed bytes up to the limit. Compressed data may expand to nothing, so it needs a limit too."""
    read = 0
    async with aclosing(parts):
        async for part in parts:
            read += max(len(part), _MIN_COUNTED_BYTES)
            if read > bounds.max_stream_bytes:
                raise ResponseTooLarge(f"it has more than {bounds.max_stream_bytes:,} bytes before they are unpacked")
            yield part


async def _limit_error_body(
    response: "Response", parts: AsyncGenerator[bytes, None], bounds: ResponseLimits
) -> AsyncGenerator[bytes, None]:
    """Yield an error response cut off at its limit: the status and the first words are enough."""
    left = bounds.max_error_bytes
    timed = _limit_time(parts, get_running_loop().time() + bounds.max_header_seconds)
    with suppress(TimeoutError, ResponseTooLarge):
        async with aclosing(parts), aclosing(timed):
            async for part in timed:
                yield part[:left]
                left -= max(len(part), _MIN_COUNTED_BYTES)
                if left <= 0:
                    break
    await response.aclose()


async def _limit_time(parts: AsyncGenerator[bytes, None], deadline: float) -> AsyncGenerator[bytes, None]:
    """Yield parts until ``deadline``, then raise ``TimeoutError``.

    The deadline is also needed for data that decompresses to nothing, because it yields no part that could be counted.
    """
    while True:
        async with timeout_at(deadline):
            part = await anext(parts, None)
        if part is None:
            return
        yield part


async def _limit_body(
    parts: AsyncGenerator[bytes, None], bounds: ResponseLimits, *, in_events: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the body of a successful response, as whole events if it is a stream.

    Raises ``ResponseTooLarge`` at a limit of size or time.
    """
    timed = _limit_time(parts, get_running_loop().time() + bounds.max_seconds)
    events, read = SseBuffer(bounds), 0
    most = bounds.max_stream_bytes if in_events else bounds.max_event_bytes
    async with aclosing(parts), aclosing(timed):
        while True:
            try:
                part = await anext(timed, None)
            except TimeoutError as error:
                raise ResponseTooLarge(f"it took more than {bounds.max_seconds:,.0f} seconds") from error
            if part is None:
                break
            read += max(len(part), _MIN_COUNTED_BYTES)
            # Events within the limits are delivered before the rest is rejected.
            for chunk in events.feed(part) if in_events else (part,):
                yield chunk
            if read > most:
                raise ResponseTooLarge(f"it has more than {most:,} bytes")
    for chunk in events.finish():
        yield chunk


class SseBuffer:
    """Collects the parts of a stream and releases whole events, without comments and superfluous blank lines."""

    def __init__(self, bounds: ResponseLimits) -> None:
        self._bounds = bounds
        self._pending = bytearray()

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Add a part and yield the events that are complete now, as one piece."""
        # A blank line has up to three bytes, two of which may have ended the part before.
        start = max(len(self._pending) - 2, 0)
        self._pending += part
        ends = ((self._pending.rfind(mark, start), mark) for mark in _BLANK_LINES)
        end = max((index + len(mark) for index, mark in ends if index >= 0), default=0)
        whole = bytes(self._pending[:end])
        del self._pending[:end]
        yield from self._split_events(whole)
        if len(self._pending) > self._bounds.max_event_bytes:
            raise ResponseTooLarge(f"it has an event of more than {self._bounds.max_event_bytes:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the remaining bytes after the last part."""
        whole = bytes(self._pending)
        self._pending.clear()
        yield from self._split_events(whole)

    def _split_events(self, data: bytes) -> Iterator[bytes]:
        """Yield events without comments and superfluous blank lines. Raises an error if an event has too many lines."""
        events = _COMMENT.sub(b"", data) if data.startswith(b":") or b"\n:" in data else data
        events = _LINE_BREAK_RUN.sub(b"\n\n", events)
        if max(events.count(b"\n"), events.count(b"\r")) > self._bounds.max_event_lines:
            longest = max(len(event.splitlines()) for event in _EVENT_END.split(events))
            if longest > self._bounds.max_event_lines:
                raise ResponseTooLarge(f"it has an event of more than {self._bounds.max_event_lines:,} lines")
        if events.strip(b"\r\n"):
            yield events


# OpenAI's SDK, for both of its APIs.

OPENAI_API_URL = "https://api.openai.com/v1"
DEFAULT_TIMEOUT = 120.0


def open_openai_client(*, key: str, address: str, timeout: float) -> "AsyncOpenAI":
    """Return a client of OpenAI's SDK without automatic retries."""
    validate_key_and_address(provider="OpenAI's API", key=key, address=address)
    try:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ImportError as error:
        raise SdkNotInstalledError("The package openai is not installed.", hint=install_hint("openai")) from error
    # Redirects are not followed: a server could otherwise send the whole conversation to another server.
    http = DefaultAsyncHttpxClient(event_hooks={"response": [limit_response]}, follow_redirects=False)
    bounded = limit_response_start(http)
    return AsyncOpenAI(api_key=key, base_url=address, timeout=timeout, max_retries=0, http_client=bounded)


def openai_endpoint(*, provider: str, key: str, address: str, api_names: tuple[str, ...]) -> HttpEndpoint:
    """Return the endpoint of a server with an API of OpenAI."""
    validate_key_and_address(provider="OpenAI's API", key=key, address=address)
    return HttpEndpoint(provider, address.rstrip("/"), api_names, {"authorization": f"Bearer {key}"})


def to_lamella_error(error: Exception, target: RequestTarget, *, started: bool) -> LamellaError:
    """Return the Lamella error for an exception of the SDK or its transport.

    ``started`` is whether the answer had already started to arrive.
    """
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

    # The order matters: APITimeoutError is a subclass of APIConnectionError, and both are subclasses of APIError.
    if isinstance(error, APIStatusError):
        return error_from_response(
            _parse_sdk_error(error, status=error.status_code, retry_after=parse_retry_after(error.response.headers)),
            target,
        )
    if isinstance(error, APITimeoutError):
        return timeout_error(target)
    if isinstance(error, APIConnectionError) and not started:
        return connection_error(target, error)
    if isinstance(error, APIError) and not isinstance(error, APIConnectionError):
        return error_from_response(_parse_sdk_error(error, status=200, retry_after=None), target)
    return invalid_answer_error(target, str(error.__cause__ or error) or type(error).__name__)


def _parse_sdk_error(error: Exception, *, status: int, retry_after: float | None) -> ErrorResponse:
    body = getattr(error, "body", None)
    fields = as_fields(body)
    code, kind = get_text_at(fields, "code"), get_text_at(fields, "type")
    # Proxies answer with HTTP 200 and put the real status into the error's code.
    provider_code = error_status_at(fields, "code")
    if status < 300 and provider_code is not None:
        status, code = provider_code, ""
    words = get_text_at(fields, "message") or get_text_at(fields, "detail") or (body if isinstance(body, str) else "")
    return ErrorResponse(
        status=status, kind=code or kind, message=words, retry_after=retry_after, is_api_error="message" in fields
    )
