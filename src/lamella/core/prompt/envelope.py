"""The envelope: a prompt that may be sent, in its five layers, with every hash and count; and as a neutral request."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from lamella.core.artifacts.kinds import UNPARSED_KINDS
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget.counting import count_images, count_pieces, count_tools
from lamella.core.budget.thresholds import Budget, warn_of
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.placement import Form
from lamella.core.log.terms import CacheMarks, Effort, Layout
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request, Seams, find_seams
from lamella.core.prompt.layers.library import build_library
from lamella.core.prompt.layers.model import Layer, LayerId, Segment, hash_pieces, make_layer
from lamella.core.prompt.layers.strip import build_strip
from lamella.core.prompt.layers.turn import build_user
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import describe, replace

ENVELOPE_VERSION = 1
# Forms of which something is not there to be read.
_SHORTENED = (Form.PREVIEW, Form.HANDLE, Form.SUMMARY)


class TokenCounts(Struct, frozen=True, kw_only=True, gc=False):
    """What the request weighs: counted on the rendered messages, and by layer.

    ``limit`` is what it may weigh, ``window`` what fits together with the answer, where that is known.
    """

    total: int
    by_layer: Mapping[str, int]
    limit: int
    window: int | None = None


class Envelope(Struct, frozen=True, kw_only=True, dict=True):
    """One turn's request: five layers, always, and the messages they render to.

    ``seals`` are what was hashed when it was made, each with its hash.
    """

    prompt: Prompt
    layers: tuple[Layer, ...]
    messages: tuple[Message, ...]
    prefix_hash: str
    hash: str
    tokens: TokenCounts
    warnings: tuple[str, ...] = ()
    version: int = ENVELOPE_VERSION
    seals: tuple[tuple[object, str], ...] = ()

    def __repr__(self) -> str:
        return describe(self, without=("prompt", "layers", "messages", "seals"))

    @property
    def conversation_id(self) -> str:
        return self.prompt.conversation_id

    @property
    def message_id(self) -> str:
        return self.prompt.user.segment.id

    @property
    def epoch(self) -> int:
        return self.prompt.epoch

    @property
    def layout(self) -> Layout:
        return self.prompt.terms.layout

    @property
    def model(self) -> str | None:
        return self.prompt.model

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        return self.prompt.tools

    @property
    def dropped(self) -> tuple[str, ...]:
        """What the user took out with this turn."""
        return self.prompt.dropped

    @property
    def text(self) -> str:
        """All five layers as one string, for consumers that want one; a blank line between layers."""
        return "\n\n".join(layer.text for layer in self.layers if layer.pieces)

    @property
    def total(self) -> int:
        return self.tokens.total

    @cached_property
    def by_id(self) -> Mapping[LayerId, Layer]:
        return {layer.id: layer for layer in self.layers}

    def layer(self, layer_id: LayerId) -> Layer:
        return self.by_id[layer_id]

    def segments(self, layer_id: LayerId) -> tuple[Segment, ...]:
        return self.by_id[layer_id].segments


def make_envelope(prompt: Prompt, budget: Budget) -> Envelope:
    """A prompt with its layers, hashes and counts; whoever sends it checks its laws first."""
    messages = prompt.messages
    tokens = count_tokens(prompt, budget)
    layers = (
        prompt.system_layer,
        build_library(prompt.standing_library, prompt.standing),
        _build_turn(prompt, tokens.by_layer[LayerId.L3]),
        build_strip(prompt.strip),
        build_user(prompt.user),
    )
    prefix_hash, whole = hash_prefix(messages), hash_layers(layers)
    return Envelope(
        prompt=prompt,
        layers=layers,
        messages=messages,
        prefix_hash=prefix_hash,
        hash=whole,
        tokens=tokens,
        warnings=(*prompt.warnings, *warn_of(tokens.total, budget)),
        seals=(*[(layer.pieces, layer.hash) for layer in layers], (messages, prefix_hash), (layers, whole)),
    )


def _build_turn(prompt: Prompt, tokens: int) -> Layer:
    pieces = prompt.shown[1]
    if prompt.rounds:
        pieces = (*pieces, *(said.text for said in prompt.rounds))
    return make_layer(LayerId.L3, segments=prompt.turn_segments, pieces=pieces, tokens=tokens)


def count_tokens(prompt: Prompt, budget: Budget) -> TokenCounts:
    """Everything sent: messages with their overhead, images, tool definitions. What no layer claims is overhead."""
    _, pieces, _, images = prompt.shown
    count = prompt.measure.count
    turn = count(pieces[0]) if len(pieces) == 1 else count_pieces(pieces, count)
    turn += count_images(images, prompt.measure) if images else 0
    by_layer = {
        LayerId.L1.value: prompt.system_layer.tokens,
        LayerId.L2.value: sum([standing.segment.tokens for standing in prompt.standing_library]),
        LayerId.L3.value: turn + sum([said.segment.tokens for said in prompt.rounds]),
        LayerId.L4.value: sum([segment.tokens for segment in prompt.strip]),
        LayerId.L5.value: prompt.user.segment.tokens,
        "tools": count_tools(prompt.tools, count) if prompt.tools else 0,
    }
    by_layer["overhead"] = max(0, prompt.total - sum(by_layer.values()))
    return TokenCounts(total=prompt.total, by_layer=by_layer, limit=budget.limit, window=budget.window)


def hash_prefix(messages: Sequence[Message]) -> str:
    """The hash of the system message; of nothing where none is sent."""
    return hash_pieces(messages[0].pieces if messages and messages[0].role is Role.SYSTEM else ())


def hash_layers(layers: Sequence[Layer]) -> str:
    """The hash of the layers' hashes, a line each: equal exactly when every layer is, without reading them again."""
    return hash_pieces([f"{layer.id} {layer.hash}\n" for layer in layers])


