"""MCP servers: those that the user's own settings name, and those of a project that the user said yes to."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct, convert

from lamella.errors import SettingError
from lamella.settings.configuration import Origin
from lamella.settings.model import ServerSettings
from lamella.wiring.services import Services, read_services
from lamella.wiring.trust import check_server, open_trust

if TYPE_CHECKING:
    from lamella.adapters.tools.mcp.servers import ToolServers
    from lamella.adapters.tools.mcp.session import ServerSpec

# It stands in front of the names of tools, which providers let have 64 letters.
_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 24
_SLOWEST = 600


class NamedServer(Struct, frozen=True, kw_only=True):
    """A server by its name, where it was named, and the place that people say yes to: its command or address."""

    name: str
    settings: ServerSettings
    origin: Origin
    folder: Path | None = None

    @property
    def is_theirs(self) -> bool:
        """Whether only a project's file names it, which may be somebody else's."""
        return self.origin is Origin.PROJECT

    @property
    def place(self) -> str:
        """All that decides what is started and what it is given, on a line."""
        own = self.settings
        may = " (may change things)" if own.writes else ""
        if own.url is not None:
            return f"{self.name}: {own.url}{_tell_variables([own.token] if own.token else [])}{may}"
        command = shlex.join([own.command or "", *own.args])
        where = f" in {self.folder}" if self.folder else ""
        return f"{self.name}: {command}{where}{_tell_variables(own.env)}{may}"


def list_servers(services: Services) -> Sequence[NamedServer]:
    """Every server that settings name, by name. A project's file takes the place of none of the user's own."""
    found: dict[str, NamedServer] = {}
    # Nearer places come later; what is the user's own comes last of all.
    for origin, values in sorted(services.surroundings.found, key=lambda one: one[0] is not Origin.PROJECT):
        file = services.surroundings.files.get(origin)
        for name, settings in convert(values.get("mcp", {}), dict[str, ServerSettings]).items():
            folder = file.parent.resolve() if origin is Origin.PROJECT and file is not None else None
            found[name] = NamedServer(name=name, settings=settings, origin=origin, folder=folder)
    return [_check(found[name]) for name in sorted(found)]


def is_trusted(server: NamedServer) -> bool:
    """Whether it may be started: the user named it, or said yes to it."""
    return not server.is_theirs or open_trust().covers("mcp", server.place)


def find_place(given: str, services: Services) -> str:
    """A server's place, by the server's name or as it is shown; one that nobody names now is taken as it was shown."""
    named = {server.name: server.place for server in list_servers(services) if server.is_theirs}
    if given in named:
        return named[given]
    if ": " not in given:
        raise SettingError(f"No project here names an MCP server {given}.", hint="Give the place as it was shown.")
    return given


def open_servers(services: Services | None = None) -> "ToolServers":
    """The tools of all servers that are named. Nothing is started, and nobody is asked, before tools are wanted."""
    from lamella.adapters.tools.mcp.servers import ToolServers

    services = services or read_services()
    return ToolServers(lambda: list(_describe_all(services)))


def _describe_all(services: Services) -> Iterator["ServerSpec"]:
    for server in list_servers(services):
        if server.is_theirs:
            check_server(server.name, server.place, services=services)
        yield describe_server(server)


def describe_server(server: NamedServer) -> "ServerSpec":
    """How a server is started or reached, with the variables that it was listed to get."""
    from lamella.adapters.tools.mcp.session import ServerSpec

    own = server.settings
    if own.url is not None:
        token = _read_variable(own.token, server) if own.token else ""
        return ServerSpec(name=server.name, url=own.url, token=token, seconds=own.seconds, writes=own.writes)
    return ServerSpec(
        name=server.name,
        # Not as a path: ``./it`` would become ``it``, which is looked for elsewhere.
        command=(os.path.expanduser(own.command or ""), *own.args),  # noqa: PTH111
        environment={name: _read_variable(name, server) for name in own.env},
        folder=None if server.folder is None else str(server.folder),
        seconds=own.seconds,
        writes=own.writes,
    )


def _read_variable(name: str, server: NamedServer) -> str:
    value = os.environ.get(name)
    if value is None:
        raise SettingError(
            f"The MCP server {server.name} is to get {name}, which is not set.",
            hint="Set the variable, or take it out of the server's settings.",
        )
    return value


def _tell_variables(names: Sequence[str]) -> str:
    return f" (gets {', '.join(sorted(names))})" if names else ""


def _check(server: NamedServer) -> NamedServer:
    wrong = _find_wrong(server)
    if wrong is not None:
        raise SettingError(
            f"The MCP server {server.name!r} {wrong}.",
            hint='As in: mcp.files = { command = "npx", args = ["-y", "a-server"] }, or { url = "https://…/mcp" }.',
        )
    return server


def _find_wrong(server: NamedServer) -> str | None:
    own = server.settings
    if not _NAME.fullmatch(server.name) or len(server.name) > _LONGEST:
        return f"has a name that is no word of at most {_LONGEST} plain letters, digits and single marks"
    if (own.command is None) == (own.url is None):
        return "has neither a command nor a url" if own.url is None else "has a command and a url"
    if own.command is not None and (not own.command.strip() or own.token is not None):
        return "has an empty command" if not own.command.strip() else "has a token, which is for a url"
    if own.command is not None and not server.is_theirs and _depends_on_folder(own.command):
        return f"has the command {own.command}, which is another one in every folder: write its whole path"
    for name in (*own.env, *([] if own.token is None else [own.token])):
        if not _VARIABLE.fullmatch(name):
            told = name.partition("=")[0]
            return f"is to get {told!r} with more than the name of a variable; the value stays in the environment"
    if not 0 < own.seconds <= _SLOWEST:
        return f"waits {own.seconds:g} seconds, and from 0 to {_SLOWEST} may be waited"
    return None if own.url is None else _find_wrong_address(own.url)


def _depends_on_folder(command: str) -> bool:
    """Whether what is started depends on where somebody stands; a project's own has the project's folder."""
    return "/" in command and not command.startswith(("/", "~"))


def _find_wrong_address(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "has a url that is none"
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
        return "has a url that is none of http or https"
    return "has a password in its url: name a variable as its token" if parts.username or parts.password else None
