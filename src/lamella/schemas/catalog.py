"""JSON bodies of health checks, runners, tools, models, settings, access tokens, trusted locations and MCP servers.

Models have the fields that clients of the OpenAI and Anthropic APIs read as well. Settings have no secrets, and access
tokens are described by name, owner and scope, never by the token itself.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from lamella.core.artifacts.model import ToolDefinition
from lamella.schemas.body import JsonBody, VersionedBody
from lamella.schemas.formatting import format_decimal

if TYPE_CHECKING:
    from lamella.profiles import ModelFacts


class HealthJson(JsonBody, frozen=True, kw_only=True):
    """The state of the process: whether it answers, or accepts requests."""

    status: Literal["ok", "ready", "stopping"]


class RunnerJson(JsonBody, frozen=True, kw_only=True):
    """A runner: a way to answer a question."""

    name: str
    does: Annotated[str, Meta(description="How it answers.")]
    usual: Annotated[bool, Meta(description="Whether the settings choose it.")]


class RunnerListJson(VersionedBody, frozen=True, kw_only=True):
    """The available runners."""

    runners: Sequence[RunnerJson]


def runners_to_json(known: Mapping[str, str], *, default: str) -> RunnerListJson:
    """Return every runner with its description, and which one the settings choose."""
    return RunnerListJson(
        runners=[RunnerJson(name=name, does=does, usual=name == default) for name, does in known.items()]
    )


class ToolJson(JsonBody, frozen=True, kw_only=True):
    """A tool, with the schema of its arguments."""

    name: str
    description: str
    parameters: Annotated[Mapping[str, object], Meta(description="JSON schema of the arguments.")]


class ToolListJson(VersionedBody, frozen=True, kw_only=True):
    """Tools that models may call."""

    tools: Sequence[ToolJson]


def tools_to_json(tools: Sequence[ToolDefinition]) -> ToolListJson:
    """Return all tools by name, with the schema of their arguments."""
    return ToolListJson(
        tools=[
            ToolJson(name=one.name, description=one.description, parameters=json.loads(one.parameters)) for one in tools
        ]
    )


def format_argument_names(tool: ToolDefinition) -> list[str]:
    """Return the argument names of a tool, required ones first; optional ones end with a question mark."""
    schema = json.loads(tool.parameters)
    needed = schema.get("required", [])
    return [*needed, *(f"{name}?" for name in schema.get("properties", {}) if name not in needed)]


class ModelPricesJson(JsonBody, frozen=True, kw_only=True):
    """Prices per million tokens."""

    currency: Literal["USD"] = "USD"
    input: str
    cached: Annotated[str, Meta(description="Input that the cache serves.")]
    cache_write: Annotated[str, Meta(description="Input that the cache stores.")]
    output: str


class ModelCacheJson(JsonBody, frozen=True, kw_only=True):
    """The prefix cache of a model."""

    minimum: Annotated[int, Meta(description="Tokens of the shortest prefix that it keeps.")]
    lifetime: Annotated[int | None, Meta(description="Seconds until an entry expires; null if it does not.")]


class ModelJson(JsonBody, frozen=True, kw_only=True):
    """An available model, with the fields of the OpenAI and Anthropic APIs."""

    id: str
    object: Literal["model"] = "model"
    type: Literal["model"] = "model"
    display_name: str
    created: Annotated[int, Meta(description="Always 0: Lamella does not know the date, which clients expect.")] = 0
    created_at: str = "1970-01-01T00:00:00Z"
    owned_by: str = "lamella"
    usual: Annotated[bool, Meta(description="Whether new conversations use it.")]
    window: Annotated[int | None, Meta(description="Tokens of its context window; null if unknown.")]
    prices: Annotated[ModelPricesJson | None, Meta(description="Today's; null if unknown.")]
    images: Annotated[bool | None, Meta(description="Whether it accepts pictures; null if unknown.")]
    tools: Annotated[bool | None, Meta(description="Whether it calls tools; null if unknown.")]
    local: Annotated[bool, Meta(description="Whether it runs in the server's process.")]
    cache: ModelCacheJson


class ModelListJson(VersionedBody, frozen=True, kw_only=True):
    """Models that every caller may name."""

    object: Literal["list"] = "list"
    data: Sequence[ModelJson]
    has_more: bool = False
    first_id: str | None
    last_id: str | None


def models_to_json(models: Mapping[str, "ModelFacts"], *, default: str) -> ModelListJson:
    """Return models by name; ``default`` is the default model of new conversations."""
    names = list(models)
    return ModelListJson(
        data=[model_to_json(name, facts, default=default) for name, facts in models.items()],
        first_id=names[0] if names else None,
        last_id=names[-1] if names else None,
    )


def model_to_json(name: str, facts: "ModelFacts", *, default: str) -> ModelJson:
    """Return one model."""
    prices = facts.prices
    return ModelJson(
        id=name,
        display_name=name,
        usual=name == default,
        window=facts.window,
        prices=None
        if prices is None
        else ModelPricesJson(
            input=format_decimal(prices.input),
            cached=format_decimal(prices.cached),
            cache_write=format_decimal(prices.cache_write),
            output=format_decimal(prices.output),
        ),
        images=facts.accepts_images,
        tools=facts.calls_tools,
        local=facts.is_local,
        cache=ModelCacheJson(minimum=facts.cache_minimum, lifetime=facts.cache_lifetime),
    )


# Settings, and the origin of each value.

Mask = Callable[[str], str]


class ResolvedSettingJson(JsonBody, frozen=True, kw_only=True):
    """A setting and its origin."""

    value: object
    origin: Annotated[str, Meta(description="Where the value comes from.")] = field(name="from")


class SettingValueJson(ResolvedSettingJson, frozen=True, kw_only=True):
    """The value of one setting, or of an entry of a table."""

    name: str


class SettingsFileJson(JsonBody, frozen=True, kw_only=True):
    """The path of a settings file."""

    file: str


class WrittenSettingJson(SettingsFileJson, frozen=True, kw_only=True):
    """A value that was written into a settings file."""

    name: str
    value: object


class RemovedSettingJson(SettingsFileJson, frozen=True, kw_only=True):
    """A setting that a settings file does not have any more."""

    name: str
    removed: Annotated[bool, Meta(description="Whether the file had it.")]


class ConversationSettingsJson(VersionedBody, frozen=True, kw_only=True):
    """A conversation's own settings, and all effective ones."""

    conversation: Annotated[str, Meta(description="Key of the conversation, which never changes.")]
    settings: Mapping[str, object]
    in_force: Mapping[str, ResolvedSettingJson]


