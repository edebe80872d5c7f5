"""One server: started or reached when it is needed, asked within bounds, started again once if it ends or hangs."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamella.adapters.providers.connection.bounds import Bounds, bound_answer, bound_opening
from lamella.adapters.tools.mcp.listing import Told, clean_words
from lamella.adapters.tools.mcp.output import ToolServerError, tell_output
from lamella.errors import ExtraMissingError, tell_install

if TYPE_CHECKING:
    from mcp import Client

# How often a server is started again in one sitting.
_STARTS_AGAIN = 1
_PAGES = 50
# How many seconds a server may take to end in order; the SDK ends programs that it started within four.
_FAREWELL = 10
_LISTED = 10_000
_TOLD = 300


class ServerSpec(Struct, frozen=True, kw_only=True):
    """How a server is started, or where it is. ``environment`` is all that it has beside what every program needs."""

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    folder: str | None = None
    url: str = ""
    token: str = ""
    seconds: float = 30
    writes: bool = False


class ServerSession:
    """The connection to one server. All of it happens in one loop; what fails is a ``ToolServerError``."""

    def __init__(self, spec: ServerSpec, *, farewell: float = _FAREWELL) -> None:
        self.spec = spec
        self._farewell = farewell
        self._left = 1 + _STARTS_AGAIN
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._end = asyncio.Event()
        self._opening = asyncio.Lock()
        self._give_up: Callable[[], object] = self._end.set

    async def list_tools(self) -> list[Told]:
        """Every tool as the server tells it now, of as many pages as may be."""
        told: list[Told] = await self._bounded(_list_pages(await self._connect()))
        return told

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """What a tool gives, in words."""
        client = await self._connect()
        given = await self._bounded(client.call_tool(name, dict(arguments)))
        text = tell_output(given.content, given.structured_content)
        if given.is_error:
            raise ToolServerError(text)
        return text

    async def close(self) -> None:
        """End it; a server that does not end by itself is ended."""
        client, self._client, task, self._task = self._client, None, self._task, None
        # Of this connection: while it ends another may begin.
        give_up = self._give_up
        if task is not None:
            self._end.set()
            if client is None:
                # It has not answered yet, and may never: there is nothing to end in order.
                give_up()
            if not (await asyncio.wait({task}, timeout=self._farewell))[0]:
                # It answers a goodbye without end.
                give_up()
                await asyncio.wait({task})
            # Looked at, so that nobody is told of it when it is collected.
            task.cancelled() or task.exception()

    async def _connect(self) -> "Client":
        async with self._opening:
            if self._client is None or self._task is None or self._task.done():
                await self.close()
                await self._start()
            assert self._client is not None, "it was just started"
            return self._client

    async def _start(self) -> None:
        if not self._left:
            raise ToolServerError(f"The server {self.spec.name} ended or hung twice, and is not started again.")
        self._left -= 1
        self._end = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready))
        waited: set[asyncio.Future[Any]] = {self._task, ready}
        await asyncio.wait(waited, timeout=self.spec.seconds, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not self._task.done():
            self._client = ready.result()
            return
        why = f"no answer within {self.spec.seconds:g} seconds" if not self._task.done() else _explain(self._task)
        self._give_up()
        await self.close()
        raise ToolServerError(f"The server {self.spec.name} could not be used: {why}.")

    async def _hold(self, ready: "asyncio.Future[Client]") -> None:
        """Keep the connection as long as it is wanted: it is opened and closed by this one task."""
        from anyio import CancelScope  # comes with the SDK, which ends a server in order only for its own cancellation

        with CancelScope() as scope:
            self._give_up = scope.cancel
            async with _open(self.spec) as client:
                ready.set_result(client)
                await self._end.wait()

    async def _bounded(self, asked: Any) -> Any:  # noqa: ANN401 - what the SDK gives
        """What a server answers in time; one that does not, or that ended, is started again by the next call."""
        try:
            async with asyncio.timeout(self.spec.seconds):
                return await asked
        except TimeoutError as error:
            await self.close()
            told = f"The server {self.spec.name} gave no answer within {self.spec.seconds:g} seconds."
            raise ToolServerError(told) from error
        except Exception as error:
            # A server may fail in any way. An error that it told itself is an answer; anything else is its end.
            from mcp import MCPError
            from mcp_types import CONNECTION_CLOSED

            if not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED:
                await self.close()
            raise ToolServerError(f"The server {self.spec.name} failed: {_tell(error)}.") from error


async def _list_pages(client: "Client") -> list[Told]:
    told: list[Told] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        told += [(tool.name, tool.description or "", tool.input_schema, _only_reads(tool)) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None or len(told) > _LISTED:
            break
    return told


def _only_reads(tool: Any) -> bool:  # noqa: ANN401 - a model of the SDK's
    """Whether a server says of a tool that it changes nothing; of one that says nothing nobody knows."""
    return tool.annotations is not None and tool.annotations.read_only_hint is True


@asynccontextmanager
async def _open(spec: ServerSpec) -> AsyncIterator["Client"]:
    try:
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client
    except ImportError as error:
        raise ExtraMissingError(
            "Tools of MCP servers need a package that is not installed.", hint=tell_install("mcp")
        ) from error
    _quieten()
    if spec.url:
        async with _open_url(spec) as client:
            yield client
        return
    program, *words = spec.command
    parameters = StdioServerParameters(
        command=program, args=words, env=dict(spec.environment), cwd=spec.folder, encoding_error_handler="replace"
    )
    # What a server prints beside its answers would act on the terminal of whoever talks.
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230, PTH123 - it holds nobody up
        async with Client(stdio_client(parameters, errlog=nowhere)) as client:
            yield client


@asynccontextmanager
async def _open_url(spec: ServerSpec) -> AsyncIterator["Client"]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {spec.token}"} if spec.token else {}
    # The SDK bounds an event, and nothing else. No redirect is followed: the token would go where the server says.
    http = httpx2.AsyncClient(headers=headers, timeout=spec.seconds, event_hooks={"response": [bound_answer]})
    async with (
        bound_opening(http, Bounds(opening=spec.seconds)),
        Client(streamable_http_client(spec.url, http_client=http)) as client,
    ):
        yield client


def _quieten() -> None:
    """Let the SDK log as every library does: to whoever listens, and not to the terminal where nobody does."""
    import logging

    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


def _explain(task: "asyncio.Task[None]") -> str:
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    return "it ended at once" if error is None else _tell(error)


def _tell(error: BaseException) -> str:
    """What went wrong, on a line; of several that failed together the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    faults = getattr(error, "errors", None)
    if callable(faults) and (first := next(iter(faults()), None)):
        # The SDK's models tell on many lines what they do not know.
        place = ".".join(str(one) for one in first["loc"])
        return f"it breaks the protocol at {clean_words(place, _TOLD)}: {clean_words(first['msg'], _TOLD)}"
    said = " ".join(clean_words(str(error), _TOLD).split()) or type(error).__name__
    return said.rstrip(".")
