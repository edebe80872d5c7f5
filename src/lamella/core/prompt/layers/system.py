"""L1, the system prompt: its parts in order. Stable parts first, never a date."""

from collections.abc import Iterable

from lamella.core.log.placement import Form
from lamella.core.log.turn import PART_NAMES, SystemParts
from lamella.core.prompt.layers.memory import find_moved_fact
from lamella.core.prompt.layers.model import SYSTEM_PLACE, Count, Layer, LayerId, Segment, SegmentKind, make_layer

_REMEMBERED = "memory"
NO_SYSTEM = make_layer(LayerId.L1, segments=(), pieces=(), tokens=0)


def build_system(parts: SystemParts, *, count: Count) -> Layer:
    """L1 as one segment per part that has text."""
    named = parts.named()
    if not named:
        return NO_SYSTEM
    segments = [
        Segment(
            id=name,
            kind=SegmentKind.SYSTEM,
            form=Form.FULL,
            place=SYSTEM_PLACE,
            text=text,
            tokens=count(text),
            recoverable=True,
            inlines=tuple((a.id, a.hash) for a in parts.inlined) if name == "instructions" else (),
        )
        for name, text in named
    ]
    text = "\n\n".join([segment.text for segment in segments])
    return make_layer(LayerId.L1, segments=segments, pieces=(text,), tokens=count(text))


def changed_part(before: Iterable[Segment], after: Iterable[Segment]) -> str | None:
    """The first part, in sending order, whose text is not what it was."""
    old = {segment.id: segment.text for segment in before}
    new = {segment.id: segment.text for segment in after}
    return next((name for name in PART_NAMES if old.get(name) != new.get(name)), None)


def tell_change(part: str, before: Iterable[Segment], after: Iterable[Segment]) -> str:
    """A part that is not as it was, by its name; of the memory the line that moved is told as well."""
    if part != _REMEMBERED:
        return part
    texts = [next((segment.text for segment in one if segment.id == part), "") for one in (before, after)]
    moved = find_moved_fact(*texts)
    return part if moved is None else f"{part}, {moved}"
