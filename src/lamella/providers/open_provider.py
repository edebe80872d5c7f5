"""Open the provider of a model by the model's name, and look up what follows from that name.

``open_provider`` returns a provider. Missing settings, packages and keys raise an error before anything is sent. API
keys are passed in by the names of their environment variables. A key goes into the provider only: no message and no
``repr`` contains it. ``get_context_window``, ``supports_images``, ``supports_tools`` and ``model_trust_key`` return a
model's window, its abilities, and the server it is sent to.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from lamella.errors import AuthenticationError, SettingError
from lamella.files import resolve_path
from lamella.ports import ModelProvider, ModelRegistry
from lamella.providers.entry import (
    ProviderEntry,
    ProviderOptions,
    check_sdk_installed,
    find_api_key,
    validate_key_and_address,
)
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import (
    COMPATIBLE_EXAMPLE,
    MODEL_SYNTAXES,
    find_provider_entry,
    is_local_model,
    server_key_variable,
)

__all__ = [
    "DEMO_MODEL",
    "get_context_window",
    "is_local_model",
    "model_trust_key",
    "provider_trust_key",
    "server_key_variable",
    "supports_images",
    "supports_tools",
]


def open_provider(
    model: str, *, keys: Mapping[str, str], models: ModelRegistry | None = None, options: ProviderOptions | None = None
) -> ModelProvider:
    """Return a provider for a model.

    ``model`` is the name that later requests to the provider carry. ``keys`` maps environment variable names to API
    keys.
    """
    options, models = options or ProviderOptions(), models or BuiltInModelProfiles()
    row = get_entry_for_model(model, models)
    if row.package is not None:
        check_sdk_installed(row.package)
    assert row.create_provider is not None, "rows that nothing opens are not found"
    return row.create_provider(model, key=_get_api_key(row, keys), models=models, options=options)


def get_entry_for_model(model: str, models: ModelRegistry) -> ProviderEntry:
    """Return the registry entry of the provider that serves a model, or raise an error if there is none."""
    prefix, colon, rest = model.partition(":")
    row = find_provider_entry(prefix)
    if not colon and (row is None or row.name_syntax):
        # Models with known profiles need no provider prefix, so their maker is looked up.
        row = find_provider_entry(models.get_model_profile(model).provider)
        if row is None or row.create_provider is None or not row.needs_key:
            raise SettingError(
                f"Unknown model: {model!r}", hint=f"Give the model with its provider, as one of: {MODEL_SYNTAXES}."
            )
        return row
    if row is None or row.create_provider is None or not row.accepts_model_name(rest):
        raise SettingError(
            f"There is no provider {prefix!r}.",
            hint=f"Name a model as one of: {MODEL_SYNTAXES}. Any server that speaks OpenAI's API: {COMPATIBLE_EXAMPLE}.",
        )
    if row.name_syntax == "NAME" and not rest.strip():
        raise SettingError(f"{model!r} names no model.", hint=f"Give its name after the colon: {prefix}:NAME.")
    return row


def _get_api_key(entry: ProviderEntry, keys: Mapping[str, str]) -> str:
    """Return the API key of a provider, or an empty string if it needs none. Raises an error if it is missing."""
    found = find_api_key(entry, keys)
    if found is None and entry.needs_key:
        raise AuthenticationError(
            f"There is no key for {entry.display_name}.",
            hint=f"Set {' or '.join(entry.key_variables)} in the environment, or use the model local, which needs none.",
        )
    if found is None or not entry.needs_key:
        return found[1] if found else ""
    name, key = found
    # Only the key is checked here. The address is a valid dummy, because the registry entry has none.
    validate_key_and_address(provider=f"{entry.display_name}, in {name},", key=key, address="https://localhost")
    return key


# The model that ships with Lamella and runs in this process. It needs no key and no server.
DEMO_MODEL = "local"


def supports_images(model: str, models: ModelRegistry) -> bool:
    """Return whether a model may be sent images. Models with unknown support are tried; local models get none."""
    return not is_local_model(model) and models.get_model_profile(model).sees is not False


def supports_tools(model: str, models: ModelRegistry) -> bool:
    """Return whether a model may be offered tools. Models with unknown support are tried.

    Models that run in this process are offered no tools unless their profile says that they can call them.
    """
    known = models.get_model_profile(model).calls_tools
    return not is_local_model(model) if known is None else known


def get_context_window(model: str, models: ModelRegistry) -> int | None:
    """Return the size of a model's context window in tokens, or None if it is unknown."""
    if not is_local_model(model):
        return models.get_model_profile(model).window
    from lamella.providers.local import LlamaServerOptions  # only local models need the engine

    return LlamaServerOptions().window


def model_trust_key(model: str, models: ModelRegistry) -> str | None:
    """Return the destination of a model's requests in the form in which users trust it.

    The form names a server, a provider's model or a weights file. It is None for the model that ships with Lamella.
    Two spellings of the same destination give the same key.
    """
    # Imported here because the other functions of this module need neither.
    from lamella.providers.open_provider import get_entry_for_model
    from lamella.providers.registry import get_server_address

    row = get_entry_for_model(model, models)
    rest = model.partition(":")[2] if find_provider_entry(model.partition(":")[0]) is row else model
    if row.name_syntax.startswith("URL"):
        parts = urlsplit(get_server_address(model))
        rest = urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), "", ""))
    elif row.name_syntax not in ("", "NAME"):
        rest = str(resolve_path(rest))
    return f"{row.names[0]}:{rest}" if row.name_syntax else None


def provider_trust_key(name: str) -> str | None:
    """Return the prefix of the trust keys of a provider whose models are addressed by name.

    None if ``name`` is no such provider.
    """
    row = find_provider_entry(name)
    return row.names[0] if row is not None and row.create_provider is not None and row.name_syntax == "NAME" else None
