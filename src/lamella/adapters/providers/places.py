"""Places: what the name of a model says about where it is asked."""

from urllib.parse import urlsplit, urlunsplit

from lamella.adapters.files.naming import find_real
from lamella.adapters.providers.registry import find_row, find_server_key, runs_here
from lamella.ports import ModelBook

# The model that ships with Lamella and runs in this process: it needs no key and no server.
DEMO_MODEL = "local"

__all__ = [
    "DEMO_MODEL",
    "calls_tools",
    "find_server_key",
    "find_window",
    "name_model",
    "name_provider",
    "runs_here",
    "sees_pictures",
]


def sees_pictures(model: str, book: ModelBook) -> bool:
    """Whether a model takes pictures, as far as that is known: one of which nobody knows it is tried."""
    return not runs_here(model) and book.model(model).sees is not False


def calls_tools(model: str, book: ModelBook) -> bool:
    """Whether a model asks for tools by itself, as far as that is known: one of which nobody knows it is tried.

    Models in this process are told of none, unless somebody says that theirs can.
    """
    known = book.model(model).calls_tools
    return not runs_here(model) if known is None else known


def find_window(model: str, book: ModelBook) -> int | None:
    """How many tokens a model takes, as far as that is known."""
    if not runs_here(model):
        return book.model(model).window
    from lamella.adapters.providers.local.engine import EngineOptions  # only models in this process have an engine

    return EngineOptions().window


def name_model(model: str, book: ModelBook) -> str | None:
    """Where a model is asked, as people say yes to it: a server, a provider's model, a file; none for what ships.

    Two names of one place give the same.
    """
    # Whoever asks for a window needs neither.
    from lamella.adapters.providers.openai_chat.row import read_address
    from lamella.adapters.providers.opener import find_model_row

    row = find_model_row(model, book)
    rest = model.partition(":")[2] if find_row(model.partition(":")[0]) is row else model
    if row.follows.startswith("URL"):
        parts = urlsplit(read_address(model))
        rest = urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), "", ""))
    elif row.follows not in ("", "NAME"):
        rest = str(find_real(rest))
    return f"{row.names[0]}:{rest}" if row.follows else None


def name_provider(name: str) -> str | None:
    """A provider that models are asked of by name, as its models' places begin; none if it is no such provider."""
    row = find_row(name)
    return row.names[0] if row is not None and row.open is not None and row.follows == "NAME" else None
