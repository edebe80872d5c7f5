"""Rules of the server: what settings say of it, who may come in without a token, and where tokens are kept."""

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from lamella.errors import SettingError
from lamella.settings.files import place_user_folder
from lamella.settings.model import ServeSettings
from lamella.settings.tokens import FILE, TokenBook
from lamella.wiring.services import Services, read_services

# What a project's file may not say, since it may be somebody else's: who gets in, and by which name.
OWN = ("serve",)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POSITIVE = ("body_bytes", "body_seconds", "unread_seconds", "rate", "guesses", "runs")
_MOST_PORT = 65_535


def find_serve_rules(services: Services, *, host: str | None = None, port: int | None = None) -> ServeSettings:
    """What settings say of the server, with what a command says on top; raises for what means nothing."""
    for overreach in services.found.find_overreach(OWN):
        raise overreach
    settings = services.settings.serve
    given = {"host": settings.host if host is None else host, "port": settings.port if port is None else port}
    values = {name: getattr(settings, name) for name in ServeSettings.__struct_fields__}
    rules = ServeSettings(**{**values, **given})
    if not 0 <= rules.port <= _MOST_PORT:
        raise SettingError(f"serve.port is {rules.port}.", hint=f"Give a number from 0 to {_MOST_PORT}.")
    for name in _POSITIVE:
        if getattr(rules, name) <= 0:
            raise SettingError(f"serve.{name} is {getattr(rules, name)}.", hint="Give a number above 0.")
    for name in ("grace", "stop_seconds"):
        if getattr(rules, name) < 0:
            raise SettingError(f"serve.{name} is {getattr(rules, name)}.", hint="Give a number of seconds, or 0.")
    return rules


def needs_token(rules: ServeSettings) -> bool:
    """Whether nobody comes in without one: others than this machine can reach it, or a name of it is told to them."""
    return not is_loopback(rules.host) or bool(rules.hosts)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def list_hosts(rules: ServeSettings) -> Sequence[str]:
    """The names by which the server may be called; a request for any other was led here by somebody else."""
    bound = () if rules.host in ("0.0.0.0", "::") else (rules.host,)
    return [name.lower() for name in dict.fromkeys((*_LOOPBACK_NAMES, *bound, *rules.hosts))]


def open_tokens(services: Services | None = None) -> TokenBook:
    """The tokens that were given out: in the file that settings name, else beside the user's own settings."""
    services = services or read_services()
    for overreach in services.found.find_overreach(OWN):
        raise overreach
    named = services.settings.serve.tokens
    return TokenBook(Path(named).expanduser() if named else place_user_folder() / FILE)
