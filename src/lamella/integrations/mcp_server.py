"""The MCP server: Lamella's notes, conversations and code selection for agent hosts.

``serve_stdio`` serves the program that started this process, as the operator. ``serve_http`` serves over streamable
HTTP behind the same checks as the HTTP server: host names, origins, access tokens and their owners, rates and sizes.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

import lamella
from lamella import Tool, ToolCall
from lamella.conversation.tool_executor import LocalToolset
from lamella.errors import LamellaError
from lamella.hints import PYTHON_HINTS
from lamella.integrations.mcp_tools import (
    CONVERSATION_TEMPLATE,
    NOTE_TEMPLATE,
    RECEIPTS_TEMPLATE,
    McpCaller,
    list_resources,
    list_server_tools,
    read_resource,
)
from lamella.wiring import EnginePool, ServiceContainer, mask_keys, open_engine_pool, read_services

INSTRUCTIONS = (
    "Lamella keeps the user's notes and conversations, and knows what each prompt contained and cost. Search notes before "
    "you answer questions about them. Name conversations as list_conversations returns them."
)
_PAGE_SIZE = 100
_RESOURCE_NOT_FOUND, _INVALID_PARAMS = -32002, -32602
_Context = ServerRequestContext[Any, Any]
# Returns the caller of a request.
FindCaller = Callable[[_Context], McpCaller]
_Result = TypeVar("_Result")


def build_mcp_server(find_caller: FindCaller) -> Server[Any]:
    """Return a server whose tools and resources are those of the caller of each request."""

    async def list_tools(context: _Context, _params: object) -> types.ListToolsResult:
        tools = await asyncio.to_thread(partial(list_server_tools, find_caller(context)))
        return types.ListToolsResult(tools=[_to_mcp_tool(tool) for tool in tools])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tools = await asyncio.to_thread(partial(list_server_tools, find_caller(context)))
        return await _call_tool(tools, params)

    async def list_all(context: _Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = None if params is None else params.cursor
        if cursor is not None and not cursor.isdecimal():
            raise MCPError(_INVALID_PARAMS, f"The cursor {cursor[:80]!r} is none. Give the cursor of the last page.")
        found = await _run_reporting(partial(list_resources, find_caller(context)))
        start = int(cursor or 0)
        end = start + _PAGE_SIZE
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=one.uri, name=one.name, mime_type=one.media_type) for one in found[start:end]
            ],
            next_cursor=str(end) if end < len(found) else None,
        )

    async def list_templates(_context: _Context, _params: object) -> types.ListResourceTemplatesResult:
        described = {
            NOTE_TEMPLATE: ("note", "A note of the vault, by its path.", "text/markdown"),
            CONVERSATION_TEMPLATE: ("conversation", "The messages of a conversation.", "application/json"),
            RECEIPTS_TEMPLATE: ("receipts", "The compactions of a conversation.", "application/json"),
        }
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=uri, name=name, description=text, mime_type=media_type)
                for uri, (name, text, media_type) in described.items()
            ]
        )

    async def read(context: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        text, media_type = await _run_reporting(partial(read_resource, find_caller(context), uri))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=media_type, text=text)])

    return Server(
        "lamella",
        version=lamella.__version__,
        title="Lamella",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_all,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )


def _to_mcp_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.has_side_effects, destructive_hint=False, open_world_hint=False
        ),
    )


async def _call_tool(tools: Sequence[Tool], params: types.CallToolRequestParams) -> types.CallToolResult:
    """Run a tool; a failure is a result that the model reads, with what to do next."""
    toolset = LocalToolset(tools)
    call = ToolCall(id="call", name=params.name, arguments=json.dumps(params.arguments or {}))
    (output,) = await toolset.run_all([call], toolset.all_definitions)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=mask_keys(output.output) if output.failed else output.output)],
        structured_content=None if output.failed else _parse_object(output.output),
        is_error=output.failed,
    )


def _parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a result is, or None if it is plain text."""
    try:
        found = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def _run_reporting(function: Callable[[], _Result]) -> _Result:
    """Run a function in a thread, and convert its errors into errors of the protocol."""
    try:
        return await asyncio.to_thread(function)
    except LamellaError as error:
        raise MCPError(
            _RESOURCE_NOT_FOUND, mask_keys(f"{error.message} {error.hint_for(PYTHON_HINTS)}"), {"code": error.code}
        ) from error


