"""A turn: what the user does in it, what came back, and what was compacted before it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import CarryForward, History, Layout, Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemParts:
    """L1's parts in the order they are sent. ``inlined`` are the notes that templates drew into instructions.

    ``typed_instructions`` are the instructions before their templates, so that they can be expanded again.
    """

    base: str = ""
    instructions: str = ""
    project: str = ""
    memory: str = ""
    inlined: tuple[Artifact, ...] = ()
    typed_instructions: str = ""

    def as_typed(self) -> dict[str, str]:
        """The parts as the user gave them."""
        return {**dict(self.named()), "instructions": self.typed_instructions}

    def named(self) -> Iterator[tuple[str, str]]:
        """Each part that has text, with its name."""
        for name in PART_NAMES:
            text = getattr(self, name)
            if text:
                yield name, text


PART_NAMES: tuple[str, ...] = tuple(
    field.name for field in fields(SystemParts) if field.name not in ("inlined", "typed_instructions")
)


class TurnInput(Struct, frozen=True, kw_only=True, gc=False):
    """What the user does in one turn: the text after templates and as typed. ``None`` means: as it was.

    ``id`` is the message's, where it has one already. ``rewritten`` says that what came before this turn is not what
    was sent last: an edit, or another branch. ``strip`` is a model's summary of the oldest turns that are not shown.
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
    fold: bool = False
    layout: Layout | None = None
    carry_forward: CarryForward | None = None
    history: History | None = None
    history_turns: int | None = None
    strip: str | None = None
    image_notes: bool | None = None
    rewritten: Rewrite | None = None
    warnings: tuple[str, ...] = ()


class PastTurn(Struct, frozen=True, kw_only=True, gc=False):
    """A turn of the past: what was asked, the reply with its id, if there was one, and what was compacted before it."""

    turn: TurnInput
    reply: str | None = None
    reply_id: str | None = None
    receipts: tuple[Receipt, ...] = ()
