"""Lamella, the context engine for LLM chat.

from lamella import Conversation, Note

chat = Conversation(system="You are terse.") turn = chat.ask("Summarize this", attach=[Note(path="spec.md", text=spec)])
turn.messages, turn.envelope, turn.tokens, turn.prefix chat.reply("Here is a summary ...")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lamella.errors import (
    BadInputError,
    ConflictError,
    ContextBudgetExceededError,
    ConversationErasedError,
    InvalidOperationError,
    InvariantViolatedError,
    LamellaError,
    ReplyOnOtherBranchError,
    StoreError,
)

if TYPE_CHECKING:
    from lamella.attach import (
        ActiveNote,
        Canvas,
        Code,
        Dataview,
        Folder,
        Image,
        Note,
        Office,
        Pdf,
        Selection,
        Tag,
        Tool,
        ToolResult,
        Unknown,
        Url,
        WebTab,
        YouTube,
    )
    from lamella.conversation.compaction import CompactionProposal
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.engine import Engine
    from lamella.conversation.import_export import ImportOutcome, MessageHit
    from lamella.conversation.log import CompactionMarker
    from lamella.conversation.reasons import PromptExplanation, SuggestedAction
    from lamella.conversation.turn import BuiltTurn as Turn
    from lamella.conversation.turn_runner import EventName, TurnEvent
    from lamella.core.log.call import ModelCall
    from lamella.core.log.receipts import CompactionReceipt
    from lamella.core.log.turn import RequestFingerprint
    from lamella.core.log.turn_records import TurnRecord
    from lamella.core.messages import Message, ModelReply, ToolCall, ToolOutput
    from lamella.core.prompt.envelope import Envelope
    from lamella.core.prompt.layers.model import Layer, Segment
    from lamella.core.search.recall import RecallHit
    from lamella.ports import ConversationListItem, Fact, StoreProblem, StoreStats
    from lamella.schemas.ledger import LedgerTotals, TurnLedgerRow, build_ledger_rows, total_ledger_rows
    from lamella.sources.mentions import MentionOutcome
    from lamella.wiring.python import find_mentions, open_engine

__version__ = "0.1.0"

__all__ = [
    "ActiveNote",
    "BadInputError",
    "Canvas",
    "Code",
    "CompactionMarker",
    "CompactionProposal",
    "CompactionReceipt",
    "ConflictError",
    "ContextBudgetExceededError",
    "Conversation",
    "ConversationErasedError",
    "ConversationListItem",
    "Dataview",
    "Engine",
    "Envelope",
    "EventName",
    "Fact",
    "Folder",
    "Image",
    "ImportOutcome",
    "InvalidOperationError",
    "InvariantViolatedError",
    "LamellaError",
    "Layer",
    "LedgerTotals",
    "MentionOutcome",
    "Message",
    "MessageHit",
    "ModelCall",
    "ModelReply",
    "Note",
    "Office",
    "Pdf",
    "PromptExplanation",
    "RecallHit",
    "ReplyOnOtherBranchError",
    "RequestFingerprint",
    "Segment",
    "Selection",
    "StoreError",
    "StoreProblem",
    "StoreStats",
    "SuggestedAction",
    "Tag",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "Turn",
    "TurnEvent",
    "TurnLedgerRow",
    "TurnRecord",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "build_ledger_rows",
    "find_mentions",
    "total_ledger_rows",
]

# The modules of all exported names that are not attachments. Slow imports happen on first use: the command line is in
# this package, too, and must have started before them, or Ctrl-C right after the start would show a traceback.
_HOMES = {
    "ModelCall": "lamella.core.log.call",
    "CompactionMarker": "lamella.conversation.log",
    "Conversation": "lamella.conversation.conversation",
    "StoreProblem": "lamella.ports",
    "Engine": "lamella.conversation.engine",
    "Envelope": "lamella.core.prompt.envelope",
    "TurnEvent": "lamella.conversation.turn_runner",
    "EventName": "lamella.conversation.turn_runner",
    "Fact": "lamella.ports",
    "RecallHit": "lamella.core.search.recall",
    "MessageHit": "lamella.conversation.import_export",
    "ImportOutcome": "lamella.conversation.import_export",
    "RequestFingerprint": "lamella.core.log.turn",
    "Layer": "lamella.core.prompt.layers.model",
    "TurnLedgerRow": "lamella.schemas.ledger",
    "LedgerTotals": "lamella.schemas.ledger",
    "ConversationListItem": "lamella.ports",
    "MentionOutcome": "lamella.sources.mentions",
    "Message": "lamella.core.messages",
    "CompactionProposal": "lamella.conversation.compaction",
    "PromptExplanation": "lamella.conversation.reasons",
    "CompactionReceipt": "lamella.core.log.receipts",
    "SuggestedAction": "lamella.conversation.reasons",
    "ModelReply": "lamella.core.messages",
    "Segment": "lamella.core.prompt.layers.model",
    "StoreStats": "lamella.ports",
    "TurnRecord": "lamella.core.log.turn_records",
    "ToolCall": "lamella.core.messages",
    "ToolOutput": "lamella.core.messages",
    "Turn": "lamella.conversation.turn",
    "find_mentions": "lamella.wiring.python",
    "build_ledger_rows": "lamella.schemas.ledger",
    "open": "lamella.wiring.python",
    "total_ledger_rows": "lamella.schemas.ledger",
}
# Exported names that are different in their own module.
_CALLED = {"open": "open_engine", "Turn": "BuiltTurn"}

if TYPE_CHECKING:
    # ``lamella.open(url)`` reads well. It stays out of ``__all__`` so that a star import does not hide the builtin.
    open = open_engine
else:

    def __getattr__(name: str) -> object:
        if name not in _HOMES and name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(_HOMES.get(name, "lamella.attach"))
        # Stored as a global, so that this function runs only once per name.
        found = globals()[name] = getattr(module, _CALLED.get(name, name))
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "open"})