def services_for(*, allow_writes: bool) -> ServiceContainer:
    """Return the services of the server: notes are written without asking again, or not at all.

    The host asks the user before it calls a tool that changes something. A user who turned writing off keeps it off.
    """
    services = read_services()
    writes = "allow" if allow_writes and services.settings.note_writes != "off" else "off"
    return services.with_only_overrides({**services.overrides, "note_writes": writes})


# Standard input and output.


async def serve_stdio(*, vault: Path | None, store: str | None, allow_writes: bool) -> None:
    """Serve the program that started this process, until it closes stdin. Stdout belongs to the protocol."""
    pool = open_engine_pool(store, vault=vault, services=services_for(allow_writes=allow_writes))
    caller = make_operator(pool, code_folder=vault or Path.cwd(), may_write=allow_writes)
    server = build_mcp_server(lambda _context: caller)
    try:
        # Redirected only after the SDK has claimed the process's own stdout.
        async with stdio_server() as (incoming, outgoing):
            with redirect_stdout(sys.stderr):
                await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await pool.close()


def make_operator(pool: EnginePool, *, code_folder: Path | None, may_write: bool) -> McpCaller:
    """Return the operator, who sees every conversation."""
    return McpCaller(engine=pool.get_engine(), vault=pool.vault, code_folder=code_folder, may_write=may_write)


# Streamable HTTP.


def serve_http(
    *, vault: Path | None, store: str | None, host: str | None, port: int | None, allow_writes: bool
) -> None:
    """Serve over streamable HTTP at ``/mcp`` until the process is stopped.

    Raises ``UsageError`` if other machines can reach the server and no token exists.
    """
    import uvicorn

    from lamella.server.serving import (
        LOGGER,
        ServerOptions,
        bind_socket,
        build_uvicorn_config,
        check_tokens_exist,
        get_local_address,
        open_server_state,
        set_up_logging,
    )

    options = ServerOptions(vault=vault, store=store, host=host, port=port)
    state = open_server_state(options, services=services_for(allow_writes=allow_writes))
    check_tokens_exist(state.settings, state.tokens)
    listener = bind_socket(state.settings.host, state.settings.port)
    set_up_logging()
    with listener:
        # A host may connect as soon as it reads the address: its connection waits until the server is ready.
        listener.listen()
        address = f"{get_local_address(state.settings.host, listener)}/mcp"
        LOGGER.info("%s", json.dumps({"at": "start", "address": address}))
        app = make_http_app(state, allow_writes=allow_writes)
        uvicorn.Server(build_uvicorn_config(app, state.settings)).run([listener])


def make_http_app(state: Any, *, allow_writes: bool) -> Any:  # noqa: ANN401 - types of the extra `server`
    """Return the application: the protocol behind the request guard of the HTTP server.

    It keeps no sessions: every request is checked and answered on its own.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    from lamella.server.security import RequestGuard
    from lamella.server.state import Caller, ServerState
    from lamella.wiring import AccessScope

    assert isinstance(state, ServerState)

    def find_caller(context: _Context) -> McpCaller:
        assert context.request is not None, "every request comes over HTTP"
        caller: Caller = context.request.scope["lamella.caller"]
        return McpCaller(
            engine=state.get_engine(caller),
            vault=state.engine_pool.vault,
            code_folder=state.engine_pool.vault,
            may_write=allow_writes and caller.scope.includes(AccessScope.CHAT),
            reserve=state.runs.exclusive,
        )

    server = build_mcp_server(find_caller)
    # The guard checks host names and origins by the settings of the server.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=state.settings.body_bytes,
        transport_security=unchecked,
    )
    run_protocol = app.router.lifespan_context

    @asynccontextmanager
    async def live(given: Any) -> AsyncGenerator[Any, None]:  # noqa: ANN401 - the framework's own types
        async with run_protocol(given) as found:
            yield found
        await state.runs.close(0)
        await state.engine_pool.close()

    app.router.lifespan_context = live
    return RequestGuard(app, state)
