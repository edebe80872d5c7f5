"""The state a conversation folds to: what is known, what stands in the request, what was said."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.terms import Terms
from lamella.core.log.turn import RuleBook, SystemParts
from lamella.core.prompt.layers.library import LibraryEntry, Standing
from lamella.core.prompt.layers.strip import Talk
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.trail import NO_TRAIL, Trail


class State(Struct, frozen=True, kw_only=True, gc=False):
    """A conversation between two requests.

    ``system``, ``tools`` and ``model`` hold until a turn changes them; ``terms`` are those that the epoch began under.
    ``library`` is every promoted artifact in first-seen order. ``shelf`` is the part of it that the system message
    holds, made of the library ``shelf_of``; ``standing`` is everything that stands in the messages of the epoch, shelf
    included.
    ``apart`` is what stays attached until it is detached without going into the library, such as pictures.
    ``last`` is what was sent last; while it ``waits`` for its reply, the talk does not have it yet. ``shrunk_to`` is
    what the last compaction in force came to in tokens; ``compacted`` names what it did to the bytes sent before, until
    the next turn is asked. ``pinned`` are messages that no compaction takes out. ``trail`` is what was sent when, where
    prices decide. ``rules`` are those that somebody added or ended by hand. ``kept`` is how many
    messages the last compaction left as they were sent, where it began behind some, until the next turn is asked.
    """

    conversation: str
    system: SystemParts = SystemParts()
    tools: tuple[ToolDefinition, ...] = ()
    model: str | None = None
    terms: Terms | None = None
    head: str = ""
    library: Mapping[str, LibraryEntry] = {}
    shelf: Mapping[str, Standing] = {}
    shelf_of: Mapping[str, LibraryEntry] | None = None
    standing: Mapping[str, Standing] = {}
    apart: Mapping[str, Artifact] = {}
    talk: Talk = Talk()
    epoch: int = 0
    turns: int = 0
    measured_by: str = ""
    last: Prompt | None = None
    waits: bool = False
    shrunk_to: int | None = None
    compacted: str | None = None
    pinned: frozenset[str] = frozenset()
    trail: Trail = NO_TRAIL
    rules: RuleBook = RuleBook()
    kept: int | None = None
