"""Places: what the name of a model says about where it is asked."""

from lamella.adapters.providers.registry import find_server_key, runs_here
from lamella.ports import ModelBook

# The model that ships with Lamella and runs in this process: it needs no key and no server.
DEMO_MODEL = "local"

__all__ = ["DEMO_MODEL", "find_server_key", "find_window", "runs_here", "sees_pictures"]


def sees_pictures(model: str, book: ModelBook) -> bool:
    """Whether a model takes pictures, as far as that is known: one of which nobody knows it is tried."""
    return not runs_here(model) and book.model(model).sees is not False


def find_window(model: str, book: ModelBook) -> int | None:
    """How many tokens a model takes, as far as that is known."""
    if not runs_here(model):
        return book.model(model).window
    from lamella.adapters.providers.local.engine import EngineOptions  # only models in this process have an engine

    return EngineOptions().window
