"""Security of the server: body limits, access tokens, host and origin checks, rate limits and timeouts.

``RequestGuard`` is the middleware through which every request goes: it is checked, admitted or rejected, and logged.
``authenticate`` returns the caller of a request by its access token. ``TimeLimitedConnection`` closes connections on
which headers do not arrive or a response is not read in time.

A foreign web page can make a browser send requests to this machine, from its own origin (CSRF) or under a domain that
it points at this machine (DNS rebinding). So the host name must be a known one, and the origin must be this server or
an allowed one.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable, Collection
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lamella.errors import (
    BadInputError,
    NotAuthenticatedError,
    OriginNotAllowedError,
    RequestTimeoutError,
    RequestTooLargeError,
    TooManyRequestsError,
    UnsupportedEncodingError,
)
from lamella.server.caching import add_etag_and_compress, may_compress
from lamella.server.errors import error_headers, error_status_and_body
from lamella.server.observability import log_request
from lamella.server.page import load_static_files
from lamella.server.sessions import has_session_cookie
from lamella.server.state import OPERATOR, Caller, ServerState
from lamella.settings.tokens import TOKEN_PREFIX


def check_body_headers(headers: Headers, *, max_bytes: int) -> None:
    """Raise an error for a compressed body, or one whose declared length is too large."""
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise UnsupportedEncodingError(
            f"A body in {encoding[:20]!a} is not read.", hint="Send it as it is, uncompressed."
        )
    length = headers.get("content-length", "0")
    # Cut to 18 digits, because int() raises ValueError for numbers with thousands of digits.
    if length.isdecimal() and int(length[:18]) > max_bytes:
        raise _too_large_error(max_bytes)


async def buffer_request_body(receive: Receive, *, max_bytes: int, seconds: float) -> Receive:
    """Read the whole body within the limits, and return a ``receive`` function that replays it.

    After the body, that function passes on further messages, so that the application notices a disconnect.
    """
    parts: list[Message] = []
    left = max_bytes
    try:
        async with asyncio.timeout(seconds):
            while not parts or parts[-1].get("more_body", False):
                parts.append(await receive())
                left -= len(parts[-1].get("body", b""))
                if left < 0:
                    raise _too_large_error(max_bytes)
    except TimeoutError as error:
        raise RequestTimeoutError(
            f"The request did not arrive within {seconds:g} s.", hint="Send it again, or in smaller parts."
        ) from error
    parts.reverse()

    async def give() -> Message:
        return parts.pop() if parts else await receive()

    return give


def _too_large_error(max_bytes: int) -> RequestTooLargeError:
    return RequestTooLargeError(f"The request has more than {max_bytes:,} bytes.", hint="Send less at once.")


# Access tokens.

_TOKEN_HINT = (
    "Send it as `Authorization: Bearer …`; whoever runs the server gives tokens out with `lamella tokens add`."
)


def bearer_token(headers: Headers) -> str | None:
    """Return the token in ``Authorization`` or ``x-api-key``, the two headers that clients use, or None."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and given.strip():
        return given.strip()
    return headers.get("x-api-key")


def authenticate(headers: Headers, state: ServerState) -> Caller:
    """Return the caller of a request; raises ``NotAuthenticatedError`` for a missing or unknown token.

    If the server needs no token, a key without Lamella's prefix is ignored: many clients must send some key. Browsers
    that logged in send the cookie of their session instead of a token.
    """
    token = bearer_token(headers)
    if token is not None and (state.needs_token or token.startswith(TOKEN_PREFIX)):
        kept = state.tokens.find_by_token(token)
        if kept is None:
            raise NotAuthenticatedError("Invalid access token.", hint=_TOKEN_HINT)
        return Caller(name=kept.name, owner=kept.owner, scope=kept.scope)
    if not state.needs_token:
        return OPERATOR
    session = state.sessions.find_session(headers, state.tokens)
    if session is None:
        raise NotAuthenticatedError("A token is needed here.", hint=_TOKEN_HINT)
    return Caller(name=session.token.name, owner=session.token.owner, scope=session.token.scope)


def is_still_authenticated(headers: Headers, state: ServerState) -> bool:
    """Return whether a request would be let in now: its token may have been removed, or its session ended."""
    try:
        authenticate(headers, state)
    except NotAuthenticatedError:
        return False
    return True


# Host names and origins.

_HOST_HINT = "Whoever runs the server lists its names as `hosts` in the setting `serve`."
_ORIGIN_HINT = "Whoever runs the server lists pages that may ask as `origins` in the setting `serve`."


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Raise ``OriginNotAllowedError`` for a request to a host name that this server does not have."""
    given = headers.getlist("host")
    name = _strip_port(given[0].lower()) if len(given) == 1 else ""
    if name not in hosts:
        raise OriginNotAllowedError("This server is not called by that name.", hint=_HOST_HINT)


def check_origin(headers: Headers, hosts: Collection[str], origins: Collection[str]) -> None:
    """Raise ``OriginNotAllowedError`` for a request of a web page from another origin that is not allowed.

    Programs other than browsers send no origin.
    """
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
            raise OriginNotAllowedError("A page of another origin asks.", hint=_ORIGIN_HINT)
        return
    try:
        own = (urlsplit(origin).netloc or "-").lower() == headers.get("host", "").lower()
    except ValueError:
        own = False
    if not own and origin.lower().rstrip("/") not in origins:
        raise OriginNotAllowedError("A page of another origin asks.", hint=_ORIGIN_HINT)


def has_own_origin(headers: Headers) -> bool:
    """Return whether a browser states that a page of this server asks."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _strip_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


