"""The dependencies of stored conversations: store, clock, adapters, and the conversion of settings."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from lamella.conversation.adapters import Adapters
from lamella.conversation.checkpoints import EVENTS_PER_CHECKPOINT
from lamella.conversation.memory import RenderMemory
from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.conversation.summaries import SummaryFetcher
from lamella.conversation.turn import BuiltTurn
from lamella.conversation.turn_runner import TurnLimits
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.turn import TurnSettings
from lamella.ports import Clock, Store

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation


def _no_system_parts(_names: Collection[str]) -> Mapping[str, str]:
    return {}


class ConversationSettings(Struct, frozen=True, kw_only=True):
    """The resolved settings of one conversation, its turn settings, and the model it starts with.

    ``load_system_parts`` reads the system prompt parts that settings of these names define. ``limits`` are the limits
    of a turn. ``summarizer`` is the value of the setting of that name. ``max_keep_alives`` is the maximum number of
    keep-alive requests while the user is idle. ``recall_hints`` says whether questions are sent with matching passages
    that left the prompt. ``has_explicit_layout`` says that the layout was set explicitly; a default layout applies only
    to new conversations. ``learns_retention`` says that the setting ``linger`` has its default value, so that it may
    become 0 when turns list their attachments in full.
    """

    prompt_settings: PromptSettings
    turn_settings: TurnSettings
    model: str | None = None
    load_system_parts: Callable[[Collection[str]], Mapping[str, str]] = _no_system_parts
    limits: TurnLimits = TurnLimits()
    summarizer: str = "off"
    max_keep_alives: int = 0
    recall_hints: bool = False
    has_explicit_layout: bool = False
    learns_retention: bool = False


class Backend(Struct, frozen=True, kw_only=True):
    """The dependencies of a stored conversation.

    ``resolve_settings`` converts settings by name. ``make_key`` creates the key of a new conversation; a generated
    key is never used twice. ``checkpoint_every`` is the number of events after which a checkpoint is due.
    ``render_memory`` renders the memory part of prompts; without it each conversation keeps the part it has.
    ``make_summary_fetcher`` returns the summary fetcher of a conversation if the adapters have no summarizer.
    ``replay_transcript`` replays a written transcript as its reader would; without it the stored turns are replayed.
    ``opens_per_question`` is set by servers that open a conversation for every question. Opening is then no reason to
    refresh the memory part. ``shared_prefixes`` learns how often the system prompts of the store are used again.
    """

    store: Store
    clock: Clock
    adapters: Adapters
    resolve_settings: Callable[[Mapping[str, object]], ConversationSettings]
    keeps_ledger: bool = True
    checkpoint_every: int = EVENTS_PER_CHECKPOINT
    make_key: Callable[[str], str] = str
    render_memory: RenderMemory | None = None
    opens_per_question: bool = False
    make_summary_fetcher: Callable[["Conversation", str], SummaryFetcher] | None = None
    replay_transcript: Callable[[Mapping[str, object]], Iterator[BuiltTurn]] | None = None
    shared_prefixes: SharedPrefixRegistry | None = None
    # Whether a change without a given time happens now. Otherwise its time stays unknown, so that a conversation in
    # memory builds the same requests on any day.
    timestamps_changes: bool = True

    def default_change_time(self) -> datetime | None:
        """Return the time of a change for which none was given; None if it stays unknown."""
        return self.clock.now() if self.timestamps_changes else None
