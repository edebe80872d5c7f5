"""Laws of talk: what L4 may hold, and calls and their results together."""

from collections.abc import Iterable, Sequence

from lamella.core.artifacts.model import Kind
from lamella.core.log.placement import Form
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.laws.law import Law, anywhere
from lamella.core.prompt.layers.model import Layer, LayerId, SegmentKind, message_place
from lamella.core.prompt.prompt import Prompt

_TALK: frozenset[str] = frozenset(kind.value for kind in SegmentKind if kind is not SegmentKind.SYSTEM)
_STRIP = _TALK | {Kind.TOOL.value}


def _check_strip(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    for segment in envelope.segments(LayerId.L4):
        if segment.kind not in _STRIP:
            yield f"L4 holds {segment.id}, a {segment.kind}"


def _cut_strip(layer: Layer) -> frozenset[int]:
    """A strip is cut only where a turn begins: an answer without its question is no longer what the user saw."""
    if layer.id is not LayerId.L4:
        return anywhere(layer)
    starts = {0, len(layer.segments)}
    starts.update(
        index
        for index, segment in enumerate(layer.segments)
        if index > 0 and layer.segments[index - 1].kind == SegmentKind.REPLY and segment.kind != SegmentKind.REPLY
    )
    return frozenset(starts)


STRIP_CONTENT = Law(
    name="strip_content",
    statement="L4 holds typed text, replies, what stands in for those, and what tools gave in earlier turns.",
    check=_check_strip,
    cuts=_cut_strip,
)


def _check_pairs(envelope: Envelope, _before: Prompt | None) -> Iterable[str]:
    asked = {segment.place for segment in envelope.segments(LayerId.L4) if segment.kind == SegmentKind.USER}
    asked.update(segment.place for segment in envelope.segments(LayerId.L5))
    asked.update(message_place(at) for at, message in enumerate(envelope.messages) if message.role is Role.TOOL)
    for layer_id in (LayerId.L2, LayerId.L3, LayerId.L4):
        for segment in envelope.segments(layer_id):
            if segment.kind != Kind.TOOL:
                continue
            if layer_id is LayerId.L2:
                yield f"{segment.id} stands in the library, apart from its turn"
            elif segment.form is Form.FULL and segment.place not in asked:
                yield f"{segment.id} stands at {segment.place}, apart from its turn"
    yield from _find_unpaired(envelope.messages)


def _find_unpaired(messages: Sequence[Message]) -> Iterable[str]:
    """Every call is followed by what came back for it, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message.role is not Role.TOOL:
            yield from (f"the call {name} has no result" for name in waiting)
            waiting = [call.id for call in message.calls]
        elif message.call in waiting:
            waiting.remove(message.call)
        else:
            yield f"a result answers {message.call}, which nobody called for"
    yield from (f"the call {name} has no result" for name in waiting)


def _cut_pairs(layer: Layer) -> frozenset[int]:
    """Never between a tool result or a call and what belongs to the same turn behind it."""
    bound = (Kind.TOOL.value, SegmentKind.CALL.value)
    inside = {
        index + 1
        for index, segment in enumerate(layer.segments[:-1])
        if segment.kind in bound or layer.segments[index + 1].kind == SegmentKind.CALL
    }
    return anywhere(layer) - inside


TOOL_PAIRS = Law(
    name="tool_pairs",
    statement="A tool's call and its result stand together, in the turn that made the call.",
    check=_check_pairs,
    cuts=_cut_pairs,
)
