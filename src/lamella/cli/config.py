"""``lamella config``: show settings and where their values come from, and change settings files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import click
import typer
from msgspec import convert, to_builtins
from msgspec.structs import asdict

from lamella.cli.access import JsonOption
from lamella.cli.errors import CliHints, exit_code, print_failure
from lamella.cli.output import escape_to_short_line, print_json, print_result, print_text
from lamella.errors import UsageError
from lamella.schemas.catalog import (
    ConfigJson,
    NewChatSettingsJson,
    RemovedSettingJson,
    SettingsFileJson,
    SettingValueJson,
    WrittenSettingJson,
    configuration_to_json,
)
from lamella.schemas.catalog import settings_to_json as resolved_settings_to_json
from lamella.wiring import (
    DEMO_MODEL,
    SETTING_NAMES,
    SETTINGS_FILE_NAME,
    ResolvedSettings,
    ServiceContainer,
    SettingOrigin,
    check_name,
    create_settings_file,
    default_settings_for,
    find_model_problem,
    find_project_settings_file,
    get_user_file_path,
    is_same_file,
    list_key_variables,
    list_setting_errors,
    load_configuration,
    mask_url_secrets,
    read_services,
    set_in_file,
    unset_in_file,
)

# Settings that get a default fitting the model when a conversation starts.
_MODEL_DEPENDENT_SETTINGS = ("layout", "window", "reserve", "system")

config_app = typer.Typer(name="config", help="Show and change settings.")


@config_app.callback()
def config() -> None:
    """Show and change settings."""


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
    keys = {name: "set" if is_set else "not set" for name, is_set in list_key_variables().items()}
    if as_json:
        if bad:
            raise bad[0]
        files = {str(origin): str(path) for origin, path in resolved.files.items()}
        body = configuration_to_json(to_builtins(resolved.settings), resolved.origins, files, mask_url_secrets)
        print_json(ConfigJson(**asdict(body), keys=keys, chat=_new_conversation_settings(services, model)))
        return 0
    for name, value in settings_to_json(resolved).items():
        print_text(f"{name:<20}{resolved.origins[name]:<14}{escape_to_short_line(format_setting_value(value))}")
    for name, status in {**_settings_file_paths(resolved), **keys}.items():
        print_text(f"{name:<20}{escape_to_short_line(status)}")
    for error in bad:
        print_failure(error, CliHints(), as_json=False)
    if not bad:
        print_text(f"{'a new chat':<20}{escape_to_short_line(_format_new_conversation(services, model))}")
    return max(map(exit_code, bad), default=0)


_NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Setting, or an entry of a table such as serve.port.",
        autocompletion=lambda incomplete: [name for name in SETTING_NAMES if name.startswith(incomplete)],
    ),
]
_ProjectOption = Annotated[
    bool, typer.Option("--project", help="Use the project's lamella.toml: the nearest one, or a new one here.")
]


@config_app.command()
def get(*, name: _NameArgument, as_json: JsonOption = False) -> None:
    """Print the value of one setting.

    lamella config get model
    """
    setting, _, entry = name.partition(".")
    check_name(setting)
    resolved = read_services().resolved
    value = settings_to_json(resolved)[setting]
    if entry:
        if not isinstance(value, Mapping) or entry not in value:
            raise UsageError(f"{setting} has no {entry}.", hint=f"See: lamella config get {setting}")
        value = value[entry]
    if as_json:
        print_json(SettingValueJson(name=name, value=value, origin=str(resolved.origins[setting])))
    else:
        print_text(format_setting_value(value))


@config_app.command("set")
def set_value(
    *,
    name: _NameArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="New value; a table is written as JSON.")],
    project: _ProjectOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one setting into your settings file; comments and other settings stay as they are."""
    path = _settings_file(is_project=project)
    written = set_in_file(path, name, value)
    line = f"{escape_to_short_line(name)} = {escape_to_short_line(format_setting_value(written))} in {escape_to_short_line(str(path))}"
    print_result(line, WrittenSettingJson(name=name, value=written, file=str(path)), as_json=as_json)
    setting = name.partition(".")[0]
    resolved = load_configuration()
    origin = resolved.origins[setting]
    if origin is not (SettingOrigin.PROJECT if project else SettingOrigin.USER):
        where = resolved.describe_setting_origins([setting])
        print_text(f"note: {escape_to_short_line(where or str(origin))} overrides it here.", err=True)


