"""L1, the system prompt: base, instructions, project, memory. Stable parts first, never a date."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from lamella.core.artifacts.model import Artifact
from lamella.core.prompt.layers.fingerprint import make_layer
from lamella.core.prompt.layers.model import SYSTEM_PLACE, Count, Form, Layer, LayerId, Role, Segment


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


def build_system(parts: SystemParts, *, count: Count) -> Layer:
    """L1 as one segment per part that has text."""
    segments = [
        Segment(
            id=name,
            kind=Role.SYSTEM,
            form=Form.FULL,
            place=SYSTEM_PLACE,
            text=text,
            tokens=count(text),
            recoverable=True,
            inlines=tuple((a.id, a.hash) for a in parts.inlined) if name == "instructions" else (),
        )
        for name, text in parts.named()
    ]
    text = "\n\n".join(segment.text for segment in segments)
    return make_layer(LayerId.L1, segments=segments, pieces=(text,) if text else (), tokens=count(text) if text else 0)


def changed_part(before: Iterable[Segment], after: Iterable[Segment]) -> str | None:
    """The first part, in sending order, whose text is not what it was."""
    old = {segment.id: segment.text for segment in before}
    new = {segment.id: segment.text for segment in after}
    return next((name for name in PART_NAMES if old.get(name) != new.get(name)), None)
