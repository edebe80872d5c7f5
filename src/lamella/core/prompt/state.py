"""The prompt state: the value that a conversation folds to between two requests."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.turn import RuleChanges, SystemParts, TurnSettings
from lamella.core.prompt.artifact_index import ArtifactIndex, build_index
from lamella.core.prompt.cache_history import NO_CACHE_HISTORY, CacheHistory
from lamella.core.prompt.layers.history import ConversationHistory
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact
from lamella.core.prompt.prompt import Prompt


class PromptState(Struct, frozen=True, kw_only=True, gc=False):
    """A conversation between two requests.

    Attributes:
        system: System prompt parts; like ``tools`` and ``model`` they apply until a turn changes them.
        turn_settings: The turn settings under which the current epoch began; None before the first epoch.
        head: Id of the last message.
        library: Every artifact that the context library knows, in first-seen order.
        system_library: The part of the library that the system message contains.
        library_rendered_from: The library value that ``system_library`` was rendered from, compared by identity; None
            if ``system_library`` may not be reused for another fold.
        placed: Everything placed in the messages of this epoch, including ``system_library``.
        unlisted_attachments: Attachments that stay until detached but never enter the library, such as images.
        history: Earlier turns. It does not include the last turn while that waits for its reply.
        tokenizer_name: Name of the tokenizer that counted the tokens in this state.
        last_prompt: The prompt that was built last; None after a replay that built no prompts.
        last_compacted_total: Token count of the request after the last compaction in force.
        compaction_step: Name of the compaction step that changed earlier bytes; reset when the next turn is built.
        pinned: Ids of messages that no compaction removes.
        cache_history: Requests and cache entries of the branch; only filled if costs decide the layout.
        rules: User rules that were added or removed by hand.
        kept_messages: Number of messages that the last compaction left as sent, if it covered only later messages;
            reset when the next turn is built.
        cleared_from: Index of the first message that the last compaction changed, if it only cleared tool results where
            they are; reset when the next turn is built.
        cleared_since: Id of the first tool result that the last such compaction cleared; reset like ``cleared_from``.
        index: The index of ``library`` and ``placed``, if it was needed; ``get_index`` builds it.
    """

    conversation: str
    system: SystemParts = SystemParts()
    tools: tuple[ToolDefinition, ...] = ()
    model: str | None = None
    turn_settings: TurnSettings | None = None
    head: str = ""
    library: Mapping[str, LibraryEntry] = {}
    system_library: Mapping[str, PlacedArtifact] = {}
    library_rendered_from: Mapping[str, LibraryEntry] | None = None
    placed: Mapping[str, PlacedArtifact] = {}
    unlisted_attachments: Mapping[str, Artifact] = {}
    history: ConversationHistory = ConversationHistory()
    epoch: int = 0
    turn_count: int = 0
    tokenizer_name: str = ""
    last_prompt: Prompt | None = None
    waits_for_reply: bool = False
    last_compacted_total: int | None = None
    compaction_step: str | None = None
    pinned: frozenset[str] = frozenset()
    cache_history: CacheHistory = NO_CACHE_HISTORY
    rules: RuleChanges = RuleChanges()
    kept_messages: int | None = None
    cleared_from: int | None = None
    cleared_since: str | None = None
    index: ArtifactIndex | None = None


def get_index(state: PromptState) -> ArtifactIndex:
    """Return the index of a state; it is built if the state has none that is up to date."""
    index = state.index
    return (
        index
        if index is not None and index.matches_library(state.library, state.placed)
        else build_index(state.library, state.placed)
    )
