"""Lamella, the context engine for LLM chat.

from lamella import Conversation, Note

chat = Conversation(system="You are terse.")
turn = chat.ask("Summarize this", attach=[Note(path="spec.md", text=spec)])
turn.messages, turn.envelope, turn.tokens, turn.prefix
chat.reply("Here is a summary ...")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lamella.errors import BadInputError, BudgetExceededError, LamellaError, LawBrokenError

if TYPE_CHECKING:
    from lamella.attach import (
        ActiveNote,
        Canvas,
        Code,
        Dataview,
        Folder,
        Note,
        Office,
        Pdf,
        Picture,
        Selection,
        Tag,
        Tool,
        ToolResult,
        Unknown,
        Url,
        WebTab,
        YouTube,
    )
    from lamella.core.log.receipt import Receipt
    from lamella.core.messages.model import Message
    from lamella.core.prompt.envelope import Envelope
    from lamella.core.prompt.layers.model import Layer, Segment
    from lamella.engine.chat import Chat
    from lamella.engine.dialogue.turn import TurnView as Turn
    from lamella.engine.engine import Engine
    from lamella.wiring.python import Conversation, open_engine

__version__ = "0.1.0"

__all__ = [
    "ActiveNote",
    "BadInputError",
    "BudgetExceededError",
    "Canvas",
    "Chat",
    "Code",
    "Conversation",
    "Dataview",
    "Engine",
    "Envelope",
    "Folder",
    "LamellaError",
    "LawBrokenError",
    "Layer",
    "Message",
    "Note",
    "Office",
    "Pdf",
    "Picture",
    "Receipt",
    "Segment",
    "Selection",
    "Tag",
    "Tool",
    "ToolResult",
    "Turn",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
]

# Where names are that are no attachments. What takes long to import is fetched when it is first asked for: the command
# line is in this package, too, and must be up before that, or Ctrl-C right after the start would show a traceback.
_HOMES = {
    "Chat": "lamella.engine.chat",
    "Conversation": "lamella.wiring.python",
    "Engine": "lamella.engine.engine",
    "Envelope": "lamella.core.prompt.envelope",
    "Layer": "lamella.core.prompt.layers.model",
    "Message": "lamella.core.messages.model",
    "Receipt": "lamella.core.log.receipt",
    "Segment": "lamella.core.prompt.layers.model",
    "Turn": "lamella.engine.dialogue.turn",
    "open": "lamella.wiring.python",
}
# What has another name where it is at home.
_CALLED = {"open": "open_engine", "Turn": "TurnView"}

if TYPE_CHECKING:
    # ``lamella.open(url)`` reads well; it stays out of ``__all__`` so that a star import leaves the builtin alone.
    open = open_engine
else:

    def __getattr__(name: str) -> object:
        if name not in _HOMES and name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(_HOMES.get(name, "lamella.attach"))
        found = globals()[name] = getattr(home, _CALLED.get(name, name))
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "open"})
