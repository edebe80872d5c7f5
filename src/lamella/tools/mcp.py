"""MCP servers: connections, tool lists and results.

``McpServers`` has the configured servers and their tools, which are listed once and kept until a refresh.
``McpSession`` is the connection to one server, opened on demand and limited by timeouts; a server that ends or hangs
is restarted once. ``select_usable_tools`` checks a tool list, and ``render_tool_output`` converts results to text.

A server may belong to anybody and may send anything. Its text appears only in the descriptions and schemas of its own
tools. Each description begins with the name of the server, and its length is limited.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from lamella.attach import Tool
from lamella.errors import ExtraNotInstalledError, LamellaError, install_hint
from lamella.providers.connection import ResponseLimits, limit_response, limit_response_start
from lamella.tools.mcp_stdio import StdioStatus, open_stdio

if TYPE_CHECKING:
    from mcp import Client

# The longest tool name that providers accept.
MAX_TOOL_NAME_CHARS = 64
# Limit per server. A model cannot choose well among more tools, and their schemas fill its context window.
MAX_TOOLS = 100
MAX_DESCRIPTION_CHARS = 1_000
MAX_SCHEMA_CHARS = 20_000

_MAX_SCHEMA_DEPTH = 16
_MAX_SCHEMA_TEXT_CHARS = 300
_HASH_DIGITS = 6
_ILLEGAL_NAME_CHARS = re.compile(r"[^A-Za-z0-9_-]")


class McpTool(NamedTuple):
    """A tool of an MCP server: ``name`` is the name for the model, ``own_name`` the name on the server.

    ``changes`` says that the tool may change something.
    """

    name: str
    own_name: str
    description: str
    parameters: Mapping[str, object]
    changes: bool = True


# A tool as its server lists it: name, description, schema, and whether it is read-only.
ToolListing = tuple[str, str, object, bool]


def select_usable_tools(
    server: str, listings: Iterable[ToolListing], *, may_write: bool = True
) -> tuple[Sequence[McpTool], Sequence[str]]:
    """Return the usable tools of a server, sorted by name, and a warning for each problem.

    Left out are tools with an invalid schema, duplicates, and tools beyond the limit. Without ``may_write``, tools that
    may change something are left out, too.
    """
    # Sorted, because a server may list its tools in any order and a changed order changes the cached prefix.
    listed = sorted(listings, key=lambda one: one[0])
    sorted_by_name = [one for one in listed if may_write or one[3]]
    found: dict[str, McpTool] = {}
    warnings: list[str] = []
    if len(sorted_by_name) < len(listed):
        left = len(listed) - len(sorted_by_name)
        warnings.append(
            f"{server}: {left:,} of {len(listed):,} tools may change something, and its writes are not allowed."
        )
    for own_name, description, schema, reads in sorted_by_name[:MAX_TOOLS]:
        wrong = find_schema_problem(schema)
        name = unique_tool_name(server, own_name, used_names=found)
        if wrong is not None or own_name in {one.own_name for one in found.values()}:
            warnings.append(
                f"{server}: the tool {clean_text(own_name, 60)!r} is left out: {wrong or 'it is there twice'}."
            )
            continue
        words = f"[{server}] {clean_text(description, MAX_DESCRIPTION_CHARS)}".rstrip()
        found[name] = McpTool(name, own_name, words, _clean_schema(schema), not reads)
    if len(sorted_by_name) > MAX_TOOLS:
        warnings.append(f"{server}: of {len(sorted_by_name):,} tools the first {MAX_TOOLS} by name are taken.")
    return tuple(found.values()), tuple(warnings)


def unique_tool_name(server: str, own_name: str, *, used_names: Iterable[str] = ()) -> str:
    """Return a tool name that providers accept and that is not in ``taken``.

    A name that had to be changed ends in digits of the hash of the original name.
    """
    plain = f"{server}__{_ILLEGAL_NAME_CHARS.sub('_', own_name)}"
    if plain == f"{server}__{own_name}" and len(plain) <= MAX_TOOL_NAME_CHARS and plain not in used_names:
        return plain
    digits = sha256(own_name.encode(errors="replace")).hexdigest()[:_HASH_DIGITS]
    return f"{plain[: MAX_TOOL_NAME_CHARS - _HASH_DIGITS - 1]}_{digits}"


def find_schema_problem(schema: object) -> str | None:
    """Return why a schema cannot be sent to a model, or None if it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its parameters are no object"
    if not isinstance(schema.get("properties", {}), dict):
        return "its properties are no object"
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return "its schema is no JSON"
    if size > MAX_SCHEMA_CHARS:
        return f"its schema has {size:,} characters, and {MAX_SCHEMA_CHARS:,} are taken"
    deepest = _measure_depth(schema)
    return (
        f"its schema is {deepest} levels deep, and {_MAX_SCHEMA_DEPTH} are taken"
        if deepest > _MAX_SCHEMA_DEPTH
        else None
    )


