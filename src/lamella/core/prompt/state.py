"""The state a conversation folds to: what is known, what stands in the request, what was said."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.rules import Compaction
from lamella.core.log.placement import Form
from lamella.core.log.terms import CarryForward, History, Layout
from lamella.core.log.turn import SystemParts
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, Derived, Opening
from lamella.core.prompt.layers.strip import Exchange, Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for every turn of a conversation, until it is changed."""

    measure: Measure
    layout: Layout = Layout.LIBRARY
    carry_forward: CarryForward = CarryForward.FULL
    budget: Budget = field(default_factory=Budget)
    compaction: Compaction = field(default_factory=Compaction)
    history: History = History.FULL
    history_turns: int | None = None
    image_notes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A conversation between two turns.

    ``known`` is every promoted artifact in first-seen order, with its newest text. ``shelf`` is the part of it that
    the system message holds; ``standing`` is everything that stands in the messages of the epoch, shelf included.
    ``forms`` are the smaller forms that compactions gave to some of ``known``, until they are attached again;
    ``attached_at`` is the number of the turn that attached each of them last, ``turns`` how many there were.
    ``exchanges`` are those still sent but for the first ``hidden``, after the ``opening`` that stands in for the rest.
    ``shrunk_to`` is what the last compaction in force came to in tokens; ``compacted`` names what it did to the bytes
    sent before, until the next turn is asked.
    """

    conversation: str
    system: SystemParts = field(default_factory=SystemParts)
    tools: tuple[ToolDefinition, ...] = ()
    model: str | None = None
    head: str = ""
    known: Mapping[str, Artifact] = field(default_factory=dict)
    shelf: Mapping[str, Standing] = field(default_factory=dict)
    standing: Mapping[str, Standing] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()
    epoch: int = 0
    epoch_start: int = 0
    layout: Layout | None = None
    carry_forward: CarryForward | None = None
    measured_by: str = ""
    last: Sent | None = None
    forms: Mapping[str, Form] = field(default_factory=dict)
    attached_at: Mapping[str, int] = field(default_factory=dict)
    turns: int = 0
    opening: Opening = NOTHING_LEFT_OUT
    hidden: int = 0
    stand_in: Derived | None = None
    shrunk_to: int | None = None
    compacted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A turn that was asked and not answered yet: its envelope, and the state once the reply is known."""

    envelope: Envelope
    state: State
    user: Said
    attached: tuple[Artifact, ...]
    tools: tuple[Standing, ...]