# Rate limits, within one process.

_SECONDS_PER_MINUTE = 60.0
# How many callers to remember. Beyond that, the one that was idle longest is forgotten and has a full bucket again.
_MAX_TRACKED_CALLERS = 10_000


class RateLimits:
    """A token bucket per caller that refills at a rate per minute."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        self._per_minute = float(per_minute)
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count_request(self, caller: str) -> None:
        """Count a request of a caller; raises ``TooManyRequestsError`` if the bucket is empty."""
        left = self._requests_left(caller)
        if left < 1:
            raise self._too_many_requests_error(left)
        self._set_tokens(caller, left - 1)

    def _requests_left(self, caller: str) -> float:
        left, at = self._buckets.get(caller, (self._per_minute, self._now()))
        return min(self._per_minute, left + (self._now() - at) * self._per_minute / _SECONDS_PER_MINUTE)

    def _set_tokens(self, caller: str, tokens: float) -> None:
        self._buckets[caller] = (tokens, self._now())
        self._buckets.move_to_end(caller)
        while len(self._buckets) > _MAX_TRACKED_CALLERS:
            self._buckets.popitem(last=False)

    def _too_many_requests_error(self, tokens: float) -> TooManyRequestsError:
        wait = (1 - tokens) * _SECONDS_PER_MINUTE / self._per_minute
        return TooManyRequestsError(
            f"More than {self._per_minute:,.0f} requests came within a minute.",
            hint=f"Wait {max(1, round(wait))} s.",
            wait=wait,
        )


# The request guard.

# Paths without a token, so that a process manager can ask whether the server is up. They reveal nothing else.
PUBLIC_PATHS = ("/healthz", "/readyz")
# Whoever is not logged in may ask about that.
SESSION_PATH = "/v1/session"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RequestGuard:
    """Middleware that checks host, origin, token, rate and size of a request, then adds headers and a log line."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state
        self._static_files = load_static_files()
        self._rate_limits = RateLimits(state.settings.rate)
        self._token_guess_limits = RateLimits(state.settings.guesses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_write = scope["method"] not in _SAFE_METHODS
        answer = _ObservedResponse(
            send,
            Headers(scope=scope),
            method=scope["method"],
            allowed_origin=self._allowed_origin(Headers(scope=scope)),
        )
        begun = perf_counter()
        # Only for the log line, if the request is rejected before its caller is known.
        name = "?"
        try:
            caller = self._authorize(scope)
            name = "?" if caller is None else caller.name
            rules = self._state.settings
            body = await buffer_request_body(receive, max_bytes=rules.body_bytes, seconds=rules.body_seconds)
            scope["lamella.caller"] = caller
            # Once a write is answered, other pages see it at once: the question of a turn, and at the end its answer.
            answer.on_start = self._state.hub.poll_now if is_write else None
            await self._app(scope, body, answer.send)
            if is_write:
                self._state.hub.poll_now()
        except Exception as error:
            # Once the response has started, its status cannot change any more.
            if answer.status:
                raise
            status, content = error_status_and_body(error, scope["path"])
            await JSONResponse(content, status, headers=error_headers(error))(scope, receive, answer.send)
        finally:
            log_request(scope, answer.status, name, seconds=perf_counter() - begun, metrics=self._state.metrics)

    def _authorize(self, scope: Scope) -> Caller | None:
        """Check everything but the body of a request, and return its caller.

        None is somebody who is not logged in and asks about that, or logs in.
        """
        headers, rules = Headers(scope=scope), self._state.settings
        check_host(headers, self._state.hosts)
        if scope["path"] in self._static_files and scope["method"] in ("GET", "HEAD"):
            # The page has nothing of anybody's, and a link on another page may lead to it.
            return OPERATOR
        check_origin(headers, self._state.hosts, [one.lower().rstrip("/") for one in rules.origins])
        check_body_headers(headers, max_bytes=rules.body_bytes)
        address = (scope.get("client") or ("",))[0]
        if scope["path"] in PUBLIC_PATHS:
            return OPERATOR
        is_write = scope["method"] not in _SAFE_METHODS
        if scope["path"] == SESSION_PATH and scope["method"] == "POST" and self._state.needs_token:
            self._token_guess_limits.count_request(address)
        try:
            caller = authenticate(headers, self._state)
        except NotAuthenticatedError:
            if bearer_token(headers) is None and (scope["path"] == SESSION_PATH or has_session_cookie(headers)):
                # Nobody guesses the signature of a cookie. One that expired must not lock its user out.
                self._rate_limits.count_request(address)
                if scope["path"] == SESSION_PATH:
                    return None
                raise
            # Only requests without a valid token count as guesses. Behind a proxy all callers share one address, and
            # the guesses of one must not lock out a caller with a valid token.
            self._token_guess_limits.count_request(address)
            raise
        if is_write and self._state.needs_token and bearer_token(headers) is None and not has_own_origin(headers):
            raise OriginNotAllowedError("Only the page of this server may write with a session.", hint=_ORIGIN_HINT)
        self._rate_limits.count_request(caller.name or address)
        return caller

    def _allowed_origin(self, headers: Headers) -> str | None:
        """Return the origin of a web page if it is another one that may read the response, otherwise None."""
        origin = headers.get("origin")
        allowed = {one.lower().rstrip("/") for one in self._state.settings.origins}
        return origin if origin is not None and origin.lower().rstrip("/") in allowed else None


class _ObservedResponse:
    """A response on its way out: records the status, adds the headers that every response has, and compresses it.

    ``status`` is 0 until the response has started, and what was answered from then on.
    """

    def __init__(self, send: Send, request: Headers, *, method: str, allowed_origin: str | None) -> None:
        self._send = send
        self._request = request
        self._is_read = method == "GET"
        self._allowed_origin = allowed_origin
        # The start of a response that waits for its body, because that may be compressed.
        self._start: Message | None = None
        self.on_start: Callable[[], None] | None = None
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.on_start is not None:
                self.on_start()
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if self._allowed_origin is not None:
                headers["Access-Control-Allow-Origin"] = self._allowed_origin
                headers.add_vary_header("Origin")
            if self._is_read and may_compress(message):
                self._start = message
                return
        elif self._start is not None:
            start, self._start = self._start, None
            if not message.get("more_body", False):
                start, body = await add_etag_and_compress(self._request, start, message.get("body", b""))
                message = {**message, "body": body}
                self.status = start["status"]
            await self._send(start)
        await self._send(message)


# Timeouts for the headers of a request to arrive, and for a response to be read. The application can see neither. A
# client that opens connections and sends little on each, or that requests much and reads nothing, would otherwise keep
# them all open: a peer with a closed TCP window keeps answering for as long as it likes.

# The number of waiting bytes that must leave per second. Slow lines are still much faster.
_MIN_BYTES_PER_SECOND = 1_000
# The send buffer of the system. Its default is megabytes, of which a third must be read before it accepts more, so that
# a slow reader would look like one that reads nothing.
_SEND_BUFFER_BYTES = 131_072


class TimeLimitedConnection(H11Protocol):
    """HTTP protocol that closes a connection if headers do not arrive, or a response is not read, in time."""

    config: "TimeLimitedConfig"
    _header_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvicorn's own signature
        super().connection_made(transport)
        # Writing pauses as soon as the system accepts no more bytes, so that the time limit also covers the last bytes
        # of a response. Closing the connection would wait for them forever.
        transport.set_write_buffer_limits(high=0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._header_timer is None:
            self._start_timer()

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request with the usual error body, and close the connection."""
        status, content = error_status_and_body(
            BadInputError(msg, hint="Send it as HTTP has it; GET /openapi.json has what is taken.")
        )
        body = JSONResponse(content, status, headers={**SECURITY_HEADERS, "Connection": "close"})
        parts = (
            h11.Response(status_code=status, headers=body.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(body.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()

    def shutdown(self) -> None:
        super().shutdown()
        # A stream without an end would hold up the shutdown until its time limit.
        scope: Scope = dict(self.scope or {})
        if "lamella.on_shutdown" in scope:
            scope["lamella.on_shutdown"]()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        self._stop_read_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.config.head_seconds, self._close_after_timeout)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_after_timeout(self) -> None:
        self._header_timer = None
        self.transport.close()

    def _start_read_timer(self) -> None:
        seconds, waiting = self.config.unread_seconds, self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(
            seconds, self._check_progress, waiting - _MIN_BYTES_PER_SECOND * seconds
        )

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _check_progress(self, max_unread_bytes: float) -> None:
        """Abort the connection if the client read next to nothing; a slow reader of a long response gets more time."""
        self._read_timer = None
        if self.transport.get_write_buffer_size() > max_unread_bytes:
            # The answer is in the log, where a client that reconnects can read it.
            self.transport.abort()
        else:
            self._start_read_timer()


class TimeLimitedConfig(uvicorn.Config):
    """uvicorn's configuration with the time limits of connections; it is passed to worker processes as a whole."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - uvicorn's own signature
        *,
        head_seconds: float,
        unread_seconds: float,
        **more: Any,  # noqa: ANN401 - uvicorn's own signature
    ) -> None:
        self.head_seconds = head_seconds
        self.unread_seconds = unread_seconds
        super().__init__(app, http=TimeLimitedConnection, **more)
