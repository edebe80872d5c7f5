"""The registry: one row per provider, in the order in which people are told of them."""

from lamella.adapters.providers.anthropic.row import ANTHROPIC
from lamella.adapters.providers.facts import others
from lamella.adapters.providers.gemini.row import GEMINI
from lamella.adapters.providers.local.row import GGUF_FILE, LOCAL_MODEL
from lamella.adapters.providers.openai_chat.row import COMPATIBLE, OPENAI_CHAT
from lamella.adapters.providers.openai_responses.row import OPENAI, OPENAI_RESPONSES
from lamella.adapters.providers.row import ProviderRow
from lamella.adapters.providers.scripted.row import SCRIPTED

PROVIDERS = (
    LOCAL_MODEL,
    GGUF_FILE,
    ANTHROPIC,
    OPENAI,
    OPENAI_RESPONSES,
    OPENAI_CHAT,
    GEMINI,
    COMPATIBLE,
    SCRIPTED,
    ProviderRow(names=("deepseek",), models=others.DEEPSEEK_MODELS, caches=others.DEEPSEEK_CACHES),
    ProviderRow(names=("xai",), models=others.GROK_MODELS, caches=others.GROK_CACHES),
    ProviderRow(names=("mistral",), models=others.MISTRAL_MODELS, caches=others.MISTRAL_CACHES),
    # Servers that speak OpenAI's API; prices and transcripts name them before a model.
    ProviderRow(names=("llama_cpp", "lmstudio", "ollama", "openrouter", "sglang", "vllm")),
)
FORMS = ", ".join(row.form for row in PROVIDERS if row.form)
KEY_NAMES = tuple(dict.fromkeys(name for row in PROVIDERS for name in row.keys))

_BY_NAME = {name: row for row in PROVIDERS for name in row.names}


def find_row(name: str) -> ProviderRow | None:
    """The row of a provider, by what stands before the colon or by what facts call a maker."""
    return _BY_NAME.get(name.lower())


def bare_model(model: str) -> str:
    """A model's own name, without what names its provider. Models have colons of their own, such as ``qwen3:8b``."""
    prefix, _, rest = model.partition(":")
    row = find_row(prefix)
    return (row.strip(rest) if row is not None else None) or model


def runs_here(model: str) -> bool:
    """Whether a model runs in this process."""
    prefix, _, rest = model.partition(":")
    row = find_row(prefix)
    return row is not None and row.here and row.takes(rest)


def find_server_key(model: str) -> str | None:
    """The variable whose key goes to the server that a model's name itself gives; none for models that name none."""
    row = find_row(model.partition(":")[0])
    return row.keys[0] if row is not None and row.follows.startswith("URL") else None


def list_models() -> list[str]:
    """Names of models as people write them: those that facts are known of, and what begins the others."""
    return [name for row in PROVIDERS if row.form for name in _list_named(row)]


def _list_named(row: ProviderRow) -> list[str]:
    prefix = row.form.removesuffix(row.follows)
    # The rest of the facts is about families, which nobody can ask.
    known = [start for start, _ in row.models if any(letter.isdigit() for letter in start)]
    return [f"{prefix}{start}" for start in known] or [prefix]