class ServerSettingsJson(JsonBody, frozen=True, kw_only=True):
    """Every setting, and the files that were read."""

    settings: Mapping[str, ResolvedSettingJson]
    files: Annotated[Mapping[str, str], Meta(description="Paths of settings files by origin.")]


class NewChatSettingsJson(JsonBody, frozen=True, kw_only=True):
    """The model and the settings of a conversation that starts now."""

    model: str
    layout: str
    window: int
    reserve: int
    system: object
    missing: Annotated[str | None, Meta(description="What the model lacks before it can be used.")]


class ConfigJson(ServerSettingsJson, frozen=True, kw_only=True):
    """Every setting, API keys that are set, and the settings of a conversation that starts now."""

    keys: Annotated[Mapping[str, str], Meta(description="For each variable of an API key, whether it is set.")]
    chat: NewChatSettingsJson


def chat_settings_to_json(
    conversation_key: str,
    own_settings: Mapping[str, object],
    values: Mapping[str, object],
    origins: Mapping[str, str],
    *,
    names: Sequence[str],
    mask: Mask,
) -> ConversationSettingsJson:
    """Return a conversation's own settings, and the effective values of the settings in ``names``."""
    shown = settings_to_json(values, mask)
    in_force = {
        name: ResolvedSettingJson(value=shown.get(name), origin=_format_origin(origins[name])) for name in names
    }
    return ConversationSettingsJson(conversation=conversation_key, settings=dict(own_settings), in_force=in_force)


def _format_origin(origin: str) -> str:
    return "conversation" if str(origin) == "caller" else str(origin)


