"""The servers that are configured: their tools for a model, listed once and kept until somebody wants them anew."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from lamella.adapters.tools.mcp.listing import ListedTool, check_tools
from lamella.adapters.tools.mcp.output import ToolServerError
from lamella.adapters.tools.mcp.session import ServerSession, ServerSpec
from lamella.adapters.tools.mcp.thread import LoopThread
from lamella.attach import Tool
from lamella.errors import LamellaError

# Beyond what each server may take: for all of them to be ended and started.
_SLACK = 20.0


class ServerReport(NamedTuple):
    """A server and the tools that it has, what is to be said of them, and why it cannot be used, if it cannot."""

    name: str
    tools: tuple[ListedTool, ...] = ()
    said: tuple[str, ...] = ()
    why: str | None = None


class ToolServers:
    """Servers by name. ``find`` gives them when tools are first wanted: until then none is started or looked for."""

    def __init__(self, find: Callable[[], Sequence[ServerSpec]]) -> None:
        self._find = find
        self._thread = LoopThread("lamella-mcp")
        self._lock = Lock()
        self._reports: Sequence[ServerReport] | None = None
        self._sessions: Mapping[str, ServerSession] = {}
        self._listing: Future[Sequence[ServerReport]] | None = None
        self._refreshed = 0
        # What each conversation took up, as long as that is open.
        self._taken: WeakKeyDictionary[object, tuple[object, Sequence[Tool]]] = WeakKeyDictionary()

    def reports(self) -> Sequence[ServerReport]:
        """Each server with its tools as they were listed last; one that fails stops none of the others."""
        with self._lock:
            if self._reports is None:
                specs = sorted(self._find(), key=lambda spec: spec.name)
                seconds = max([2 * spec.seconds for spec in specs], default=0) + _SLACK
                self._reports = self._wait(self._list(specs), seconds) if specs else ()
            return self._reports

    def _wait(self, work: Coroutine[Any, Any, Sequence[ServerReport]], seconds: float) -> Sequence[ServerReport]:
        """What is listed in time, unless everything is closed meanwhile."""
        self._listing = self._thread.start(work)
        try:
            return self._listing.result(seconds)
        finally:
            self._listing = None

    def tools(self) -> Sequence[Tool]:
        """The tools of all servers, by server and name: the same list as long as nobody wants them anew."""
        return [
            Tool(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                run=self._make_run(report.name, tool.own_name),
                changes=tool.changes,
            )
            for report in self.reports()
            for tool in report.tools
        ]

    def has_given(self, owner: object) -> bool:
        """Whether a conversation took up tools of a server that runs."""
        return bool(self._sessions) and owner in self._taken

    def take(self, owner: object, mark: object, *, anew: bool = False) -> tuple[Sequence[Tool], Sequence[str]]:
        """The tools for a conversation, listed anew for one that is new, wants them ``anew`` or has another mark.

        With them comes, once, what is to be said of servers that cannot be used and of tools that are left out.
        """
        key = (self._refreshed, mark)
        taken = self._taken.get(owner)
        if taken is not None and taken[0] == key and not anew:
            return taken[1], ()
        if self._taken:
            self._list_anew()
        tools, reports = self.tools(), self.reports()
        self._taken[owner] = (key, tools)
        return tools, [line for one in reports for line in ((one.why,) if one.why else one.said)]

    def check(self) -> None:
        """Refuses servers that nobody said yes to. Nothing is started."""
        self._find()

    def _list_anew(self) -> None:
        """Have servers that run say what they have now; of one that cannot, what it had stays, and why is told."""
        with self._lock:
            sessions = list(self._sessions.values())
            if sessions and self._reports is not None:
                seconds = max(2 * session.spec.seconds for session in sessions) + _SLACK
                self._reports = _keep_known(self._reports, self._wait(_report_all(sessions), seconds))

    def refresh(self) -> None:
        """Have tools listed anew when they are wanted next, by servers started anew."""
        with self._lock:
            self._end()
            self._reports = None
            self._refreshed += 1

    def close(self) -> None:
        """End every server, also while they are being asked for their tools."""
        listing = self._listing
        if listing is not None:
            listing.cancel()
        with self._lock:
            self._end()
            self._thread.close()

    def _end(self) -> None:
        sessions, self._sessions = self._sessions, {}
        if sessions and self._thread.runs:
            self._thread.start(_close_all(list(sessions.values()))).result(_SLACK)

    async def _list(self, specs: Sequence[ServerSpec]) -> Sequence[ServerReport]:
        self._sessions = {spec.name: ServerSession(spec) for spec in specs}
        return await _report_all(list(self._sessions.values()))

    def _make_run(self, server: str, own_name: str) -> Callable[..., object]:
        async def run(**arguments: object) -> str:
            session = self._sessions.get(server)
            if session is None:
                raise ToolServerError(f"The server {server} is not there any more.")
            called = self._thread.start(session.call(own_name, arguments))
            return await asyncio.wrap_future(called)

        return run


def _keep_known(before: Sequence[ServerReport], now: Sequence[ServerReport]) -> Sequence[ServerReport]:
    """Reports as they are now; a server that says nothing is no reason to send other tools, which moves the prefix."""
    known = {one.name: one.tools for one in before}
    return tuple(one._replace(tools=known.get(one.name, ())) if one.why else one for one in now)


async def _report_all(sessions: Sequence[ServerSession]) -> Sequence[ServerReport]:
    return tuple(await asyncio.gather(*(_report(session) for session in sessions)))


async def _report(session: ServerSession) -> ServerReport:
    make = partial(ServerReport, session.spec.name)
    try:
        tools, said = check_tools(session.spec.name, await session.list_tools(), writes=session.spec.writes)
    except ToolServerError as error:
        return make(why=str(error))
    except LamellaError as error:
        return make(why=f"{error.message} {error.hint}")
    return make(tuple(tools), tuple(said))


async def _close_all(sessions: Sequence[ServerSession]) -> None:
    await asyncio.gather(*(session.close() for session in sessions))
