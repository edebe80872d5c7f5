"""Building an envelope from what stands in the request and what is asked now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.budget.counting import Measure, count_tools
from lamella.core.budget.thresholds import Budget, warn_of
from lamella.core.budget.weigh import weigh
from lamella.core.log.terms import Layout, Rewrite
from lamella.core.log.turn import SystemParts
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.envelope import Envelope, Rebuilt, Sent, TokenCounts
from lamella.core.prompt.fingerprint import hash_layers, hash_prefix
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.layers.library import Standing, build_library
from lamella.core.prompt.layers.model import Layer, LayerId, message_place
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, Opening
from lamella.core.prompt.layers.strip import Exchange, Said, build_strip, list_strip, past_messages
from lamella.core.prompt.layers.system import build_system
from lamella.core.prompt.layers.turn import BuiltTurn, build_turn
from lamella.core.prompt.layers.user import build_user, place_user
from lamella.core.prompt.render import head_message, render_system, render_user


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
    opening: Opening = NOTHING_LEFT_OUT
    compacted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A request as it is sent, and the two layers that are made on the way to it."""

    system: Layer
    turn: BuiltTurn
    messages: tuple[Message, ...]

    @property
    def first(self) -> int:
        """The index of the first message after the system message."""
        return 1 if self.messages[0].role is Role.SYSTEM else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvelope:
    """An envelope, and what L3 added to what stands in the request."""

    envelope: Envelope
    turn: BuiltTurn


def render_request(ground: Ground, measure: Measure) -> Rendered:
    """The messages that a turn sends."""
    system = build_system(ground.system, count=measure.count)
    head = render_system(system, ground.shelf, count=measure.count)
    first = 1 if head else 0
    place = message_place(first + 2 * len(ground.exchanges))
    turn = build_turn(ground.attached, standing=ground.standing, place=place, measure=measure)
    typed = (ground.user.text,) if ground.user.text else ()
    messages = [
        *((head,) if head else ()),
        *past_messages(ground.exchanges, epoch_start=ground.epoch_start),
        render_user(turn.layer.pieces, typed, turn.images, count=measure.count),
    ]
    if ground.opening.pieces:
        messages[first] = head_message(messages[first], ground.opening.pieces, count=measure.count)
    return Rendered(system=system, turn=turn, messages=tuple(messages))


def build_envelope(
    ground: Ground, *, measure: Measure, budget: Budget, before: Sent | None, checked: bool = True
) -> BuiltEnvelope:
    """The envelope for one turn; raises if it breaks a law."""
    rendered = render_request(ground, measure)
    messages, first = rendered.messages, rendered.first
    layers = (
        rendered.system,
        build_library(ground.library),
        rendered.turn.layer,
        build_strip(ground.exchanges, first=first, epoch_start=ground.epoch_start, opening=ground.opening),
        build_user(ground.user, place=message_place(len(messages) - 1)),
    )
    tokens = count_request(layers, messages, ground.tools, measure=measure, budget=budget)
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
        compacted=ground.compacted,
        warnings=(*ground.warnings, *(warn_of(tokens.total, budget) if checked else ())),
    )
    if checked:
        check_laws(envelope, before=before)
    return BuiltEnvelope(envelope=envelope, turn=rendered.turn)


def rebuild_request(ground: Ground, measure: Measure) -> tuple[Rebuilt, BuiltTurn]:
    """A request that was built and checked before it was sent, as the next one is compared with it."""
    rendered = render_request(ground, measure)
    messages, first, start = rendered.messages, rendered.first, ground.epoch_start
    strip = list_strip(ground.exchanges, first=first, epoch_start=start, opening=ground.opening)
    rebuilt = Rebuilt(
        conversation_id=ground.conversation_id,
        epoch=ground.epoch,
        layout=ground.layout,
        model=ground.model,
        tools=ground.tools,
        messages=messages,
        total=weigh(messages, ground.tools, measure),
        shelf=ground.shelf,
        carried=ground.carried,
        by_layer={
            LayerId.L1: rendered.system.segments,
            LayerId.L2: tuple(standing.segment for standing in ground.library),
            LayerId.L3: rendered.turn.layer.segments,
            LayerId.L4: tuple(strip),
            LayerId.L5: (place_user(ground.user, place=message_place(len(messages) - 1)),),
        },
    )
    return rebuilt, rendered.turn


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
