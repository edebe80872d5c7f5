"""Lamella, the context engine for LLM chat.

from lamella import Conversation, Note

chat = Conversation(system="You are terse.")
turn = chat.ask("Summarize this", attach=[Note(path="spec.md", text=spec)])
turn.messages, turn.envelope, turn.tokens, turn.prefix
chat.reply("Here is a summary ...")
"""

from lamella.core.compaction.receipt import Receipt
from lamella.core.envelope.model import Envelope
from lamella.core.layers.model import Layer, Segment
from lamella.core.messages.model import Message
from lamella.errors import BadInputError, BudgetExceededError, LamellaError, LawBrokenError
from lamella.faces.library.attach import (
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
from lamella.faces.library.conversation import Conversation
from lamella.faces.library.engine import Chat, Engine, open_engine
from lamella.runners.turn import Turn

__version__ = "0.1.0"

# ``lamella.open(url)`` reads well; it stays out of ``__all__`` so that a star import leaves the builtin alone.
open = open_engine

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
