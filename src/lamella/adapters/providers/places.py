"""Places: what the name of a model says about where it is asked."""

from lamella.adapters.providers.opening import COMPATIBLE_KEY
from lamella.ports import ModelBook

# The model that ships with Lamella and runs in this process: it needs no key and no server.
DEMO_MODEL = "local"
_FILE = "gguf:"
_SERVER = "openai-compatible:"


def is_here(model: str) -> bool:
    """Whether a model runs in this process."""
    return model == DEMO_MODEL or model.lower().startswith(_FILE)


def find_server_key(model: str) -> str | None:
    """The variable of the key that goes to a server whose address the name itself has; none for other models."""
    return COMPATIBLE_KEY if model.lower().startswith(_SERVER) else None


def find_window(model: str, book: ModelBook) -> int | None:
    """How many tokens a model takes, as far as that is known."""
    if not is_here(model):
        return book.model(model).window
    from lamella.adapters.providers.local.engine import EngineOptions  # only models in this process have an engine

    return EngineOptions().window
