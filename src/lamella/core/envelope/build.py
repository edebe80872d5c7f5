"""Building an envelope from what stands in the request and what is asked now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.budget.counting import Measure, count_tools
from lamella.core.budget.thresholds import Budget, check_budget
from lamella.core.envelope.fingerprint import hash_layers, hash_prefix
from lamella.core.envelope.invariants import check_laws
from lamella.core.envelope.model import Envelope, Rewrite, TokenCounts
from lamella.core.layers.library import Standing, build_library
from lamella.core.layers.model import Layer, Layout, Role, Segment, message_place
from lamella.core.layers.strip import Exchange, Said, build_strip, past_messages
from lamella.core.layers.system import SystemParts, build_system
from lamella.core.layers.turn import BuiltTurn, build_turn
from lamella.core.layers.user import build_user
from lamella.core.messages.model import Message
from lamella.core.messages.render import render_system, render_user
from lamella.core.messages.weigh import weigh

_LARGEST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Everything an envelope is built from. ``library`` is L2 in its order; ``shelf`` is what the system holds."""

    conversation_id: str
    epoch: int
    layout: Layout
    model: str | None
    tools: tuple[ToolDefinition, ...]
    system: SystemParts
    shelf: tuple[Standing, ...]
    library: tuple[Standing, ...]
    carried: tuple[Standing, ...]
    standing: Mapping[str, Standing]
    exchanges: tuple[Exchange, ...]
    epoch_start: int
    attached: tuple[Artifact, ...]
    user: Said
    dropped: tuple[str, ...]
    rewritten: Rewrite | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvelope:
    """An envelope, and what L3 added to what stands in the request."""

    envelope: Envelope
    turn: BuiltTurn


def build_envelope(
    ground: Ground, *, measure: Measure, budget: Budget, before: Envelope | None, checked: bool = True
) -> BuiltEnvelope:
    """The envelope for one turn; raises if it is over the hard threshold, or breaks a law."""
    system = build_system(ground.system, count=measure.count)
    head = render_system(system, ground.shelf, count=measure.count)
    first = 1 if head else 0
    last = message_place(first + 2 * len(ground.exchanges))
    turn = build_turn(ground.attached, standing=ground.standing, layout=ground.layout, place=last, measure=measure)
    layers = (
        system,
        build_library(ground.library),
        turn.layer,
        build_strip(ground.exchanges, first=first, epoch_start=ground.epoch_start),
        build_user(ground.user, place=last),
    )
    messages = (
        *((head,) if head else ()),
        *past_messages(ground.exchanges, epoch_start=ground.epoch_start),
        render_user(turn.layer.pieces, layers[4].pieces, turn.images, count=measure.count),
    )
    tokens = count_request(layers, messages, ground.tools, measure=measure, budget=budget)
    warnings = check_budget(tokens.total, budget, largest=lambda: _largest(layers)) if checked else ()
    envelope = Envelope(
        conversation_id=ground.conversation_id,
        message_id=ground.user.id,
        epoch=ground.epoch,
        layout=ground.layout,
        model=ground.model,
        tools=ground.tools,
        layers=layers,
        messages=messages,
        prefix_hash=hash_prefix(messages),
        hash=hash_layers(layers),
        tokens=tokens,
        shelf=ground.shelf,
        carried=ground.carried,
        dropped=ground.dropped,
        rewritten=ground.rewritten,
        warnings=(*ground.warnings, *warnings),
    )
    if checked:
        check_laws(envelope, before=before)
    return BuiltEnvelope(envelope=envelope, turn=turn)


def count_request(
    layers: Sequence[Layer],
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    *,
    measure: Measure,
    budget: Budget,
) -> TokenCounts:
    """Everything sent: messages with their overhead, images, tool definitions. What no layer claims is overhead."""
    total = weigh(messages, tools, measure)
    by_layer = {layer.id.value: layer.tokens for layer in layers}
    by_layer["tools"] = count_tools(tools, measure.count)
    by_layer["overhead"] = max(0, total - sum(by_layer.values()))
    return TokenCounts(total=total, by_layer=by_layer, limit=budget.limit)


def _largest(layers: Sequence[Layer]) -> list[str]:
    segments = [segment for layer in layers for segment in layer.segments if segment.tokens]
    largest = sorted(segments, key=_by_tokens)[:_LARGEST_NAMED]
    typed_now = layers[-1].segments
    return [f"{_called(segment, now=segment in typed_now)} ({segment.tokens:,} tokens)" for segment in largest]


def _called(segment: Segment, *, now: bool) -> str:
    """What people call a part of the request; a message's id would tell them nothing."""
    if now:
        return "what was typed now"
    if segment.kind == Role.SYSTEM:
        return f"the system prompt's {segment.id}"
    return {Role.USER.value: "an earlier message", Role.REPLY.value: "an earlier reply"}.get(segment.kind, segment.id)


def _by_tokens(segment: Segment) -> int:
    return -segment.tokens