def clean_text(text: str, max_chars: int) -> str:
    """Return foreign text without control characters and lone surrogates, cut to ``max_chars`` characters.

    Control characters could act on the user's terminal.
    """
    # The text is sliced first, so that a text of many megabytes is not examined character by character.
    kept = "".join(one for one in text[: 4 * max_chars] if one.isprintable() or one in "\n\t").strip()
    return kept if len(kept) <= max_chars else f"{kept[: max_chars - 2].rstrip()} …"


def _measure_depth(value: object) -> int:
    """Return the nesting depth of a JSON value, without recursion because the value comes from a server."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    deepest = 0
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(inner, depth + 1) for inner in _iter_inner_values(one)]
    return deepest


def _iter_inner_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _clean_schema(value: object) -> dict[str, object]:
    cleaned = _clean_value(value)
    assert isinstance(cleaned, dict), "it was looked at before"
    return cleaned


def _clean_value(value: object) -> object:
    if isinstance(value, dict):
        # Property names are not cleaned: a call must use the server's own names. Unprintable ones are left out.
        return {str(name): _clean_value(one) for name, one in value.items() if str(name).isprintable()}
    if isinstance(value, list):
        return [_clean_value(one) for one in value]
    return clean_text(value, _MAX_SCHEMA_TEXT_CHARS) if isinstance(value, str) else value


# Results as text; images and other binary data become a short description.

_MAX_LINE_CHARS = 200


class McpToolError(Exception):
    """A failed MCP call; the message is shown to the model."""


def render_tool_output(content: Iterable[Any], structured: object) -> str:
    """Return the content blocks of a result as text, or its structured data as JSON if there are none."""
    text = "\n".join(filter(None, _render_blocks(content)))
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    # A server may send lone surrogates, which cannot be encoded in a request.
    return text.encode(errors="replace").decode() or "(nothing)"


def _render_blocks(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        match block.type:
            case "text":
                yield block.text
            case "image" | "audio":
                what = "a picture" if block.type == "image" else "a sound"
                yield f"({what}, {_to_single_line(block.mime_type)}, {_format_base64_size(block.data)}: it cannot be shown here)"
            case "resource":
                yield _render_resource(block.resource)
            case "resource_link":
                yield f"(see {_to_single_line(block.name)}: {_to_single_line(str(block.uri))})"
            case other:
                yield f"({_to_single_line(str(other))}: it cannot be shown here)"


def _render_resource(resource: Any) -> str:  # noqa: ANN401 - one of two model classes of the SDK
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    kind = _to_single_line(resource.mime_type or "bytes")
    return (
        f"({_to_single_line(str(resource.uri))}, {kind}, {_format_base64_size(resource.blob)}: it cannot be shown here)"
    )


def _format_base64_size(data: str) -> str:
    """Return the size of base64 data: four characters encode three bytes."""
    return f"{len(data) * 3 // 4:,} bytes"


def _to_single_line(text: str) -> str:
    return " ".join(clean_text(text, _MAX_LINE_CHARS).split())


# Connections.

# How often a server is restarted during the lifetime of a session.
_MAX_RESTARTS = 1
# The most pages of a tool list that are read.
_MAX_PAGES = 50
# Seconds that a server may take to shut down. The SDK ends programs that it started within four.
_CLOSE_TIMEOUT = 10
# The number of listed tools after which no further page is read, and the longest error text in characters.
_MAX_LISTED_TOOLS = 10_000
_MAX_ERROR_CHARS = 300


class McpServerSpec(Struct, frozen=True, kw_only=True):
    """The command that starts an MCP server, or its ``url``.

    ``environment`` is added to the few variables that every program gets. ``seconds`` is the timeout of each request.
    ``writes`` allows tools that may change something.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    folder: str | None = None
    url: str = ""
    token: str = ""
    seconds: float = 30
    writes: bool = False


