"""MCP servers that an editor names, and the user's permission for tools that may change something."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from math import inf

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from lamella.attach import Tool
from lamella.conversation.tool_executor import DEFAULT_CALL_TIMEOUT, ToolSource
from lamella.errors import InvalidOperationError, WriteDeniedError
from lamella.tools.mcp import McpServerSpec

McpServerConfig = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
# Asks the user whether a tool may be called with these arguments.
AllowCall = Callable[[str, Mapping[str, object]], Awaitable[bool]]

# The name of a server is the prefix of its tools' names.
_ILLEGAL_NAME_CHARS = re.compile(r"[^A-Za-z0-9-]+")
_MAX_NAME_CHARS = 24
_BEARER = "Bearer "


def read_server_specs(servers: Sequence[McpServerConfig]) -> list[McpServerSpec]:
    """Return how to start or reach the servers that an editor names.

    Raises ``InvalidOperationError`` for a server that cannot be reached from here.
    """
    return [_read_server_spec(one) for one in servers]


def _read_server_spec(server: McpServerConfig) -> McpServerSpec:
    name = _ILLEGAL_NAME_CHARS.sub("-", server.name).strip("-")[:_MAX_NAME_CHARS] or "server"
    if isinstance(server, McpServerStdio):
        environment = {one.name: one.value for one in server.env}
        return McpServerSpec(name=name, command=(server.command, *server.args), environment=environment, writes=True)
    if isinstance(server, HttpMcpServer):
        headers = {one.name.lower(): one.value for one in server.headers}
        token = headers.pop("authorization", "").removeprefix(_BEARER)
        if not headers:
            return McpServerSpec(name=name, url=server.url, token=token, writes=True)
        raise InvalidOperationError(
            f"The MCP server {server.name} needs the headers {', '.join(sorted(headers))}, and only a token can be sent.",
            hint="Give it a token in the header Authorization, or leave it out.",
        )
    raise InvalidOperationError(
        f"The MCP server {server.name} is reached by SSE or through the editor, which is not supported.",
        hint="Use a server that is started by a command, or one over HTTP.",
    )


class AskingToolSource:
    """Tools of a source, which ask the user before a call that may change something."""

    def __init__(self, source: ToolSource, allow_call: AllowCall) -> None:
        self._source = source
        self._allow_call = allow_call

    def tools(self) -> Sequence[Tool]:
        return [self._with_question(tool) for tool in self._source.tools()]

    def has_given_tools_to(self, owner: object) -> bool:
        return self._source.has_given_tools_to(owner)

    def tools_for(
        self, conversation: object, version: object, *, refresh: bool = False
    ) -> tuple[Sequence[Tool], Sequence[str]]:
        tools, warnings = self._source.tools_for(conversation, version, refresh=refresh)
        return [self._with_question(tool) for tool in tools], warnings

    def check_servers_trusted(self) -> None:
        self._source.check_servers_trusted()

    def refresh(self) -> None:
        self._source.refresh()

    def close(self) -> None:
        self._source.close()

    def _with_question(self, tool: Tool) -> Tool:
        run = tool.run
        if run is None or not tool.has_side_effects:
            return tool
        seconds = DEFAULT_CALL_TIMEOUT if tool.timeout_seconds is None else tool.timeout_seconds

        async def ask_and_run(**arguments: object) -> object:
            if not await self._allow_call(tool.name, arguments):
                raise WriteDeniedError(
                    f"{tool.name} was not called: the user said no.", hint="Ask the user what they want instead."
                )
            result = run(**arguments)
            return (
                await asyncio.wait_for(result, None if seconds == inf else seconds) if isawaitable(result) else result
            )

        # The time limit counts from the user's answer.
        return replace(tool, run=ask_and_run, timeout_seconds=inf)
