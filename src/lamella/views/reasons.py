"""Why something is in the prompt or is not, as data."""

from collections.abc import Sequence
from typing import Protocol

from lamella.core.prompt.layers.model import LayerId, Segment


class RemedyShape(Protocol):
    """Something to do, and with what."""

    @property
    def do(self) -> str: ...
    @property
    def what(self) -> str: ...


class ReasonShape(Protocol):
    """What has to be known of a reason to show it."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def in_prompt(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def turns(self) -> Sequence[int]: ...
    @property
    def segments(self) -> Sequence[tuple[LayerId | None, Segment]]: ...
    @property
    def remedies(self) -> Sequence[RemedyShape]: ...


def view_reason(conversation: str, reason: ReasonShape) -> dict[str, object]:
    """A reason, in the names of docs/conversations.md."""
    return {
        "lamella": 1,
        "conversation": conversation,
        "id": reason.id,
        "kind": reason.kind,
        "title": reason.title,
        "in_prompt": reason.in_prompt,
        "why": reason.why,
        "turns": list(reason.turns),
        "segments": [_view_standing(layer, segment) for layer, segment in reason.segments],
        "brings_in": [{"do": str(remedy.do), "what": remedy.what} for remedy in reason.remedies],
    }


def _view_standing(layer: LayerId | None, segment: Segment) -> dict[str, object]:
    return {
        "layer": None if layer is None else layer.value,
        "form": segment.form.value,
        "place": segment.place,
        "tokens": segment.tokens,
    }
