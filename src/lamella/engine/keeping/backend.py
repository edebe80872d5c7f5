"""What stored conversations work with: a store, a clock, the world that turns read, and how settings become rules."""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from lamella.core.compaction.fitting import Rules
from lamella.core.log.terms import Terms
from lamella.engine.dialogue.summaries import AsideBook, SummaryFetcher
from lamella.engine.dialogue.world import World
from lamella.engine.keeping.checkpoints.checkpoints import EVENTS
from lamella.engine.memory import MemoryPart
from lamella.engine.sending.limits import TurnLimits
from lamella.ports import Clock, Store


def _no_parts(_names: Collection[str]) -> Mapping[str, str]:
    return {}


class ChatRules(Struct, frozen=True, kw_only=True):
    """What settings come to: the rules and terms of a conversation, and the model it starts with.

    ``parts`` reads those of the system prompt that settings of these names give. ``limits`` are how far a turn may go,
    ``summarizer`` is who writes summaries, as the setting says it, and ``recall_hints`` whether originals are held out.
    ``keep_alive`` is how often a cache is kept while nobody asks. ``lays_out`` says that somebody chose the layout: a
    default is for conversations that begin.
    """

    rules: Rules
    terms: Terms
    model: str | None = None
    parts: Callable[[Collection[str]], Mapping[str, str]] = _no_parts
    limits: TurnLimits = TurnLimits()
    summarizer: str = "off"
    keep_alive: int = 0
    recall_hints: bool = False
    lays_out: bool = False


class Backend(Struct, frozen=True, kw_only=True):
    """What a stored conversation works with. ``configure`` turns settings by name into rules.

    ``make_key`` gives the key of a conversation that begins under a name: one that nobody chose and nobody had. A
    checkpoint is due after every ``checkpoint_every`` events. ``memory`` is what conversations have in their prompts of
    the memory; with none each keeps what it has. ``find_fetcher`` gives who fetches summaries for a conversation, by
    what settings say of it, where the world has no summariser. ``reopens`` says that conversations are opened for every
    question, as servers do: that one was opened is then no reason to take up what changed in the memory.
    """

    store: Store
    clock: Clock
    world: World
    configure: Callable[[Mapping[str, object]], ChatRules]
    ledger: bool = True
    checkpoint_every: int = EVENTS
    make_key: Callable[[str], str] = str
    memory: MemoryPart | None = None
    reopens: bool = False
    find_fetcher: Callable[[AsideBook, str], SummaryFetcher] | None = None
