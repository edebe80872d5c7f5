"""MCP servers: those in the user's own settings, and those of a project that the user has allowed."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct, convert

from lamella.errors import SettingError
from lamella.settings.loading import SettingOrigin
from lamella.settings.model import McpServerSettings
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import check_mcp_server_is_trusted, open_trust_file

if TYPE_CHECKING:
    from lamella.tools.mcp import McpServers, McpServerSpec

# The server's name is the prefix of its tools' names, and providers limit those to 64 letters.
_SERVER_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_SERVER_NAME_CHARS = 24
_MAX_TIMEOUT_SECONDS = 600


class McpServerEntry(Struct, frozen=True, kw_only=True):
    """A configured MCP server, the source of its settings, and the folder it runs in."""

    name: str
    settings: McpServerSettings
    origin: SettingOrigin
    folder: Path | None = None

    @property
    def is_from_project(self) -> bool:
        """Return whether only a project file names the server, which may come from another author."""
        return self.origin is SettingOrigin.PROJECT

    @property
    def trust_line(self) -> str:
        """Return one line with everything that decides what is started and what it gets.

        The user allows exactly this line. A change in any part of it needs permission again.
        """
        own = self.settings
        may = " (may change things)" if own.writes else ""
        if own.url is not None:
            return f"{self.name}: {own.url}{_format_variables([own.token] if own.token else [])}{may}"
        command = shlex.join([own.command or "", *own.args])
        where = f" in {self.folder}" if self.folder else ""
        return f"{self.name}: {command}{where}{_format_variables(own.env)}{may}"


def list_servers(services: ServiceContainer) -> Sequence[McpServerEntry]:
    """Return all configured servers, sorted by name; a project file cannot replace a server of the user's own."""
    found: dict[str, McpServerEntry] = {}
    # Later entries override earlier ones: the project file comes first, then the user's own sources by precedence.
    for origin, values in sorted(
        services.settings_sources.values_by_origin, key=lambda one: one[0] is not SettingOrigin.PROJECT
    ):
        file = services.settings_sources.files.get(origin)
        for name, settings in convert(values.get("mcp", {}), dict[str, McpServerSettings]).items():
            folder = file.parent.resolve() if origin is SettingOrigin.PROJECT and file is not None else None
            found[name] = McpServerEntry(name=name, settings=settings, origin=origin, folder=folder)
    return [_check_server(found[name]) for name in sorted(found)]


def is_trusted(server: McpServerEntry) -> bool:
    """Return whether a server may be started: the user named it or has allowed it."""
    return not server.is_from_project or open_trust_file().is_trusted("mcp", server.trust_line)


def get_server_trust_key(name_or_line: str, services: ServiceContainer) -> str:
    """Return the trust key of a server, from its name or from the line that was shown for it.

    A line for a server that is no longer configured is returned as it is. Raises ``SettingError`` for an unknown name.
    """
    named = {server.name: server.trust_line for server in list_servers(services) if server.is_from_project}
    if name_or_line in named:
        return named[name_or_line]
    if ": " not in name_or_line:
        raise SettingError(
            f"No project here names an MCP server {name_or_line}.", hint="Give the place as it was shown."
        )
    return name_or_line


def open_servers(services: ServiceContainer | None = None, *, more: Sequence["McpServerSpec"] = ()) -> "McpServers":
    """Return the tools of all configured servers; nothing is started or checked before the tools are needed.

    ``more`` are servers that the user named elsewhere. A configured server goes before one of the same name.
    """
    from lamella.tools.mcp import McpServers

    services = services or read_services()

    def list_specs() -> list["McpServerSpec"]:
        specs = {spec.name: spec for spec in more}
        return list({**specs, **{spec.name: spec for spec in _iter_server_specs(services)}}.values())

    return McpServers(list_specs)


def _iter_server_specs(services: ServiceContainer) -> Iterator["McpServerSpec"]:
    for server in list_servers(services):
        if server.is_from_project:
            check_mcp_server_is_trusted(server.name, server.trust_line, services=services)
        yield build_server_spec(server)


def build_server_spec(server: McpServerEntry) -> "McpServerSpec":
    """Return how to start or reach a server, with the values of the environment variables it gets.

    Raises ``SettingError`` if one of the variables is not set.
    """
    from lamella.tools.mcp import McpServerSpec

    own = server.settings
    if own.url is not None:
        token = _read_variable(own.token, server) if own.token else ""
        return McpServerSpec(name=server.name, url=own.url, token=token, seconds=own.seconds, writes=own.writes)
    return McpServerSpec(
        name=server.name,
        # Not with Path: it would turn ``./it`` into ``it``, which is looked up in PATH.
        command=(os.path.expanduser(own.command or ""), *own.args),  # noqa: PTH111
        environment={name: _read_variable(name, server) for name in own.env},
        folder=None if server.folder is None else str(server.folder),
        seconds=own.seconds,
        writes=own.writes,
    )


def _read_variable(name: str, server: McpServerEntry) -> str:
    value = os.environ.get(name)
    if value is None:
        raise SettingError(
            f"The MCP server {server.name} is to get {name}, which is not set.",
            hint="Set the variable, or take it out of the server's settings.",
        )
    return value


def _format_variables(names: Sequence[str]) -> str:
    return f" (gets {', '.join(sorted(names))})" if names else ""


def _check_server(server: McpServerEntry) -> McpServerEntry:
    wrong = _find_server_problem(server)
    if wrong is not None:
        raise SettingError(
            f"The MCP server {server.name!r} {wrong}.",
            hint='As in: mcp.files = { command = "npx", args = ["-y", "a-server"] }, or { url = "https://…/mcp" }.',
        )
    return server


def _find_server_problem(server: McpServerEntry) -> str | None:
    own = server.settings
    if not _SERVER_NAME.fullmatch(server.name) or len(server.name) > _MAX_SERVER_NAME_CHARS:
        return f"has a name that is no word of at most {_MAX_SERVER_NAME_CHARS} plain letters, digits and single marks"
    if (own.command is None) == (own.url is None):
        return "has neither a command nor a url" if own.url is None else "has a command and a url"
    if own.command is not None and (not own.command.strip() or own.token is not None):
        return "has an empty command" if not own.command.strip() else "has a token, which is for a url"
    if own.command is not None and not server.is_from_project and _depends_on_working_folder(own.command):
        return f"has the command {own.command}, which is another one in every folder: write its whole path"
    for name in (*own.env, *([] if own.token is None else [own.token])):
        if not _VARIABLE_NAME.fullmatch(name):
            variable = name.partition("=")[0]
            return f"is to get {variable!r} with more than the name of a variable; the value stays in the environment"
    if not 0 < own.seconds <= _MAX_TIMEOUT_SECONDS:
        return f"waits {own.seconds:g} seconds, and from 0 to {_MAX_TIMEOUT_SECONDS} may be waited"
    return None if own.url is None else _find_address_problem(own.url)


def _depends_on_working_folder(command: str) -> bool:
    """Return whether a command means another program in another working folder.

    A project's own servers always run in the project folder, so they may have such a command.
    """
    return "/" in command and not command.startswith(("/", "~"))


def _find_address_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "has a url that is none"
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
        return "has a url that is none of http or https"
    return "has a password in its url: name a variable as its token" if parts.username or parts.password else None
