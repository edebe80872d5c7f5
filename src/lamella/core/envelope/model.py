"""The envelope: everything that is sent in one turn, and what each byte of it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.layers.library import Standing
from lamella.core.layers.model import LAYER_ORDER, Layer, LayerId, Layout
from lamella.core.messages.model import Message

ENVELOPE_VERSION = 1


class Rewrite(StrEnum):
    """How the history before a turn came to differ from what was sent last."""

    HISTORY_EDITED = "history_edited"
    BRANCH = "branch"


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

    def layer(self, layer_id: LayerId) -> Layer:
        return self.layers[LAYER_ORDER.index(layer_id)]