@config_app.command()
def unset(*, name: _NameArgument, project: _ProjectOption = False, as_json: JsonOption = False) -> None:
    """Remove one setting from your settings file."""
    path = _settings_file(is_project=project)
    removed = unset_in_file(path, name)
    line = f"{escape_to_short_line(name)} {'was removed from' if removed else 'is not set in'} {escape_to_short_line(str(path))}"
    print_result(line, RemovedSettingJson(name=name, removed=removed, file=str(path)), as_json=as_json)


@config_app.command()
def edit(*, project: _ProjectOption = False, as_json: JsonOption = False) -> int:
    """Open your settings file in your editor ($VISUAL or $EDITOR), and check it afterwards."""
    path = _settings_file(is_project=project)
    create_settings_file(path)
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        raise UsageError(
            f"The editor cannot be used: {error.message}.", hint=f"Set EDITOR, or edit the file yourself: {path}"
        ) from error
    found = list_setting_errors(read_services())
    if as_json:
        if found:
            raise found[0]
        print_json(SettingsFileJson(file=str(path)))
    for one in found:
        print_failure(one, CliHints(), as_json=False)
    return max(map(exit_code, found), default=0)


@config_app.command("path")
def print_path(*, project: _ProjectOption = False, as_json: JsonOption = False) -> None:
    """Print the path of your settings file, whether or not it exists."""
    path = _settings_file(is_project=project)
    print_result(escape_to_short_line(str(path)), SettingsFileJson(file=str(path)), as_json=as_json)


def _settings_file(*, is_project: bool) -> Path:
    """Return the user's settings file, or the project's: the nearest one, or the one that would be created here."""
    if not is_project:
        return get_user_file_path()
    found = find_project_settings_file()
    is_own = found is not None and is_same_file(found, get_user_file_path())
    return Path.cwd() / SETTINGS_FILE_NAME if found is None or is_own else found


def _new_conversation_settings(services: ServiceContainer, requested_model: str | None) -> NewChatSettingsJson:
    """Return the settings of a conversation that starts now, and what its model still lacks."""
    model = requested_model or services.settings.model or DEMO_MODEL
    fitting = default_settings_for(model, services=services)
    settings = {name: fitting.get(name, getattr(services.settings, name)) for name in _MODEL_DEPENDENT_SETTINGS}
    unready = find_model_problem(model, is_named=requested_model is not None, services=services)
    missing = None if unready is None else mask_url_secrets(unready.message)
    return convert({**settings, "model": mask_url_secrets(model), "missing": missing}, NewChatSettingsJson)


def _format_new_conversation(services: ServiceContainer, model: str | None) -> str:
    chat = _new_conversation_settings(services, model)
    parts = f"model {chat.model}, layout {chat.layout}, window {chat.window:,}, reserve {chat.reserve:,}"
    return f"{parts}; it cannot be used yet: {chat.missing}" if chat.missing else parts


def settings_to_json(resolved: ResolvedSettings) -> dict[str, object]:
    """Return the values as JSON data, without passwords in URLs and without unset entries of tables."""
    return resolved_settings_to_json(to_builtins(resolved.settings), mask_url_secrets)


def format_setting_value(value: object) -> str:
    """Return a value on one line: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value, ensure_ascii=False)


def _settings_file_paths(resolved: ResolvedSettings) -> dict[str, str]:
    missing = {
        SettingOrigin.USER: f"{get_user_file_path()} (not found)",
        SettingOrigin.PROJECT: "not found in this folder or above",
    }
    return {origin: str(resolved.files.get(origin, description)) for origin, description in missing.items()}
