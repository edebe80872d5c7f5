"""The envelope: a prompt with its five layers, hashes and token counts, and the request made from it."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from lamella.core.artifacts.kinds import UNPARSED_KINDS
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget import (
    TokenBudget,
    count_images_tokens,
    count_pieces_tokens,
    count_tools_tokens,
    list_budget_warnings,
)
from lamella.core.log.call import RequestHash
from lamella.core.log.turn import ArtifactForm, BreakpointMode, LayoutMode, ReasoningEffort, RequestFingerprint
from lamella.core.messages import CacheBoundaries, Message, ModelRequest, Role, derive_cache_boundaries
from lamella.core.prompt.layers.history import build_history_layer
from lamella.core.prompt.layers.library import build_library_layer
from lamella.core.prompt.layers.model import Layer, LayerId, Segment, hash_pieces, make_layer, shown_segments
from lamella.core.prompt.layers.turn import build_user_layer
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.signed_reasoning import drop_reasoning_of_other_models
from lamella.core.text.content import canonical_json
from lamella.core.values import replace, repr_without

ENVELOPE_VERSION = 1
# Forms that show less than the full text.
_SHORTENED_FORMS = (ArtifactForm.PREVIEW, ArtifactForm.HANDLE, ArtifactForm.SUMMARY)


class PromptTokenCounts(Struct, frozen=True, kw_only=True, gc=False):
    """The token counts of a request, in total and by layer, counted on the rendered messages.

    ``limit`` is the most it may have. ``window`` is the model's context window including the answer, if known.
    """

    total: int
    by_layer: Mapping[str, int]
    limit: int
    window: int | None = None


class Envelope(Struct, frozen=True, kw_only=True, dict=True):
    """The request of one turn: always five layers, and the messages they render to.

    ``known_hashes`` pairs the objects that were hashed when the envelope was built with their hashes, so that a check
    can compare identities and need not hash again.
    """

    prompt: Prompt
    layers: tuple[Layer, ...]
    messages: tuple[Message, ...]
    prefix_hash: str
    hash: str
    tokens: PromptTokenCounts
    warnings: tuple[str, ...] = ()
    version: int = ENVELOPE_VERSION
    known_hashes: tuple[tuple[object, str], ...] = ()

    def __repr__(self) -> str:
        return repr_without(self, without=("prompt", "layers", "messages", "known_hashes"))

    @property
    def conversation_id(self) -> str:
        return self.prompt.conversation_id

    @property
    def message_id(self) -> str:
        return self.prompt.question.segment.id

    @property
    def epoch(self) -> int:
        return self.prompt.epoch

    @property
    def layout(self) -> LayoutMode:
        return self.prompt.turn_settings.layout

    @property
    def model(self) -> str | None:
        return self.prompt.model

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        return self.prompt.tools

    @property
    def dropped(self) -> tuple[str, ...]:
        """Ids that the user dropped with this turn."""
        return self.prompt.dropped

    @property
    def text(self) -> str:
        """All five layers as one string, separated by blank lines, for consumers that want a single text."""
        return "\n\n".join(layer.text for layer in self.layers if layer.pieces)

    @property
    def total(self) -> int:
        return self.tokens.total

    @cached_property
    def by_id(self) -> Mapping[LayerId, Layer]:
        return {layer.id: layer for layer in self.layers}

    def layer(self, layer_id: LayerId) -> Layer:
        return self.by_id[layer_id]

    def segments(self, layer_id: LayerId) -> Sequence[Segment]:
        return self.by_id[layer_id].segments


def make_envelope(prompt: Prompt, budget: TokenBudget) -> Envelope:
    """Build the envelope of a prompt; the caller must check the invariants before sending it."""
    messages = prompt.messages
    tokens = count_prompt_tokens(prompt, budget)
    layers = (
        prompt.system_layer,
        build_library_layer(
            prompt.shown_library,
            prompt.placed if prompt.index is None else prompt.index.active_placed,
            segments=prompt.library_segments,
        ),
        _build_turn_layer(prompt, tokens.by_layer[LayerId.L3]),
        build_history_layer(prompt.history_segments),
        build_user_layer(prompt.question),
    )
    prefix_hash, whole = hash_system_message(messages), hash_layers(layers)
    return Envelope(
        prompt=prompt,
        layers=layers,
        messages=messages,
        prefix_hash=prefix_hash,
        hash=whole,
        tokens=tokens,
        warnings=(*prompt.warnings, *list_budget_warnings(tokens.total, budget)),
        known_hashes=(*[(layer.pieces, layer.hash) for layer in layers], (messages, prefix_hash), (layers, whole)),
    )


def _build_turn_layer(prompt: Prompt, tokens: int) -> Layer:
    pieces = prompt.rendered_attachments[1]
    if prompt.rounds:
        pieces = (*pieces, *(message.text for message in prompt.rounds))
    return make_layer(LayerId.L3, segments=prompt.turn_segments, pieces=pieces, tokens=tokens)


def count_prompt_tokens(prompt: Prompt, budget: TokenBudget) -> PromptTokenCounts:
    """Count the whole request by layer, with images and tool definitions; the rest is ``overhead``."""
    _, pieces, _, images = prompt.rendered_attachments
    count = prompt.tokenizer.count
    turn = count(pieces[0]) if len(pieces) == 1 else count_pieces_tokens(pieces, count)
    turn += count_images_tokens(images, prompt.tokenizer) if images else 0
    by_layer = {
        LayerId.L1.value: prompt.system_layer.tokens,
        LayerId.L2.value: sum([placed.segment.tokens for placed in prompt.shown_library]),
        LayerId.L3.value: turn + sum([message.segment.tokens for message in prompt.rounds]),
        LayerId.L4.value: sum([segment.tokens for segment in prompt.history_segments]),
        LayerId.L5.value: prompt.question.segment.tokens,
        "tools": count_tools_tokens(prompt.tools, count) if prompt.tools else 0,
    }
    for position in prompt.checked_messages.reasoning_dropped_at:
        layer = LayerId.L3 if position > prompt.question_index else LayerId.L4
        by_layer[layer] -= prompt.rendered_messages[position].tokens - prompt.messages[position].tokens
    by_layer["overhead"] = max(0, prompt.total - sum(by_layer.values()))
    return PromptTokenCounts(total=prompt.total, by_layer=by_layer, limit=budget.limit, window=budget.window)


def hash_system_message(messages: Sequence[Message]) -> str:
    """Return the hash of the system message, or the hash of no text if there is none."""
    return hash_pieces(messages[0].pieces if messages and messages[0].role is Role.SYSTEM else ())


def hash_layers(layers: Sequence[Layer]) -> str:
    """Return one hash over the layers' hashes.

    It is equal exactly if all layers are equal, and does not read their texts again.
    """
    return hash_pieces([f"{layer.id} {layer.hash}\n" for layer in layers])


def make_fingerprint(envelope: Envelope) -> RequestFingerprint:
    """Build the fingerprint of a request, stored with its question: hashes, renderer version and counts."""
    prompt, layers = envelope.prompt, envelope.layers
    system, library, turn, strip, _ = layers
    # Retired artifacts are handles without text.
    retired, shown = prompt.retired_count, shown_segments(library.segments)
    forms = [segment.form for segment in (*shown, *strip.segments)]
    preamble = prompt.preamble
    # Placeholders are not context of their own: the messages they replace are counted instead of them.
    left_out = preamble.removed_messages - len(preamble.blocks) - (preamble.notice is not None)
    referred = {segment.id for segment in prompt.rendered_attachments[0] if segment.form is ArtifactForm.REFERENCE}
    sizes = {artifact.id: len(artifact.text.encode()) for artifact in prompt.attached}
    return RequestFingerprint(
        renderer=prompt.renderer_version,
        system=system.hash,
        library=library.hash,
        prefix=envelope.prefix_hash,
        whole=envelope.hash,
        segments=tuple([len(layer.segments) for layer in layers]),
        attached=sum(sizes.values()),
        referred=sum([size for name, size in sizes.items() if name in referred]),
        context=len(forms) + retired + left_out,
        compacted=sum([forms.count(form) for form in _SHORTENED_FORMS]) + retired + left_out,
        unparsed=sum([segment.kind in UNPARSED_KINDS for segment in (*shown, *turn.segments)])
        + (0 if prompt.index is None else prompt.index.unparsed),
    )


def hash_request(envelope: Envelope) -> RequestHash:
    """Return the hash of what a request says: its text, its tool rounds with their calls, and the tool definitions.

    The model and the parameters of the call are not included. The fingerprint of a turn covers its first request only.
    """
    prompt = envelope.prompt
    rounds = [canonical_json(message.to_dict()) for message in envelope.messages[prompt.question_index + 1 :]]
    tools = [canonical_json([tool.name, tool.description, tool.parameters]) for tool in prompt.tools]
    return RequestHash(hash_pieces([f"{envelope.hash}\n", *tools, "\n", *rounds]), prompt.renderer_version)


def is_shortened(prompt: Prompt) -> bool:
    """Return whether a request lacks text that recall can return: removed messages, or shortened context."""
    if prompt.preamble.removed_messages or prompt.retired_count:
        return True
    layers = (LayerId.L2, LayerId.L3, LayerId.L4)
    return any(segment.form in _SHORTENED_FORMS for layer in layers for segment in prompt.segments(layer))


def count_stable_messages(prompt: Prompt) -> int:
    """Return how many messages the next request starts with.

    If the layout moves attachments into the library right after their turn, the question will not be sent again in this
    form, so the boundary is before it.
    """
    changes = prompt.layout_plan.promotes and bool(prompt.rendered_attachments[1])
    return prompt.question_index if changes and not prompt.rounds else len(prompt.messages)


def make_request(
    envelope: Envelope,
    *,
    model: str,
    max_output_tokens: int,
    expected_pause: float | None = None,
    previous_reply_id: str | None = None,
) -> ModelRequest:
    """Build the provider-neutral request, with cache boundaries and breakpoints.

    ``expected_pause`` and ``previous_reply_id`` have the same meaning as in
    ``ModelRequest``.
    """
    prompt, turn_settings = envelope.prompt, envelope.prompt.turn_settings
    # The prompt does not always know the model.
    messages = envelope.messages
    if prompt.model != model:
        messages = drop_reasoning_of_other_models(messages, model=model, count=prompt.tokenizer.count)
    stays = count_stable_messages(prompt)
    return ModelRequest(
        model=model,
        messages=messages,
        tools=prompt.tools,
        max_output_tokens=max_output_tokens,
        conversation=prompt.conversation_id,
        cache_boundaries=replace(derive_cache_boundaries(messages), stable_messages=stays)
        if prompt.first_message
        else CacheBoundaries(stable_messages=stays),
        # If costs decide the layout, the plan already says what to cache longer; the pause must not decide it again.
        expected_pause=None if prompt.layout_plan.priced else expected_pause,
        previous_reply_id=previous_reply_id,
        breakpoints=prompt.breakpoints,
        long_lifetime_until=prompt.layout_plan.long_lifetime_until,
        temperature=turn_settings.temperature,
        breakpoint_mode=None
        if turn_settings.cache_marks is BreakpointMode.EXPLICIT
        else turn_settings.cache_marks.value,
        effort=None
        if turn_settings.reasoning_effort is ReasoningEffort.DEFAULT
        else turn_settings.reasoning_effort.value,
    )
