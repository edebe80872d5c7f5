"""``lamella config``: every setting, and where its value was found."""

import json

import typer

from lamella.faces.cli.lines import show_line
from lamella.faces.cli.opened import JsonOption
from lamella.wiring import Configuration, Origin, list_keys, load_configuration, mask, place_user_file

config_app = typer.Typer(name="config", help="See settings and where they come from.")


@config_app.callback()
def config() -> None:
    """See settings and where they come from."""


@config_app.command()
def show(*, as_json: JsonOption = False) -> None:
    """Every setting with its value, and whether it is the default or from a profile, a file or the environment."""
    found = load_configuration()
    keys = {name: "set" if there else "not set" for name, there in list_keys().items()}
    if as_json:
        typer.echo(json.dumps({**_body(found), "keys": keys}, ensure_ascii=False))
        return
    for name, value in _values(found).items():
        typer.echo(f"{name:<20}{found.origins[name]:<14}{show_line(_told(value))}")
    for name, told in {**_places(found), **keys}.items():
        typer.echo(f"{name:<20}{show_line(told)}")


def _body(found: Configuration) -> dict[str, object]:
    settings = {name: {"value": value, "from": found.origins[name]} for name, value in _values(found).items()}
    files = {origin.value: str(path) for origin, path in found.files.items()}
    return {"settings": settings, "files": files}


def _values(found: Configuration) -> dict[str, object]:
    """The values as JSON has them, without passwords in addresses and without what tables do not say."""
    return {name: _shown(value) for name, value in found.settings.model_dump(mode="json").items()}


def _shown(value: object) -> object:
    if isinstance(value, dict):
        inner = {name: _shown(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in (None, {})}
    return mask(value) if isinstance(value, str) else value


def _told(value: object) -> str:
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value, ensure_ascii=False)


def _places(found: Configuration) -> dict[str, str]:
    missing = {Origin.USER: f"{place_user_file()} (not there)", Origin.PROJECT: "none here or above"}
    return {origin: str(found.files.get(origin, told)) for origin, told in missing.items()}