def configuration_to_json(
    values: Mapping[str, object], origins: Mapping[str, str], files: Mapping[str, str], mask: Mask
) -> ServerSettingsJson:
    """Return every setting with its origin, and the files that were read."""
    shown = settings_to_json(values, mask)
    return ServerSettingsJson(
        settings={name: ResolvedSettingJson(value=value, origin=str(origins[name])) for name, value in shown.items()},
        files=files,
    )


def settings_to_json(values: Mapping[str, object], mask: Mask) -> dict[str, object]:
    """Return the values as JSON, without passwords in addresses and without unset fields of tables."""
    return {name: _to_shown_value(value, mask) for name, value in values.items()}


def _to_shown_value(value: object, mask: Mask) -> object:
    if isinstance(value, dict):
        inner = {name: _to_shown_value(one, mask) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in (None, {})}
    return mask(value) if isinstance(value, str) else value


# Access tokens.


class TokenJson(JsonBody, frozen=True, kw_only=True):
    """An access token for the server."""

    name: str
    scope: str
    owner: Annotated[
        str | None, Meta(description="Owner whose conversations the token can read; null for all conversations.")
    ]
    since: str


class CreatedTokenJson(TokenJson, frozen=True, kw_only=True):
    """An access token that was created."""

    token: Annotated[str, Meta(description="The token itself, which is shown only once.")]


class TokenListJson(VersionedBody, frozen=True, kw_only=True):
    """All access tokens, oldest first."""

    tokens: Sequence[TokenJson]


class RemovedTokenJson(VersionedBody, frozen=True, kw_only=True):
    """An access token that was revoked."""

    removed: str


# Trusted locations.


class TrustJson(VersionedBody, frozen=True, kw_only=True):
    """A trusted location; ``new`` if it was not trusted before."""

    field: Annotated[str, Meta(description="The setting that names it.")]
    place: str
    new: bool


class TrustStateJson(VersionedBody, frozen=True, kw_only=True):
    """A location, and whether it is trusted now."""

    field: Annotated[str, Meta(description="The setting that names it.")]
    place: str
    trusted: bool
    new: Annotated[bool, Meta(description="Whether it was not trusted before; only when it was added.")] | UnsetType = (
        UNSET
    )


class TrustedPlaceJson(JsonBody, frozen=True, kw_only=True):
    """A trusted location, and the day it was added."""

    field: str
    place: str
    since: str


class TrustListJson(VersionedBody, frozen=True, kw_only=True):
    """The trusted locations, oldest first."""

    file: Annotated[str, Meta(description="The file that lists them; not over HTTP.")] | UnsetType = UNSET
    trusted: Sequence[TrustedPlaceJson]


# MCP servers.


class McpServerJson(JsonBody, frozen=True, kw_only=True):
    """A configured MCP server."""

    name: str
    place: Annotated[str, Meta(description="Its command or address.")]
    origin: Annotated[str, Meta(description="Which settings name it.")] = field(name="from")
    trusted: bool


class PluginJson(JsonBody, frozen=True, kw_only=True):
    """A plugin that a package brings; ``problem`` says why it is skipped, and is null if it is used."""

    group: str
    name: str
    package: str
    problem: str | None


class PluginListJson(VersionedBody, frozen=True, kw_only=True):
    """The installed plugins."""

    plugins: Sequence[PluginJson]


class McpServerListJson(VersionedBody, frozen=True, kw_only=True):
    """The configured MCP servers."""

    servers: Sequence[McpServerJson]


class McpToolJson(JsonBody, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    name: str
    description: str


class McpReportJson(JsonBody, frozen=True, kw_only=True):
    """The result of connecting to an MCP server."""

    name: str
    error: Annotated[str | None, Meta(description="Why it cannot be used.")]
    tools: Sequence[McpToolJson]
    notes: Sequence[str]


class McpReportListJson(VersionedBody, frozen=True, kw_only=True):
    """The results of connecting to MCP servers."""

    servers: Sequence[McpReportJson]


# Other commands.


class CompletionJson(VersionedBody, frozen=True, kw_only=True):
    """A script that completes commands in a shell, or the file that it was written to."""

    shell: str
    script: str | UnsetType = UNSET
    installed: Annotated[str, Meta(description="Path of the installed script.")] | UnsetType = UNSET
