"""Broken envelopes: a good one with one thing changed, and sealed again so that only this is wrong with it."""

from collections.abc import Sequence
from hashlib import sha256

from lamella import Conversation, Envelope, Layer, Note, Segment, Selection, ToolResult, Turn
from lamella.core.prompt.invariants import iter_violations
from lamella.core.prompt.layers.model import LAYER_ORDER, LayerId
from lamella.core.values import replace

PICKED = Selection(path="a.md", lines=(3, 4), text="what was picked")
NOTE = Note(path="a.md", text="the whole note")
FOUND = ToolResult(name="search", arguments={"q": "x"}, output="what was found")


def turns(layout: str) -> tuple[Turn, Turn]:
    """Two turns: a note, a selection and a tool result; then the note again, and a new one."""
    chat = Conversation(system="Be brief.", layout=layout)
    first = chat.ask("First?", attach=[NOTE, PICKED], results=[FOUND])
    chat.reply("Yes.")
    return first, chat.ask("Second?", attach=[NOTE, Note(path="b.md", text="another note")])


def broken_invariants(envelope: Envelope, *, before: Envelope | None = None) -> list[str]:
    """The names of the laws an envelope breaks."""
    return [law.name for law, _ in iter_violations(envelope, before=None if before is None else before.prompt)]


def with_segments(envelope: Envelope, layer_id: LayerId, segments: Sequence[Segment]) -> Envelope:
    """The envelope with other segments in a layer, whose text and hashes follow them."""
    gap = "\n\n" if layer_id in (LayerId.L1, LayerId.L4) else ""
    text = gap.join(segment.text for segment in segments)
    old = envelope.layer(layer_id)
    return with_layer(envelope, replace(old, segments=tuple(segments), pieces=(text,) if text else (), hash=seal(text)))


def with_layer(envelope: Envelope, layer: Layer) -> Envelope:
    """The envelope with one layer replaced."""
    return sealed(replace(envelope, layers=tuple(layer if old.id == layer.id else old for old in envelope.layers)))


def sealed(envelope: Envelope) -> Envelope:
    """The envelope with the hash that its layers give it."""
    lines = "".join(f"{layer.id.value} {layer.hash}\n" for layer in envelope.layers)
    return replace(envelope, hash=seal(lines))


def seal(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def segments_of(envelope: Envelope, layer_id: LayerId) -> tuple[Segment, ...]:
    return tuple(envelope.layers[LAYER_ORDER.index(layer_id)].segments)
