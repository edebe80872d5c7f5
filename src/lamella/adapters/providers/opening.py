"""Opening: from a model's name to a provider that answers. Whatever is missing is said before anything is sent.

Keys come in by the names of their variables. They go into the provider and nowhere else: no message or repr has one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.providers.anthropic.send import AnthropicProvider
from lamella.adapters.providers.connecting import check_connection
from lamella.adapters.providers.gemini.send import GeminiProvider
from lamella.adapters.providers.models import BuiltInModels
from lamella.adapters.providers.openai_chat.send import OpenAIChatProvider
from lamella.adapters.providers.openai_responses.send import OpenAIResponsesProvider
from lamella.adapters.providers.script_file import open_script
from lamella.errors import AddressError, KeyRefusedError, SdkMissingError, SettingError
from lamella.ports import ChatProvider, ModelBook

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress

COMPATIBLE_KEY = "LAMELLA_API_KEY"
FORMS = (
    "local, gguf:PATH, anthropic:NAME, openai:NAME, openai-chat:NAME, gemini:NAME, openai-compatible:URL#NAME, "
    "scripted:FILE"
)
_PATIENCE = 120.0
_COMPATIBLE = "openai-compatible:http://localhost:8000/v1#name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A provider with a key: whose it is, the variables that may hold the key, and the package that speaks to it."""

    provider: str
    keys: tuple[str, ...]
    package: str
    module: str
    extra: str
    connect: Callable[..., ChatProvider]


_ANTHROPIC = Hosted(
    provider="Anthropic",
    keys=("ANTHROPIC_API_KEY",),
    package="anthropic",
    module="anthropic",
    extra="anthropic",
    connect=AnthropicProvider,
)
# The Responses API says why its cache was missed, keeps entries longer and serves more from it than Chat Completions.
_RESPONSES = Hosted(
    provider="OpenAI",
    keys=("OPENAI_API_KEY",),
    package="openai",
    module="openai",
    extra="openai",
    connect=OpenAIResponsesProvider,
)
_CHAT = Hosted(
    provider="OpenAI",
    keys=("OPENAI_API_KEY",),
    package="openai",
    module="openai",
    extra="openai",
    connect=OpenAIChatProvider,
)
_GEMINI = Hosted(
    provider="Gemini",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    package="google-genai",
    module="google.genai",
    extra="gemini",
    connect=GeminiProvider,
)
_HOSTED: Mapping[str, Hosted] = {
    "anthropic": _ANTHROPIC,
    "openai": _RESPONSES,
    "openai-responses": _RESPONSES,
    "openai-chat": _CHAT,
    "gemini": _GEMINI,
    "google": _GEMINI,
}
KEY_NAMES = (*dict.fromkeys(name for hosted in _HOSTED.values() for name in hosted.keys), COMPATIBLE_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What else providers take. ``patience`` is how many seconds of silence are borne.

    A model in this process tells ``progress`` how far it has read, and keeps in ``record`` which weights it checked.
    """

    patience: float = _PATIENCE
    progress: "Callable[[Progress], None] | None" = None
    record: Path | None = None


def open_provider(
    model: str, *, keys: Mapping[str, str], models: ModelBook | None = None, opening: Opening | None = None
) -> ChatProvider:
    """The provider of a model, by the name that requests to it carry; ``keys`` by the names of their variables."""
    opening, models = opening or Opening(), models or BuiltInModels()
    prefix, _, rest = model.partition(":")
    kind = prefix.lower()
    if kind == "local" and not rest:
        return _open_local("local", opening)
    if kind == "gguf" and rest:
        return _open_local(model, opening)
    if kind == "scripted" and rest:
        return open_script(Path(rest).expanduser())
    if kind == "openai-compatible":
        return _open_compatible(rest, keys, models=models, opening=opening)
    hosted = _find_hosted(model, models)
    _check_package(package=hosted.package, module=hosted.module, extra=hosted.extra)
    return hosted.connect(key=_find_key(hosted, keys), models=models, patience=opening.patience)


def _find_hosted(model: str, models: ModelBook) -> Hosted:
    prefix, colon, name = model.partition(":")
    if not colon:
        # Well-known names need no prefix.
        hosted = _HOSTED.get(models.model(model).provider)
        if hosted is not None:
            return hosted
        raise SettingError(f"Nobody knows who has the model {model!r}.", hint=f"Name it as one of: {FORMS}.")
    hosted = _HOSTED.get(prefix.lower())
    if hosted is None:
        raise SettingError(
            f"There is no provider {prefix!r}.",
            hint=f"Name a model as one of: {FORMS}. Any server that speaks OpenAI's API: {_COMPATIBLE}.",
        )
    if not name.strip():
        raise SettingError(f"{model!r} names no model.", hint=f"Give its name after the colon: {prefix}:NAME.")
    return hosted


def _find_key(hosted: Hosted, keys: Mapping[str, str]) -> str:
    name = next((name for name in hosted.keys if keys.get(name)), None)
    if name is None:
        wanted = " or ".join(hosted.keys)
        raise KeyRefusedError(
            f"There is no key for {hosted.provider}.",
            hint=f"Set {wanted} in the environment, or use the model local, which needs none.",
        )
    check_connection(provider=f"{hosted.provider}, in {name},", key=keys[name], address="https://localhost")
    return keys[name]


def _open_compatible(place: str, keys: Mapping[str, str], *, models: ModelBook, opening: Opening) -> OpenAIChatProvider:
    address, _, name = place.partition("#")
    # What looks like a password is never repeated.
    if "@" in address or "?" in address:
        raise AddressError(
            "The address of the server has more in it than an address.",
            hint=f"Leave out user, password and query, and set {COMPATIBLE_KEY} if the server wants a key.",
        )
    key = keys.get(COMPATIBLE_KEY, "")
    check_connection(provider="the server", key=key or "none", address=address)
    if not name.strip():
        raise SettingError(
            f"{address} is asked for no model.", hint=f"Give the model's name after #, as in {_COMPATIBLE}."
        )
    _check_package(package="openai", module="openai", extra="openai")
    return OpenAIChatProvider(key=key, address=address, models=models, patience=opening.patience)


def _open_local(model: str, opening: Opening) -> ChatProvider:
    _check_package(package="xllamacpp", module="xllamacpp", extra="local")
    from lamella.adapters.providers.local.provider import LocalProvider
    from lamella.adapters.providers.local.weights import find_weights

    find_weights(model, record=opening.record)
    return LocalProvider(model=model, progress=opening.progress, record=opening.record)


def _check_package(*, package: str, module: str, extra: str) -> None:
    try:
        found = find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise SdkMissingError(
            f"The package {package} is not installed.", hint=f'Install it with: pip install "lamella[{extra}]"'
        )
