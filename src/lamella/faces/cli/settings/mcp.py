"""``lamella mcp``: the MCP servers that settings name, and whether they can be used."""

from collections.abc import Sequence
from typing import Annotated

import typer

from lamella.adapters.tools.mcp.servers import ServerReport
from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.words import cut_words
from lamella.wiring import Services, is_trusted, list_servers, open_servers, read_services

_GLANCE = 80
_NONE = "No server is named: docs/mcp.md shows how, and `lamella config show` your file."

mcp_app = typer.Typer(name="mcp", help="See the MCP servers whose tools models may call, and try them.")


@mcp_app.command("list")
def list_named(*, as_json: JsonOption = False) -> None:
    """Every server that settings name, with what starts it or where it is. Nothing is started."""
    rows = [
        {"name": one.name, "place": one.place, "from": one.origin.value, "trusted": is_trusted(one)}
        for one in list_servers(read_services())
    ]
    if as_json:
        tell_json({"servers": rows})
        return
    for row in rows:
        told = "" if row["trusted"] else "  (not trusted yet)"
        tell(f"{show_line(str(row['place']))}  [{row['from']}]{told}")
    if not rows:
        tell(_NONE)


@mcp_app.command()
def check(
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A server; else all.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> int:
    """Start or reach each server, list its tools, and end it. Exit 1 if one cannot be used."""
    services = read_services()
    known = [one.name for one in list_servers(services)]
    if name is not None and name not in known:
        raise UsageError(f"No MCP server is called {name}.", hint=f"Those named are: {', '.join(known) or 'none'}.")
    with told_if_slow("Asking MCP servers"):
        reports = _ask(services)
    shown = [one for one in reports if name in (None, one.name)]
    if as_json:
        tell_json({"servers": [_view(one) for one in shown]})
    for one in () if as_json else shown:
        _print(one)
    if not known and not as_json:
        tell(_NONE)
    return 1 if any(one.why for one in shown) else 0


def _ask(services: Services) -> Sequence[ServerReport]:
    servers = open_servers(services)
    try:
        return servers.reports()
    finally:
        servers.close()


def _view(report: ServerReport) -> dict[str, object]:
    tools = [{"name": tool.name, "description": tool.description} for tool in report.tools]
    return {"name": report.name, "error": report.why, "tools": tools, "notes": list(report.said)}


def _print(report: ServerReport) -> None:
    tell(f"{report.name}: {show_line(report.why)}" if report.why else _tell_tools(report))
    for tool in report.tools:
        tell(f"  {tool.name}  {show_line(cut_words(tool.description.partition(chr(10))[0], _GLANCE))}")
    for line in report.said:
        tell(f"  note: {show_line(line)}")


def _tell_tools(report: ServerReport) -> str:
    return f"{report.name}: {tell_count(len(report.tools), 'tool')}"
