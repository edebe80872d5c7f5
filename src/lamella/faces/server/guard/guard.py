"""The guard: every request passes it, is let in or refused, and leaves a line in the log."""

from time import perf_counter

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamella.faces.server.failures import list_headers, tell_error
from lamella.faces.server.guard.bodies import check_headers, read_body
from lamella.faces.server.guard.callers import find_caller
from lamella.faces.server.guard.origins import check_host, check_origin
from lamella.faces.server.guard.rates import RateLimits
from lamella.faces.server.state import OPERATOR, Caller, ServerState
from lamella.faces.server.watching.lines import log_request
from lamella.refusals import TokenMissingError

# What tells nothing but that the server is there, so that whoever starts and stops it can ask.
OPEN = ("/healthz", "/readyz")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """What stands before the application: names and pages, tokens, rates, sizes; then headers and a line of the log."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state
        self._rates = RateLimits(state.rules.rate)
        self._guesses = RateLimits(state.rules.guesses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _WatchedAnswer(send, allowed=self._find_allowed(Headers(scope=scope)))
        begun = perf_counter()
        caller = Caller(name="?", owner="", scope=OPERATOR.scope)
        try:
            caller = self._let_in(scope)
            rules = self._state.rules
            body = await read_body(receive, most=rules.body_bytes, seconds=rules.body_seconds)
            scope["lamella.caller"] = caller
            await self._app(scope, body, answer.send)
        except Exception as error:
            if answer.status:
                raise
            status, told = tell_error(error, scope["path"])
            await JSONResponse(told, status, headers=list_headers(error))(scope, receive, answer.send)
        finally:
            log_request(scope, answer.status, caller.name, seconds=perf_counter() - begun, meters=self._state.meters)

    def _let_in(self, scope: Scope) -> Caller:
        """Who calls, once everything about the outside of a request is as it should be."""
        headers, rules = Headers(scope=scope), self._state.rules
        check_host(headers, self._state.hosts)
        check_origin(headers, self._state.hosts, [one.lower().rstrip("/") for one in rules.origins])
        check_headers(headers, most=rules.body_bytes)
        address = (scope.get("client") or ("",))[0]
        if scope["path"] in OPEN:
            return OPERATOR
        try:
            caller = find_caller(headers, self._state)
        except TokenMissingError:
            # Whoever has a token is let in all the same: behind a proxy everybody comes from one address.
            self._guesses.take(address)
            raise
        self._rates.take(caller.name or address)
        return caller

    def _find_allowed(self, headers: Headers) -> str | None:
        """The page that may read the answer although it is of another origin."""
        origin = headers.get("origin")
        allowed = {one.lower().rstrip("/") for one in self._state.rules.origins}
        return origin if origin is not None and origin.lower().rstrip("/") in allowed else None


class _WatchedAnswer:
    """An answer on its way out: its status is noted, and it gets the headers that every answer has."""

    def __init__(self, send: Send, *, allowed: str | None) -> None:
        self._send = send
        self._allowed = allowed
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if self._allowed is not None:
                headers["Access-Control-Allow-Origin"] = self._allowed
                headers["Vary"] = "Origin"
        await self._send(message)
