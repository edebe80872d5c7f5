"""Lamella, the context engine for LLM chat.

from lamella import Conversation, Note

chat = Conversation(system="You are terse.")
turn = chat.ask("Summarize this", attach=[Note(path="spec.md", text=spec)])
turn.messages, turn.envelope, turn.tokens, turn.prefix
chat.reply("Here is a summary ...")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lamella.errors import (
    AnswerAsideError,
    BadInputError,
    BudgetExceededError,
    CallError,
    ConflictError,
    ErasedError,
    LamellaError,
    LawBrokenError,
    StoreError,
)

if TYPE_CHECKING:
    from lamella.adapters.sources.naming import MentionOutcome
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
    from lamella.core.log.call import Call
    from lamella.core.log.events.imprint import Imprint
    from lamella.core.log.nodes import Told
    from lamella.core.log.receipt import Receipt
    from lamella.core.messages.delta import Reply, ToolCall
    from lamella.core.messages.model import Message
    from lamella.core.messages.rounds import ToolOutput
    from lamella.core.prompt.envelope import Envelope
    from lamella.core.prompt.layers.model import Layer, Segment
    from lamella.core.search.finding import Found
    from lamella.engine.chat import Chat
    from lamella.engine.dialogue.proposal import Proposal
    from lamella.engine.dialogue.reasons import Reason, Remedy
    from lamella.engine.dialogue.turn import TurnView as Turn
    from lamella.engine.engine import Engine
    from lamella.engine.keeping.conversations import Hit, ImportOutcome
    from lamella.engine.keeping.marks import CompactionMark
    from lamella.engine.sending.events import Event, EventName
    from lamella.holdings import ChatListing, Damage, Fact, StoreStats
    from lamella.views.ledger import LedgerRow, LedgerSums, make_rows, sum_rows
    from lamella.wiring.python import Conversation, find_mentions, open_engine

__version__ = "0.1.0"

__all__ = [
    "ActiveNote",
    "AnswerAsideError",
    "BadInputError",
    "BudgetExceededError",
    "Call",
    "CallError",
    "Canvas",
    "Chat",
    "ChatListing",
    "Code",
    "CompactionMark",
    "ConflictError",
    "Conversation",
    "Damage",
    "Dataview",
    "Engine",
    "Envelope",
    "ErasedError",
    "Event",
    "EventName",
    "Fact",
    "Folder",
    "Found",
    "Hit",
    "ImportOutcome",
    "Imprint",
    "LamellaError",
    "LawBrokenError",
    "Layer",
    "LedgerRow",
    "LedgerSums",
    "MentionOutcome",
    "Message",
    "Note",
    "Office",
    "Pdf",
    "Picture",
    "Proposal",
    "Reason",
    "Receipt",
    "Remedy",
    "Reply",
    "Segment",
    "Selection",
    "StoreError",
    "StoreStats",
    "Tag",
    "Told",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "Turn",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "find_mentions",
    "make_rows",
    "sum_rows",
]

# Where names are that are no attachments. What takes long to import is fetched when it is first asked for: the command
# line is in this package, too, and must be up before that, or Ctrl-C right after the start would show a traceback.
_HOMES = {
    "Call": "lamella.core.log.call",
    "Chat": "lamella.engine.chat",
    "CompactionMark": "lamella.engine.keeping.marks",
    "Conversation": "lamella.wiring.python",
    "Damage": "lamella.holdings",
    "Engine": "lamella.engine.engine",
    "Envelope": "lamella.core.prompt.envelope",
    "Event": "lamella.engine.sending.events",
    "EventName": "lamella.engine.sending.events",
    "Fact": "lamella.holdings",
    "Found": "lamella.core.search.finding",
    "Hit": "lamella.engine.keeping.conversations",
    "ImportOutcome": "lamella.engine.keeping.conversations",
    "Imprint": "lamella.core.log.events.imprint",
    "Layer": "lamella.core.prompt.layers.model",
    "LedgerRow": "lamella.views.ledger",
    "LedgerSums": "lamella.views.ledger",
    "ChatListing": "lamella.holdings",
    "MentionOutcome": "lamella.adapters.sources.naming",
    "Message": "lamella.core.messages.model",
    "Proposal": "lamella.engine.dialogue.proposal",
    "Reason": "lamella.engine.dialogue.reasons",
    "Receipt": "lamella.core.log.receipt",
    "Remedy": "lamella.engine.dialogue.reasons",
    "Reply": "lamella.core.messages.delta",
    "Segment": "lamella.core.prompt.layers.model",
    "StoreStats": "lamella.holdings",
    "Told": "lamella.core.log.nodes",
    "ToolCall": "lamella.core.messages.delta",
    "ToolOutput": "lamella.core.messages.rounds",
    "Turn": "lamella.engine.dialogue.turn",
    "find_mentions": "lamella.wiring.python",
    "make_rows": "lamella.views.ledger",
    "open": "lamella.wiring.python",
    "sum_rows": "lamella.views.ledger",
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
