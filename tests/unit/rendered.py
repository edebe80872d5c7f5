"""The visible parts of a turn, in a form for assertions."""

from lamella import Turn
from lamella.core.prompt.layers.model import LayerId


def forms(turn: Turn, layer: LayerId) -> list[tuple[str, str]]:
    """The ids of a layer's segments and their forms, in order."""
    return [(segment.id, segment.form.value) for segment in turn.envelope.layer(layer).segments]


def library(turn: Turn) -> list[str]:
    """The ids of L2, in order."""
    return [segment.id for segment in turn.envelope.layer(LayerId.L2).segments]


def attached(turn: Turn) -> list[tuple[str, str]]:
    """L3 as ids and forms."""
    return forms(turn, LayerId.L3)


def sent(turn: Turn) -> str:
    """Everything that is sent, as one text."""
    return "\n".join(message.text for message in turn.messages)
