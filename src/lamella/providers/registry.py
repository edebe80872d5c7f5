"""The registry of providers: one entry per provider, in the order in which lists and hints show them.

``find_provider_entry`` returns the entry of a provider, ``list_models`` the models as users type them, and
``is_local_model`` whether a model runs in this process. Chat Completions serves OpenAI and any server with a
compatible API; the Responses API has an entry under its own name and under the name of OpenAI.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import SettingError, WrongEndpointError
from lamella.plugins import PluginGroup, ProviderOpener, find_plugin, open_with_plugin
from lamella.ports import ModelProvider, ModelRegistry
from lamella.providers.entry import (
    ProviderEntry,
    ProviderOptions,
    SdkPackage,
    check_sdk_installed,
    validate_key_and_address,
)
from lamella.providers.facts import claude, gemini, gpt, others
from lamella.tokenizers.weights import LOCAL_MODEL_NAME

if TYPE_CHECKING:
    from lamella.core.messages import ModelRequest
    from lamella.profiles import ModelProfile
    from lamella.providers.wire import Body, WireFormat


def _open_anthropic(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del model  # each request names its model
    from lamella.providers.anthropic import AnthropicProvider

    return AnthropicProvider(key=key, models=models, timeout=options.timeout)


def _anthropic_wire_format() -> "WireFormat":
    from lamella.providers import anthropic as api
    from lamella.providers.wire import WireFormat, merge_extra_body

    return WireFormat(
        name="anthropic",
        provider="anthropic",
        build_request=api.build_request,
        to_http_body=merge_extra_body,
        is_answer=api.is_answer,
        is_event=api.is_first_event,
        read_reply=api.read_reply,
        read_events=api.read_streamed_reply,
    )


ANTHROPIC = ProviderEntry(
    names=("anthropic",),
    model_syntax="anthropic:NAME",
    display_name="Anthropic",
    key_variables=("ANTHROPIC_API_KEY",),
    package=SdkPackage(package="anthropic", module="anthropic", extra="anthropic"),
    create_provider=_open_anthropic,
    load_wire_format=_anthropic_wire_format,
    model_profiles=claude.MODEL_PROFILES,
    cache_profiles=claude.CACHE_PROFILES,
    image_profiles=claude.IMAGE_PROFILES,
)


# The entries: Gemini, models in this process, Chat Completions, the Responses API, and script files.


def _open_gemini(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    from lamella.providers.gemini import GeminiProvider, make_cache_manager

    store = make_cache_manager(options.cache_storage, models.get_model_profile(model))
    return GeminiProvider(key=key, models=models, timeout=options.timeout, cache_manager=store)


def _gemini_wire_format() -> "WireFormat":
    from lamella.providers import gemini as api
    from lamella.providers.wire import WireFormat

    def build(asked: "ModelRequest", profile: "ModelProfile") -> "Body":
        del profile  # this API caches without breakpoints
        return api.build_request(asked)

    return WireFormat(
        name="gemini",
        provider="google",
        build_request=build,
        to_http_body=api.to_http_body,
        is_answer=api.is_answer,
        is_event=api.is_answer,
        read_reply=api.read_reply,
        read_events=api.read_events,
    )


GEMINI = ProviderEntry(
    names=("gemini", "google"),
    model_syntax="gemini:NAME",
    display_name="Gemini",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    package=SdkPackage(package="google-genai", module="google.genai", extra="gemini"),
    create_provider=_open_gemini,
    load_wire_format=_gemini_wire_format,
    model_profiles=gemini.MODEL_PROFILES,
    cache_profiles=gemini.CACHE_PROFILES,
    image_profiles=gemini.IMAGE_PROFILES,
)


def _open_gguf(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del key, models  # unused by local weights
    check_sdk_installed(SdkPackage(package="xllamacpp", module="xllamacpp", extra="local"))
    from lamella.providers.local import LocalProvider
    from lamella.tokenizers.weights import get_verified_weights_path

    # Called for its checks only, so that a missing or damaged file is reported before the first request.
    get_verified_weights_path(model, verified_weights_file=options.hash_record)
    return LocalProvider(model=model, on_progress=options.on_progress, hash_record=options.hash_record)


def _open_local(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del model
    return _open_gguf(LOCAL_MODEL_NAME, key=key, models=models, options=options)


LOCAL_PROVIDER = ProviderEntry(
    names=(LOCAL_MODEL_NAME,),
    model_syntax=LOCAL_MODEL_NAME,
    needs_key=False,
    is_local=True,
    create_provider=_open_local,
)
GGUF_PROVIDER = ProviderEntry(
    names=("gguf",), model_syntax="gguf:PATH", needs_key=False, is_local=True, create_provider=_open_gguf
)


OPENAI_KEY_VARIABLES = ("OPENAI_API_KEY",)
OPENAI_SDK = SdkPackage(package="openai", module="openai", extra="openai")
COMPATIBLE_KEY_VARIABLE = "LAMELLA_API_KEY"
COMPATIBLE_EXAMPLE = "openai-compatible:http://localhost:8000/v1#name"


def chat_wire_format() -> "WireFormat":
    """Return the wire format of Chat Completions."""
    from lamella.providers import openai_chat as api
    from lamella.providers.wire import WireFormat, merge_extra_body

    return WireFormat(
        name="openai",
        provider="openai",
        build_request=api.build_request,
        to_http_body=merge_extra_body,
        is_answer=api.is_answer,
        is_event=api.is_event,
        read_reply=api.read_reply,
        read_events=api.read_events,
    )


def _open_openai_chat(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del model  # each request names its model
    from lamella.providers.openai_chat import OpenAIChatProvider

    return OpenAIChatProvider(key=key, models=models, timeout=options.timeout)


def get_server_address(model: str) -> str:
    """Return the server address in a model's name.

    An address that may contain a password is rejected. The error message does not repeat it.
    """
    address = model.partition(":")[2].partition("#")[0]
    if "@" in address or "?" in address:
        raise WrongEndpointError(
            "The address of the server has more in it than an address.",
            hint=f"Leave out user, password and query, and set {COMPATIBLE_KEY_VARIABLE} if the server wants a key.",
        )
    validate_key_and_address(provider="the server", key="none", address=address)
    return address


def _open_compatible(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    address, name = get_server_address(model), model.partition("#")[2]
    validate_key_and_address(provider="the server", key=key or "none", address=address)
    if not name.strip():
        raise SettingError(
            f"{address} is asked for no model.", hint=f"Give the model's name after #, as in {COMPATIBLE_EXAMPLE}."
        )
    check_sdk_installed(OPENAI_SDK)
    from lamella.providers.openai_chat import OpenAIChatProvider

    return OpenAIChatProvider(key=key, address=address, models=models, timeout=options.timeout)


def _open_local_server(
    model: str, *, key: str, models: ModelRegistry, options: ProviderOptions, address: str
) -> ModelProvider:
    del model, key  # each request names its model, and these servers need no key
    check_sdk_installed(OPENAI_SDK)
    from lamella.providers.openai_chat import OpenAIChatProvider

    return OpenAIChatProvider(key="", address=address, models=models, timeout=options.timeout)


def _make_local_server_entry(*names: str, display_name: str, port: int) -> ProviderEntry:
    """Return the entry of a program that serves models on this machine, at the port that it uses by default."""
    return ProviderEntry(
        names=names,
        model_syntax=f"{names[0]}:NAME",
        display_name=display_name,
        needs_key=False,
        create_provider=partial(_open_local_server, address=f"http://localhost:{port}/v1"),
    )


# The default ports as each program documents them (2026-11-18). A server elsewhere is named with its address.
LOCAL_SERVERS = (
    _make_local_server_entry("ollama", display_name="Ollama", port=11434),
    _make_local_server_entry("lmstudio", display_name="LM Studio", port=1234),
    _make_local_server_entry("llamacpp", "llama_cpp", display_name="llama.cpp", port=8080),
    _make_local_server_entry("vllm", display_name="vLLM", port=8000),
    _make_local_server_entry("sglang", display_name="SGLang", port=30000),
)
OPENAI_CHAT = ProviderEntry(
    names=("openai-chat",),
    model_syntax="openai-chat:NAME",
    display_name="OpenAI",
    key_variables=OPENAI_KEY_VARIABLES,
    package=OPENAI_SDK,
    create_provider=_open_openai_chat,
)
OPENAI_COMPATIBLE = ProviderEntry(
    names=("openai-compatible",),
    model_syntax="openai-compatible:URL#NAME",
    display_name="the server",
    key_variables=(COMPATIBLE_KEY_VARIABLE,),
    needs_key=False,
    create_provider=_open_compatible,
)


def _open_openai_responses(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del model  # each request names its model
    from lamella.providers.openai_responses import OpenAIResponsesProvider

    return OpenAIResponsesProvider(key=key, models=models, timeout=options.timeout)


def _responses_wire_format() -> "WireFormat":
    from lamella.providers import openai_responses as api
    from lamella.providers.wire import WireFormat, merge_extra_body

    return WireFormat(
        name="openai-responses",
        provider="openai",
        build_request=api.build_request,
        to_http_body=merge_extra_body,
        is_answer=api.is_answer,
        is_event=api.is_event,
        read_reply=api.read_reply,
        read_events=api.read_events,
    )


# The Responses API reports why its cache was missed, keeps entries longer and serves more from them than Chat
# Completions. The provider name ``openai`` therefore uses it. As the name of a wire format, ``openai`` means Chat
# Completions, which most programs use.
OPENAI = ProviderEntry(
    names=("openai",),
    model_syntax="openai:NAME",
    display_name="OpenAI",
    key_variables=OPENAI_KEY_VARIABLES,
    package=OPENAI_SDK,
    create_provider=_open_openai_responses,
    load_wire_format=chat_wire_format,
    model_profiles=gpt.MODEL_PROFILES,
    cache_profiles=gpt.CACHE_PROFILES,
    image_profiles=gpt.IMAGE_PROFILES,
)
OPENAI_RESPONSES = ProviderEntry(
    names=("openai-responses",),
    display_name="OpenAI",
    key_variables=OPENAI_KEY_VARIABLES,
    package=OPENAI_SDK,
    create_provider=_open_openai_responses,
    load_wire_format=_responses_wire_format,
)


def _open_scripted(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
    del key, models, options  # unused by a script
    from lamella.providers.script_file import open_script

    return open_script(Path(model.partition(":")[2]).expanduser())


SCRIPTED = ProviderEntry(
    names=("scripted",), model_syntax="scripted:FILE", needs_key=False, create_provider=_open_scripted
)


# The registry.

PROVIDERS = (
    LOCAL_PROVIDER,
    GGUF_PROVIDER,
    ANTHROPIC,
    OPENAI,
    OPENAI_RESPONSES,
    OPENAI_CHAT,
    GEMINI,
    OPENAI_COMPATIBLE,
    *LOCAL_SERVERS,
    SCRIPTED,
    ProviderEntry(names=("deepseek",), model_profiles=others.DEEPSEEK_MODELS, cache_profiles=others.DEEPSEEK_CACHES),
    ProviderEntry(names=("xai",), model_profiles=others.GROK_MODELS, cache_profiles=others.GROK_CACHES),
    ProviderEntry(names=("mistral",), model_profiles=others.MISTRAL_MODELS, cache_profiles=others.MISTRAL_CACHES),
    # A service that offers OpenAI's API. Prices and transcripts use this name as the prefix of a model.
    ProviderEntry(names=("openrouter",)),
)
MODEL_SYNTAXES = ", ".join(row.model_syntax for row in PROVIDERS if row.model_syntax)
KEY_VARIABLES = tuple(dict.fromkeys(name for row in PROVIDERS for name in row.key_variables))

_ENTRIES_BY_NAME = {name: row for row in PROVIDERS for name in row.names}


def find_provider_entry(name: str) -> ProviderEntry | None:
    """Return the entry of a provider, or None. ``name`` is a model's prefix or the maker in a model profile."""
    built_in = _ENTRIES_BY_NAME.get(name.lower())
    return built_in if built_in is not None or not name else _make_plugin_entry(name)


