"""``lamella mcp``: list and check the configured MCP servers, and be an MCP server."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lamella.cli.access import JsonOption, StoreOption
from lamella.cli.interrupts import cancel_on_signals
from lamella.cli.output import escape_to_short_line, format_count, is_terminal, print_json, print_text, show_if_slow
from lamella.errors import ExtraNotInstalledError, UsageError, install_hint
from lamella.schemas.catalog import (
    McpReportJson,
    McpReportListJson,
    McpServerJson,
    McpServerListJson,
    McpToolJson,
)
from lamella.schemas.formatting import truncate_words
from lamella.tools.mcp import McpServerReport
from lamella.wiring import ServiceContainer, is_trusted, list_servers, open_servers, read_services

_MAX_DESCRIPTION_LENGTH = 80
_NO_SERVERS_MESSAGE = (
    "No MCP servers configured. See docs/how-to/mcp-servers.md; "
    "`lamella config show` prints the path of your settings file."
)

mcp_app = typer.Typer(name="mcp", help="List and check MCP servers, and be one.")


@mcp_app.command("list")
def list_configured_servers(*, as_json: JsonOption = False) -> None:
    """List the configured servers without starting them."""
    rows = [
        McpServerJson(name=one.name, place=one.trust_line, origin=one.origin.value, trusted=is_trusted(one))
        for one in list_servers(read_services())
    ]
    if as_json:
        print_json(McpServerListJson(servers=rows))
        return
    for row in rows:
        suffix = "" if row.trusted else "  (not trusted yet)"
        print_text(f"{escape_to_short_line(row.place)}  [{row.origin}]{suffix}")
    if not rows:
        print_text(_NO_SERVERS_MESSAGE)


@mcp_app.command()
def check(
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Server name.", show_default="all")] = None,
    as_json: JsonOption = False,
) -> int:
    """Connect to each server and list its tools.

    Exits with 1 if a server cannot be used.
    """
    services = read_services()
    known = [one.name for one in list_servers(services)]
    if name is not None and name not in known:
        raise UsageError(f"MCP server not found: {name}", hint=f"Configured servers: {', '.join(known) or 'none'}")
    with show_if_slow("Connecting to MCP servers"):
        reports = _query_servers(services)
    shown = [one for one in reports if name in (None, one.name)]
    if as_json:
        print_json(McpReportListJson(servers=[_report_to_json(one) for one in shown]))
    for one in () if as_json else shown:
        _print_report(one)
    if not known and not as_json:
        print_text(_NO_SERVERS_MESSAGE)
    return 1 if any(one.failure for one in shown) else 0


def _query_servers(services: ServiceContainer) -> Sequence[McpServerReport]:
    servers = open_servers(services)
    try:
        return servers.load_reports()
    finally:
        servers.close()


def _report_to_json(report: McpServerReport) -> McpReportJson:
    tools = [McpToolJson(name=tool.name, description=tool.description) for tool in report.tools]
    return McpReportJson(name=report.name, error=report.failure, tools=tools, notes=report.warnings)


def _print_report(report: McpServerReport) -> None:
    outcome = escape_to_short_line(report.failure) if report.failure else format_count(len(report.tools), "tool")
    print_text(f"{report.name}: {outcome}")
    for tool in report.tools:
        print_text(
            f"  {tool.name}  {escape_to_short_line(truncate_words(tool.description.partition(chr(10))[0], _MAX_DESCRIPTION_LENGTH))}"
        )
    for line in report.warnings:
        print_text(f"  note: {escape_to_short_line(line)}")


@mcp_app.command()
def serve(
    *,
    vault: Annotated[
        Path | None, typer.Argument(help="Notes folder to search and read.", show_default="no notes")
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over streamable HTTP, at /mcp, and not on stdio.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(help="With --http: address to listen on.", show_default="setting `serve`, or 127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="With --http: port; 0 selects a free one.", show_default="setting `serve`, or 8765"),
    ] = None,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Also offer tools that change notes and conversations.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Serve notes, conversations and code selection to an agent host over MCP.

    The host starts this command and talks to it over stdin and stdout. Code is selected from the notes folder, or from
    the current folder if there is none. docs/how-to/agent-hosts.md has the settings of several hosts.

    lamella mcp serve examples/vault --http --port 0
    """
    if not http and (host is not None or port is not None):
        raise UsageError("--host and --port need --http.", hint="Add --http.")
    try:
        from lamella.integrations.mcp_server import serve_http, serve_stdio
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise ExtraNotInstalledError(
            "The MCP server needs the package mcp, which is not installed.", hint=install_hint("mcp")
        ) from error
    if http:
        try:
            serve_http(vault=vault, store=store, host=host, port=port, allow_writes=allow_writes)
        except ImportError as error:
            raise ExtraNotInstalledError(
                f"Serving over HTTP needs {error.name}, which is not installed.", hint=install_hint("server")
            ) from error
        return
    if is_terminal(sys.stdin):
        raise UsageError(
            "An agent host starts this command and writes to its stdin, which is a terminal here.",
            hint="Name `lamella mcp serve` in the settings of your host, or add --http.",
        )
    asyncio.run(_serve_until_stopped(serve_stdio(vault=vault, store=store, allow_writes=allow_writes)))


async def _serve_until_stopped(serving: Coroutine[Any, Any, None]) -> None:
    with cancel_on_signals():
        await serving
