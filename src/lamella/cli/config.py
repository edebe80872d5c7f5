"""``lamella config``: print every setting and where its value comes from."""

import json
from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.errors import CliHints, exit_code, print_failure
from lamella.cli.output import escape_line, print_json, print_text
from lamella.schemas.catalog import configuration_to_json
from lamella.schemas.catalog import settings_to_json as list_shown
from lamella.wiring import (
    DEMO_MODEL,
    ResolvedSettings,
    ServiceContainer,
    SettingOrigin,
    default_settings_for,
    list_key_variables,
    list_setting_errors,
    mask_secrets,
    model_not_ready_error,
    read_services,
    user_file_path,
)

# Settings that get a default fitting the model when a conversation starts.
_MODEL_DEPENDENT_SETTINGS = ("layout", "window", "reserve", "system")

config_app = typer.Typer(name="config", help="Show settings and where they come from.")


@config_app.callback()
def config() -> None:
    """Show settings and where they come from."""


@config_app.command()
def show(
    *,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show a new chat's settings for this model.", show_default="setting `model`, or local"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show every setting with its value and origin.

    The origin is the default, a profile, a settings file or the environment. The last line shows the model settings of
    a new chat. Exits with 2 if a value is invalid.
    """
    services = read_services()
    resolved, bad = services.resolved, list_setting_errors(services)
    keys = {name: "set" if there else "not set" for name, there in list_key_variables().items()}
    if as_json:
        if bad:
            raise bad[0]
        print_json(
            {
                **configuration_to_json(resolved, mask_secrets),
                "keys": keys,
                "chat": _new_conversation_settings(services, model),
            }
        )
        return 0
    for name, value in settings_to_json(resolved).items():
        print_text(f"{name:<20}{resolved.origins[name]:<14}{escape_line(format_setting_value(value))}")
    for name, told in {**_settings_file_paths(resolved), **keys}.items():
        print_text(f"{name:<20}{escape_line(told)}")
    for error in bad:
        print_failure(error, CliHints(), as_json=False)
    if not bad:
        print_text(f"{'a new chat':<20}{escape_line(_format_new_conversation(services, model))}")
    return max(map(exit_code, bad), default=0)


def _new_conversation_settings(services: ServiceContainer, requested_model: str | None) -> dict[str, object]:
    """Return the settings of a conversation that starts now, and what its model still lacks (``missing``)."""
    model = requested_model or services.settings.model or DEMO_MODEL
    fitting = default_settings_for(model, services=services)
    settings = {name: fitting.get(name, getattr(services.settings, name)) for name in _MODEL_DEPENDENT_SETTINGS}
    unready = model_not_ready_error(model, is_named=requested_model is not None, services=services)
    return {"model": mask_secrets(model), **settings, "missing": unready and mask_secrets(unready.message)}


def _format_new_conversation(services: ServiceContainer, model: str | None) -> str:
    chat = _new_conversation_settings(services, model)
    told = f"model {chat['model']}, layout {chat['layout']}, window {chat['window']:,}, reserve {chat['reserve']:,}"
    return f"{told}; it cannot be used yet: {chat['missing']}" if chat["missing"] else told


def settings_to_json(resolved: ResolvedSettings) -> dict[str, object]:
    """Return the values as JSON data, without passwords in URLs and without unset entries of tables."""
    return list_shown(resolved, mask_secrets)


def format_setting_value(value: object) -> str:
    """Return a value on one line: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value, ensure_ascii=False)


def _settings_file_paths(resolved: ResolvedSettings) -> dict[str, str]:
    missing = {
        SettingOrigin.USER: f"{user_file_path()} (not found)",
        SettingOrigin.PROJECT: "not found in this folder or above",
    }
    return {origin: str(resolved.files.get(origin, told)) for origin, told in missing.items()}