def _make_plugin_entry(name: str) -> ProviderEntry | None:
    """Return an entry for the plugin that opens the models of this prefix, or None."""
    opener: ProviderOpener | None = find_plugin(PluginGroup.PROVIDERS, name)
    if opener is None:
        return None

    def create(model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider:
        del key, models  # a plugin reads its own key, and gives its own replies
        return open_with_plugin(
            PluginGroup.PROVIDERS,
            name,
            lambda: opener(model, timeout=options.timeout),
            is_right=lambda opened: hasattr(opened, "stream"),
        )

    return ProviderEntry(names=(name,), model_syntax=f"{name}:NAME", needs_key=False, create_provider=create)


def strip_provider(model: str) -> str:
    """Return a model's own name without the provider prefix.

    Model names can contain colons of their own, such as ``qwen3:8b``, so an unknown prefix is not removed.
    """
    prefix, _, rest = model.partition(":")
    row = find_provider_entry(prefix)
    return (row.find_model_name(rest) if row is not None else None) or model


def is_local_model(model: str) -> bool:
    """Return whether a model runs in this process."""
    prefix, _, rest = model.partition(":")
    row = find_provider_entry(prefix)
    return row is not None and row.is_local and row.accepts_model_name(rest)


def server_key_variable(model: str) -> str | None:
    """Return the environment variable with the key for the server whose address is part of the model's name.

    None for models whose name contains no address.
    """
    row = find_provider_entry(model.partition(":")[0])
    return row.key_variables[0] if row is not None and row.name_syntax.startswith("URL") else None


def list_models() -> list[str]:
    """Return model names as users type them: known models, or the bare prefix of providers without known models."""
    return [name for row in PROVIDERS if row.model_syntax for name in _list_model_names(row)]


def _list_model_names(entry: ProviderEntry) -> list[str]:
    prefix = entry.model_syntax.removesuffix(entry.name_syntax)
    # Entries without a digit describe a model family, which is not a model that can be requested.
    known = [start for start, _ in entry.model_profiles if any(letter.isdigit() for letter in start)]
    return [f"{prefix}{start}" for start in known] or [prefix]
