"""``lamella config``: every setting, and where its value was found."""

import json
from typing import Annotated

import typer

from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.failures import exit_code, print_failure
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.serving.settings import list_values as list_shown
from lamella.views.serving.settings import view_configuration
from lamella.wiring import (
    DEMO_MODEL,
    Configuration,
    Origin,
    Services,
    begin_settings,
    find_bad_settings,
    list_keys,
    mask,
    place_user_file,
    read_services,
    tell_unready,
)

# What a new chat gets along with its model, where nobody set it.
_CHOSEN = ("layout", "window", "reserve", "system")

config_app = typer.Typer(name="config", help="See settings and where they come from.")


@config_app.callback()
def config() -> None:
    """See settings and where they come from."""


@config_app.command()
def show(
    *,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What a new chat gets along with this model.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Every setting with its value, and whether it is the default or from a profile, a file or the environment.

    Then what a new conversation of `lamella chat` gets along with its model. Exit 2 if a value would be refused.
    """
    services = read_services()
    found, bad = services.found, find_bad_settings(services)
    keys = {name: "set" if there else "not set" for name, there in list_keys().items()}
    if as_json:
        if bad:
            raise bad[0]
        tell_json({**view_configuration(found, mask), "keys": keys, "chat": _begin_chat(services, model)})
        return 0
    for name, value in list_values(found).items():
        tell(f"{name:<20}{found.origins[name]:<14}{show_line(tell_value(value))}")
    for name, told in {**_places(found), **keys}.items():
        tell(f"{name:<20}{show_line(told)}")
    for error in bad:
        print_failure(error, ShellDoor(), as_json=False)
    if not bad:
        tell(f"{'a new chat':<20}{show_line(_tell_chat(services, model))}")
    return max(map(exit_code, bad), default=0)


def _begin_chat(services: Services, named: str | None) -> dict[str, object]:
    """What a conversation that begins now gets, and what keeps its model from being asked."""
    model = named or services.settings.model or DEMO_MODEL
    fitting = begin_settings(model, services=services)
    settings = {name: fitting.get(name, getattr(services.settings, name)) for name in _CHOSEN}
    unready = tell_unready(model, named=named is not None, services=services)
    return {"model": mask(model), **settings, "missing": unready and mask(unready.message)}


def _tell_chat(services: Services, model: str | None) -> str:
    chat = _begin_chat(services, model)
    told = f"model {chat['model']}, layout {chat['layout']}, window {chat['window']:,}, reserve {chat['reserve']:,}"
    return f"{told}; it cannot be asked yet: {chat['missing']}" if chat["missing"] else told


def list_values(found: Configuration) -> dict[str, object]:
    """The values as JSON has them, without passwords in addresses and without what tables do not say."""
    return list_shown(found, mask)


def tell_value(value: object) -> str:
    """A value on a line, as JSON has it but for a text alone."""
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value, ensure_ascii=False)


def _places(found: Configuration) -> dict[str, str]:
    missing = {Origin.USER: f"{place_user_file()} (not there)", Origin.PROJECT: "none here or above"}
    return {origin: str(found.files.get(origin, told)) for origin, told in missing.items()}
