"""``lamella mcp``: list the configured MCP servers, and check that they can be used."""

from collections.abc import Sequence
from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.output import escape_to_short_line, format_count, print_json, print_text, show_if_slow
from lamella.errors import UsageError
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

mcp_app = typer.Typer(name="mcp", help="List and check MCP servers.")


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
