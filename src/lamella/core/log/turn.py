"""A turn: what the user does in it, what came back, and what was compacted before it. One value, wherever it is."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.reply import CitedSource
from lamella.core.log.placement import Placement
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.messages.rounds import ToolRound
from lamella.core.values import replace

PART_NAMES: tuple[str, ...] = ("base", "guidelines", "instructions", "project", "workflow", "memory")


class SystemParts(Struct, frozen=True, kw_only=True):
    """L1's parts in the order they are sent. ``inlined`` are the notes that templates drew into instructions.

    ``typed_instructions`` are the instructions before their templates, so that they can be expanded again.
    ``workflow_detail`` names the stages whose data the part ``workflow`` shows in detail, with blanks between them, and
    ``workflow_brief`` is that part with none of them in detail.
    """

    base: str = ""
    guidelines: str = ""
    instructions: str = ""
    project: str = ""
    workflow: str = ""
    memory: str = ""
    inlined: tuple[Artifact, ...] = ()
    typed_instructions: str = ""
    workflow_brief: str = ""
    workflow_detail: str = ""

    def as_typed(self) -> dict[str, str]:
        """The parts as the user gave them."""
        typed = {**dict(self.named()), "instructions": self.typed_instructions}
        if self.workflow_detail:
            typed |= {"workflow_brief": self.workflow_brief, "workflow_detail": self.workflow_detail}
        return typed

    def shorten(self, names: Iterable[str]) -> "SystemParts":
        """The parts with the data of stages short, where these are all that are shown in detail."""
        if not self.workflow_detail or not set(self.workflow_detail.split()).issubset(names):
            return self
        return replace(self, workflow=self.workflow_brief, workflow_brief="", workflow_detail="")

    def named(self) -> list[tuple[str, str]]:
        """Each part that has text, with its name."""
        return [(name, text) for name in PART_NAMES if (text := getattr(self, name))]


class RuleBook(NamedTuple):
    """What somebody did by hand about the rules of a conversation, the user's standing wishes.

    Each is a text with the number of the first turn that it was ``added`` or ``ended`` with: what is said again after
    that holds again.
    """

    added: tuple[tuple[int, str], ...] = ()
    ended: tuple[tuple[int, str], ...] = ()


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One turn: asked, stored, replayed or planned. ``None`` means: as it was.

    ``text`` is what was typed after its templates. ``id`` is the message's, where it has one already. ``drop`` takes
    artifacts out of the prompt, ``detach`` out of the working set, both before anything is attached. ``receipts`` are
    the compactions before it that no earlier turn was asked under; ``rewritten`` says that what came before it may not
    be what was sent last: an edit, or another branch; ``unmoved``, that it was, compactions aside. ``strip`` is a
    model's summary of the oldest turns that are not shown. ``pinned`` are the ids of messages that no compaction takes
    out from now on, ``rules`` what was done by hand about rules by now. ``rounds`` are what the model asked of its
    tools and what they gave back; without a ``reply`` it waits for one. ``imprint`` tells its request from others, once
    that was made. ``sources`` are what the numbers mean that its answer may cite. ``placement`` is where things stand
    in it, where prices decided that once and for all.
    """

    text: str
    typed: str = ""
    id: str | None = None
    attached: tuple[Artifact, ...] = ()
    results: tuple[Artifact, ...] = ()
    system: SystemParts | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    fold: bool = False
    pinned: tuple[str, ...] | None = None
    rules: RuleBook | None = None
    terms: Terms = Terms()
    strip: str | None = None
    rewritten: Rewrite | None = None
    unmoved: bool = False
    warnings: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    rounds: tuple[ToolRound, ...] = ()
    reply: str | None = None
    reply_id: str | None = None
    imprint: Imprint | None = None
    sources: tuple[CitedSource, ...] = ()
    placement: Placement | None = None


class TurnRun(NamedTuple):
    """Answered turns that only talk, all under the same terms: ids and texts of question, reply, question, reply.

    ``placements`` are where things stand in each, where prices decided that; nothing that was sent moves for any.
    ``attached`` is what came along, by the index of the turn: known from then on, and attached for that turn.
    """

    terms: Terms
    names: tuple[str, ...]
    texts: tuple[str, ...]
    placements: tuple[Placement, ...] = ()
    attached: Mapping[int, tuple[Artifact, ...]] = MappingProxyType({})

    def turn(self, at: int) -> Turn:
        """The turn of this index."""
        (asked, answered), (text, reply) = self.names[2 * at : 2 * at + 2], self.texts[2 * at : 2 * at + 2]
        placed = self.placements[at] if self.placements else None
        return Turn(
            text=text,
            typed=text,
            id=asked,
            terms=self.terms,
            attached=self.attached.get(at, ()),
            reply=reply,
            reply_id=answered,
            placement=placed,
        )

    def turns(self) -> list[Turn]:
        """Each of them."""
        return [self.turn(at) for at in range(len(self.names) // 2)]

    def last(self) -> Turn:
        """The last of them."""
        return self.turn(len(self.names) // 2 - 1)

    def before_last(self) -> "TurnRun | None":
        """The same without its last turn; none where that is all."""
        return self.part(0, -1)

    def after_first(self) -> "TurnRun | None":
        """The same without its first turn; none where that is all."""
        return self.part(1, None)

    def part(self, first: int, end: int | None) -> "TurnRun | None":
        """Some of its turns, by their indices; none where that is none."""
        turns = range(len(self.names) // 2)[first:end]
        within = slice(2 * turns.start, 2 * turns.stop)
        attached = {at - turns.start: brought for at, brought in self.attached.items() if at in turns}
        run = TurnRun(self.terms, self.names[within], self.texts[within], self.placements[first:end], attached)
        return run if turns else None


def list_turns(parts: Iterable[Turn | TurnRun]) -> list[Turn]:
    """Turns in order, each of a run by itself."""
    return [turn for part in parts for turn in ((part,) if isinstance(part, Turn) else part.turns())]
