"""The envelope: everything that is sent in one turn, and what each byte of it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.terms import Layout, Rewrite
from lamella.core.messages.model import Message
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import LAYER_ORDER, Layer, LayerId, Segment

ENVELOPE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """What the request weighs: counted on the rendered messages, and by layer."""

    total: int
    by_layer: Mapping[str, int]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One turn's request: five layers, always, and the messages they render to.

    ``shelf`` is what the system message holds of L2. ``carried`` is what earlier messages of the epoch hold without
    belonging to a layer (pictures, notes with pictures). ``dropped`` is what the user took out with this turn.
    ``rewritten`` says that an edit or another branch changed what came before it; ``compacted`` names the step of a
    compaction that did, or ``undo``.
    """

    conversation_id: str
    message_id: str
    epoch: int
    layout: Layout
    model: str | None
    tools: tuple[ToolDefinition, ...]
    layers: tuple[Layer, ...] = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)
    prefix_hash: str
    hash: str
    tokens: TokenCounts
    shelf: tuple[Standing, ...] = field(repr=False)
    carried: tuple[Standing, ...] = field(repr=False)
    dropped: tuple[str, ...] = ()
    rewritten: Rewrite | None = None
    compacted: str | None = None
    warnings: tuple[str, ...] = ()
    version: int = ENVELOPE_VERSION

    @property
    def text(self) -> str:
        """All five layers as one string, for consumers that want one; a blank line between layers."""
        return "\n\n".join(layer.text for layer in self.layers if layer.pieces)

    @property
    def total(self) -> int:
        return self.tokens.total

    def layer(self, layer_id: LayerId) -> Layer:
        return self.layers[LAYER_ORDER.index(layer_id)]

    def segments(self, layer_id: LayerId) -> tuple[Segment, ...]:
        return self.layer(layer_id).segments


class Sent(Protocol):
    """A request as the next one is compared with it: an envelope, or what has to be known of one that was sent."""

    @property
    def conversation_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def model(self) -> str | None: ...
    @property
    def tools(self) -> tuple[ToolDefinition, ...]: ...
    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def total(self) -> int: ...
    @property
    def shelf(self) -> tuple[Standing, ...]: ...
    @property
    def carried(self) -> tuple[Standing, ...]: ...

    def segments(self, layer_id: LayerId) -> tuple[Segment, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A request that was sent and answered: its hashes are not derived again, nor the text of its layers."""

    conversation_id: str
    epoch: int
    layout: Layout
    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...] = field(repr=False)
    total: int
    shelf: tuple[Standing, ...] = field(repr=False)
    carried: tuple[Standing, ...] = field(repr=False)
    by_layer: Mapping[LayerId, tuple[Segment, ...]] = field(repr=False)

    def segments(self, layer_id: LayerId) -> tuple[Segment, ...]:
        return self.by_layer[layer_id]
