"""L4, the conversation strip: earlier turns as the user saw them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lamella.core.artifacts.content import hash_text
from lamella.core.budget.counting import Measure
from lamella.core.layers.fingerprint import make_layer
from lamella.core.layers.library import Standing
from lamella.core.layers.model import Form, Layer, LayerId, Role, Segment, message_place
from lamella.core.messages.model import Message, Speaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Typed text or a reply: its message id, and its hash and message made once."""

    id: str
    role: Role
    text: str
    hash: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One earlier turn: what the user typed, the message it was sent as, its tool results, and the reply."""

    user: Said
    sent: Message
    tools: tuple[Standing, ...]
    reply: Said


def make_said(message_id: str, role: Role, text: str, *, measure: Measure) -> Said:
    """Typed text or a reply, with its hash and message."""
    speaker = Speaker.USER if role is Role.USER else Speaker.ASSISTANT
    message = Message(role=speaker, pieces=(text,) if text else (), tokens=measure.count(text) if text else 0)
    return Said(id=message_id, role=role, text=text, hash=hash_text(text), message=message)


def build_strip(exchanges: Sequence[Exchange], *, first: int, epoch_start: int) -> Layer:
    """L4: typed text and replies, and the tool results that still stand in the messages of this epoch."""
    segments: list[Segment] = []
    for index, exchange in enumerate(exchanges):
        place = first + 2 * index
        if index >= epoch_start:
            segments += [tool.segment for tool in exchange.tools]
        segments += (_said(exchange.user, place), _said(exchange.reply, place + 1))
    pieces = [part for segment in segments for part in (segment.text, "\n\n") if part]
    return make_layer(
        LayerId.L4, segments=segments, pieces=pieces[:-1], tokens=sum(segment.tokens for segment in segments)
    )


def past_messages(exchanges: Sequence[Exchange], *, epoch_start: int) -> Iterable[Message]:
    """Earlier messages as they are sent now: plain before this epoch began, as they were sent within it."""
    for index, exchange in enumerate(exchanges):
        yield exchange.sent if index >= epoch_start else exchange.user.message
        yield exchange.reply.message


def _said(said: Said, place: int) -> Segment:
    return Segment(
        id=said.id,
        kind=said.role,
        form=Form.FULL,
        place=message_place(place),
        hash=said.hash,
        text=said.text,
        tokens=said.message.tokens,
        recoverable=False,
    )
