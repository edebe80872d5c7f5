"""How much of each layer the cached prefix covers."""

from collections import defaultdict
from collections.abc import Mapping

from lamella.core.budget.counting import Measure, count_images, count_tools
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import SYSTEM_PLACE, LayerId, Segment, message_place

# Within one message: what is carried stands before what was typed.
_ORDER = (LayerId.L1, LayerId.L2, LayerId.L3, LayerId.L4, LayerId.L5)


def cover_layers(envelope: Envelope, read: int, measure: Measure) -> Mapping[LayerId, int]:
    """Cached tokens by layer, walking the messages in wire order; overhead belongs to no layer."""
    standing = _by_place(envelope)
    covered = dict.fromkeys(LayerId, 0)
    left = read - count_tools(envelope.tools, measure.count)
    for index, message in enumerate(envelope.messages):
        if left <= 0:
            break
        weight = message.tokens + count_images(message.images, measure) + measure.per_message
        room = left if weight > left else weight
        for layer_id, segment in standing[_place(index, message)]:
            taken = min(room, segment.tokens)
            covered[layer_id] += taken
            room -= taken
        left -= weight
    return covered


def _by_place(envelope: Envelope) -> Mapping[str | None, list[tuple[LayerId, Segment]]]:
    standing: defaultdict[str | None, list[tuple[LayerId, Segment]]] = defaultdict(list)
    for layer_id in _ORDER:
        for segment in envelope.segments(layer_id):
            standing[segment.place].append((layer_id, segment))
    return standing


def _place(index: int, message: Message) -> str:
    return SYSTEM_PLACE if message.role is Role.SYSTEM else message_place(index)