def make_imprint(envelope: Envelope) -> Imprint:
    """What is kept of a request with its question: hashes, the renderer's version, and measures."""
    prompt, layers = envelope.prompt, envelope.layers
    system, library, turn, strip, _ = layers
    forms = [segment.form for segment in (*library.segments, *strip.segments)]
    opening = prompt.opening
    # Stand-ins are no context of their own: the messages that they stand for are counted.
    left_out = opening.left_out - len(opening.blocks) - (opening.notice is not None)
    referred = {segment.id for segment in prompt.shown[0] if segment.form is Form.REFERENCE}
    sizes = {artifact.id: len(artifact.text.encode()) for artifact in prompt.attached}
    return Imprint(
        renderer=prompt.renderer,
        system=system.hash,
        library=library.hash,
        prefix=envelope.prefix_hash,
        whole=envelope.hash,
        segments=tuple([len(layer.segments) for layer in layers]),
        attached=sum(sizes.values()),
        referred=sum([size for name, size in sizes.items() if name in referred]),
        context=len(forms) + left_out,
        compacted=sum([forms.count(form) for form in _SHORTENED]) + left_out,
        unparsed=sum([segment.kind in UNPARSED_KINDS for segment in (*library.segments, *turn.segments)]),
    )


def make_request(
    envelope: Envelope, *, model: str, answer: int, pause: float | None = None, compare: str | None = None
) -> Request:
    """The request, with what is known of its stability: blocks that are promoted at once are not sent again.

    ``pause`` and ``compare`` are as in the request.
    """
    prompt, messages, terms = envelope.prompt, envelope.messages, envelope.prompt.terms
    changes = prompt.placement.promotes and bool(prompt.shown[1])
    stays = prompt.asked_at if changes and not prompt.rounds else len(messages)
    return Request(
        model=model,
        messages=messages,
        tools=prompt.tools,
        answer=answer,
        conversation=prompt.conversation_id,
        seams=replace(find_seams(messages), messages=stays) if prompt.first else Seams(messages=stays),
        # Where prices decide, the plan says what is kept for longer, and no pause has to.
        pause=None if prompt.placement.priced else pause,
        compare=compare,
        marks=prompt.placement.marks,
        lasting=prompt.placement.lasting,
        temperature=terms.temperature,
        caching=None if terms.cache_marks is CacheMarks.EXPLICIT else terms.cache_marks.value,
        effort=None if terms.reasoning_effort is Effort.DEFAULT else terms.reasoning_effort.value,
    )