class McpSession:
    """The connection to one MCP server, to be used in one event loop only.

    Failures are raised as ``McpToolError``.
    """

    def __init__(self, spec: McpServerSpec, *, close_timeout: float = _CLOSE_TIMEOUT) -> None:
        self.spec = spec
        self._close_timeout = close_timeout
        self._starts_left = 1 + _MAX_RESTARTS
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._close_requested = asyncio.Event()
        self._opening_lock = asyncio.Lock()
        self._status = StdioStatus()
        self._cancel_connection: Callable[[], object] = self._close_requested.set

    async def list_tools(self) -> list[ToolListing]:
        """Return all tools that the server lists now, up to a limit of pages."""
        listings: list[ToolListing] = await self._with_timeout(_list_pages(await self._connect()))
        return listings

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """Call a tool and return its result as text; raises ``McpToolError`` if the tool reports an error."""
        client = await self._connect()
        given = await self._with_timeout(client.call_tool(name, dict(arguments)))
        text = render_tool_output(given.content, given.structured_content)
        if given.is_error:
            raise McpToolError(text)
        return text

    async def close(self) -> None:
        """Close the connection; a server that does not shut down in time is killed."""
        client, self._client, task, self._task = self._client, None, self._task, None
        # Saved here, because another connection may start while this one closes and replace the attribute.
        cancel = self._cancel_connection
        if task is not None:
            self._close_requested.set()
            if client is None:
                # The server has not answered yet and may never do so. There is no connection to shut down cleanly.
                cancel()
            if not (await asyncio.wait({task}, timeout=self._close_timeout))[0]:
                # The server keeps the shutdown waiting.
                cancel()
                await asyncio.wait({task})
            # Reading the exception prevents asyncio's warning about an exception that was never retrieved.
            task.cancelled() or task.exception()

    async def _connect(self) -> "Client":
        """Return the client, and open or reopen the connection if necessary."""
        async with self._opening_lock:
            if self._client is None or self._task is None or self._task.done():
                await self.close()
                await self._start_connection()
            assert self._client is not None, "it was just started"
            return self._client

    async def _start_connection(self) -> None:
        """Start or contact the server within the timeout.

        Raises ``McpToolError`` if that fails or if the server was restarted too often.
        """
        if not self._starts_left:
            raise McpToolError(f"The server {self.spec.name} ended or hung twice, and is not started again.")
        self._starts_left -= 1
        self._close_requested = asyncio.Event()
        self._status = StdioStatus()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_connection_open(ready))
        waited: set[asyncio.Future[Any]] = {self._task, ready}
        await asyncio.wait(waited, timeout=self.spec.seconds, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not self._task.done():
            self._client = ready.result()
            return
        why = (
            self._status.failure
            or ("" if self._task.done() else f"no answer within {self.spec.seconds:g} seconds")
            or _explain_failure(self._task)
        )
        self._cancel_connection()
        await self.close()
        raise McpToolError(f"The server {self.spec.name} could not be used: {why}.")

    async def _keep_connection_open(self, ready: "asyncio.Future[Client]") -> None:
        """Keep the connection open until ``close``; the SDK requires that one task opens and closes it."""
        # anyio comes with the SDK. Only a cancellation by an anyio scope makes the SDK shut a server down cleanly.
        from anyio import CancelScope

        with CancelScope() as scope:
            self._cancel_connection = scope.cancel
            async with _open_client(self.spec, self._status) as client:
                ready.set_result(client)
                await self._close_requested.wait()

    async def _with_timeout(self, request: Any) -> Any:  # noqa: ANN401 - a coroutine of the SDK and its result
        """Await a request with the timeout of the server.

        If it times out or the server has ended, the connection is closed, and the next request opens a new one.
        """
        try:
            async with asyncio.timeout(self.spec.seconds):
                return await request
        except TimeoutError as error:
            await self.close()
            message = f"The server {self.spec.name} gave no answer within {self.spec.seconds:g} seconds."
            raise McpToolError(message) from error
        except Exception as error:
            # A server may fail in any way. An error that the server reports is an answer, and the connection stays
            # usable. Any other error ends the connection.
            from mcp import MCPError
            from mcp_types import CONNECTION_CLOSED

            if not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED:
                await self.close()
            told = self._status.failure or _format_exception(error)
            raise McpToolError(f"The server {self.spec.name} failed: {told}.") from error


async def _list_pages(client: "Client") -> list[ToolListing]:
    listings: list[ToolListing] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        listings += [(tool.name, tool.description or "", tool.input_schema, _is_read_only(tool)) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None or len(listings) > _MAX_LISTED_TOOLS:
            break
    return listings


def _is_read_only(tool: Any) -> bool:  # noqa: ANN401 - a model class of the SDK
    """Return whether the server declares a tool as read-only; without a declaration it may change something."""
    return tool.annotations is not None and tool.annotations.read_only_hint is True


@asynccontextmanager
async def _open_client(spec: McpServerSpec, status: StdioStatus) -> AsyncIterator["Client"]:
    try:
        from mcp import Client
    except ImportError as error:
        raise ExtraNotInstalledError(
            "Tools of MCP servers need a package that is not installed.", hint=install_hint("mcp")
        ) from error
    _silence_sdk_logs()
    if spec.url:
        async with _open_url(spec) as client:
            yield client
        return
    streams = open_stdio(spec.command, environment=spec.environment, folder=spec.folder, status=status)
    async with Client(streams) as client:
        yield client


@asynccontextmanager
async def _open_url(spec: McpServerSpec) -> AsyncIterator["Client"]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {spec.token}"} if spec.token else {}
    # The SDK limits the size of an event only, so the limits are set here. Redirects are not followed: they would send
    # the token to an address that the server chooses.
    http = httpx2.AsyncClient(headers=headers, timeout=spec.seconds, event_hooks={"response": [limit_response]})
    async with (
        limit_response_start(http, ResponseLimits(max_header_seconds=spec.seconds)),
        Client(streamable_http_client(spec.url, http_client=http)) as client,
    ):
        yield client


def _silence_sdk_logs() -> None:
    """Keep the SDK's log messages off the terminal unless the program configured a handler for them."""
    import logging

    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


def _explain_failure(task: "asyncio.Task[None]") -> str:
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    return "it ended at once" if error is None else _format_exception(error)


def _format_exception(error: BaseException) -> str:
    """Return a one-line description of an error; of an exception group only the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    faults = getattr(error, "errors", None)
    if callable(faults) and (first := next(iter(faults()), None)):
        # Validation errors of the SDK have many lines. Only the first error is shown.
        location = ".".join(str(one) for one in first["loc"])
        problem = clean_text(first["msg"], _MAX_ERROR_CHARS)
        return f"it breaks the protocol at {clean_text(location, _MAX_ERROR_CHARS)}: {problem}"
    message = " ".join(clean_text(str(error), _MAX_ERROR_CHARS).split()) or type(error).__name__
    return message.rstrip(".")


# Event loops for servers that must outlive those of the program.

_Result = TypeVar("_Result")
_JOIN_TIMEOUT = 15.0


class EventLoopThread:
    """Runs coroutines in the event loop of a background thread.

    The thread starts with the first coroutine. It is a daemon, so it does not keep the program from exiting.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def start(self, coroutine: Coroutine[Any, Any, _Result]) -> "Future[_Result]":
        """Start a coroutine in the loop and return a future for its result."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def is_running(self) -> bool:
        """Return whether the thread is running."""
        return self._loop is not None

    def close(self) -> None:
        """Stop the loop and wait a limited time for the thread; a thread that does not end is abandoned."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_JOIN_TIMEOUT)
        # Closing a loop that still runs raises an error.
        if not thread.is_alive():
            loop.close()


# All configured servers.

# Seconds beyond the timeouts of the servers, for closing and starting all of them.
_EXTRA_SECONDS = 20.0


class McpServerReport(NamedTuple):
    """The tools of a server, warnings about them (``warnings``), and why it cannot be used (``failure``), if so."""

    name: str
    tools: tuple[McpTool, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str | None = None


class McpServers:
    """The configured MCP servers, safe for threads.

    ``list_specs`` returns their specifications. It is called when tools are first needed; until then no server is
    started.
    """

    def __init__(self, list_specs: Callable[[], Sequence[McpServerSpec]]) -> None:
        self._list_specs = list_specs
        self._thread = EventLoopThread("lamella-mcp")
        self._lock = Lock()
        self._reports: Sequence[McpServerReport] | None = None
        self._sessions: Mapping[str, McpSession] = {}
        self._pending_listing: Future[Sequence[McpServerReport]] | None = None
        self._refresh_count = 0
        # The tools that each open conversation uses. The keys are weak, so a closed conversation drops its entry.
        self._tools_by_owner: WeakKeyDictionary[object, tuple[object, Sequence[Tool]]] = WeakKeyDictionary()

    def load_reports(self) -> Sequence[McpServerReport]:
        """Return a report for each server from the last listing; the first call starts the servers.

        A server that fails does not affect the others.
        """
        with self._lock:
            if self._reports is None:
                specs = sorted(self._list_specs(), key=lambda spec: spec.name)
                # Twice the timeout: a server is started first and then asked for its tools.
                seconds = max([2 * spec.seconds for spec in specs], default=0) + _EXTRA_SECONDS
                self._reports = self._wait_for_reports(self._start_and_list(specs), seconds) if specs else ()
            return self._reports

    def _wait_for_reports(
        self, listing: Coroutine[Any, Any, Sequence[McpServerReport]], seconds: float
    ) -> Sequence[McpServerReport]:
        """Run a listing in the thread of the servers and wait for it; ``close`` can cancel it."""
        self._pending_listing = self._thread.start(listing)
        try:
            return self._pending_listing.result(seconds)
        finally:
            self._pending_listing = None

    def tools(self) -> Sequence[Tool]:
        """Return the tools of all servers, sorted by server and name; the list is stable until a refresh."""
        return [
            Tool(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                run=self._make_tool_runner(report.name, tool.own_name),
                has_side_effects=tool.changes,
            )
            for report in self.load_reports()
            for tool in report.tools
        ]

    def has_given_tools_to(self, owner: object) -> bool:
        """Return whether a conversation uses tools of running servers."""
        return bool(self._sessions) and owner in self._tools_by_owner

    def tools_for(
        self, owner: object, version: object, *, refresh: bool = False
    ) -> tuple[Sequence[Tool], Sequence[str]]:
        """Return the tools for a conversation, and warnings about unusable servers and tools.

        The conversation keeps its tools, because another tool list changes the cached prefix. They are listed again
        for a new conversation, if ``refresh`` is set, after ``refresh``, or if ``version`` differs from the last call.
        Warnings are returned only together with a new listing.
        """
        key = (self._refresh_count, version)
        owned = self._tools_by_owner.get(owner)
        if owned is not None and owned[0] == key and not refresh:
            return owned[1], ()
        # If no conversation has tools yet, ``tools`` below makes the first listing.
        if self._tools_by_owner:
            self._relist_tools()
        tools, reports = self.tools(), self.load_reports()
        self._tools_by_owner[owner] = (key, tools)
        return tools, [line for one in reports for line in ((one.failure,) if one.failure else one.warnings)]

    def check_servers_trusted(self) -> None:
        """Raise an error for servers that the user does not trust, without starting any."""
        self._list_specs()

    def _relist_tools(self) -> None:
        """Ask the running servers for their tools again.

        A server that fails keeps its earlier tools, and its report says why it failed.
        """
        with self._lock:
            sessions = list(self._sessions.values())
            if sessions and self._reports is not None:
                seconds = max(2 * session.spec.seconds for session in sessions) + _EXTRA_SECONDS
                self._reports = _keep_previous_reports(
                    self._reports, self._wait_for_reports(_report_tools_of_sessions(sessions), seconds)
                )

    def refresh(self) -> None:
        """Close all servers; the next request for tools starts them again and lists their tools."""
        with self._lock:
            self._close_sessions()
            self._reports = None
            self._refresh_count += 1

    def close(self) -> None:
        """Close all servers, also while a listing is running."""
        # Cancelled before the lock is taken: the thread that waits for the listing holds the lock.
        listing = self._pending_listing
        if listing is not None:
            listing.cancel()
        with self._lock:
            self._close_sessions()
            self._thread.close()

    def _close_sessions(self) -> None:
        sessions, self._sessions = self._sessions, {}
        if sessions and self._thread.is_running:
            self._thread.start(_close_all(list(sessions.values()))).result(_EXTRA_SECONDS)

    async def _start_and_list(self, specs: Sequence[McpServerSpec]) -> Sequence[McpServerReport]:
        self._sessions = {spec.name: McpSession(spec) for spec in specs}
        return await _report_tools_of_sessions(list(self._sessions.values()))

    def _make_tool_runner(self, server: str, own_name: str) -> Callable[..., object]:
        """Return the function that calls a tool; it looks up the session by name, since a refresh replaces it."""

        async def run(**arguments: object) -> str:
            session = self._sessions.get(server)
            if session is None:
                raise McpToolError(f"The server {server} is not there any more.")
            called = self._thread.start(session.call(own_name, arguments))
            return await asyncio.wrap_future(called)

        return run


def _keep_previous_reports(
    before: Sequence[McpServerReport], now: Sequence[McpServerReport]
) -> Sequence[McpServerReport]:
    """Return the new reports, but with the earlier tools of servers that failed.

    Removing the tools of a server that fails once would change the cached prefix.
    """
    known = {one.name: one.tools for one in before}
    return tuple(one._replace(tools=known.get(one.name, ())) if one.failure else one for one in now)


async def _report_tools_of_sessions(sessions: Sequence[McpSession]) -> Sequence[McpServerReport]:
    return tuple(await asyncio.gather(*(_report_tools_of_session(session) for session in sessions)))


async def _report_tools_of_session(session: McpSession) -> McpServerReport:
    make = partial(McpServerReport, session.spec.name)
    try:
        tools, warnings = select_usable_tools(
            session.spec.name, await session.list_tools(), may_write=session.spec.writes
        )
    except McpToolError as error:
        return make(failure=str(error))
    except LamellaError as error:
        return make(failure=f"{error.message} {error.hint}")
    return make(tuple(tools), tuple(warnings))


async def _close_all(sessions: Sequence[McpSession]) -> None:
    await asyncio.gather(*(session.close() for session in sessions))
