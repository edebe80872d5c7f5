"""L4, the conversation strip: earlier turns as the user saw them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamella.core.budget.counting import Measure, count_pieces
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.layers.fingerprint import make_layer
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import Count, Layer, LayerId, Segment, message_place
from lamella.core.prompt.layers.opening import Opening
from lamella.core.values import replace

# Members by name of their own: see docs/decisions/msgspec.md.
_FULL, _ASKS, _USER, _ASSISTANT = Form.FULL, Voice.USER, Role.USER, Role.ASSISTANT


class Said(Struct, frozen=True, kw_only=True, gc=False):
    """Typed text or a reply: its message, and its segment where it stands, both made once."""

    message: Message
    segment: Segment

    @property
    def id(self) -> str:
        return self.segment.id

    @property
    def text(self) -> str:
        return self.segment.text


class Exchange(Struct, frozen=True, kw_only=True, gc=False):
    """One earlier turn: what the user typed, the message it was sent as, its tool results, and the reply.

    ``joined`` are later replies whose questions were taken out, and ``answer`` is the message that holds them all.
    ``attached`` says that something came with the question; ``number`` is how many turns were asked before it.
    """

    user: Said
    sent: Message
    tools: tuple[Standing, ...]
    reply: Said
    joined: tuple[Said, ...] = ()
    answer: Message | None = None
    attached: bool = False
    number: int = 0

    @property
    def replies(self) -> tuple[Said, ...]:
        """The reply, and those that joined it."""
        return (self.reply, *self.joined)

    @property
    def said(self) -> tuple[Said, ...]:
        """Everything said in it."""
        return (self.user, self.reply, *self.joined)

    @property
    def said_tokens(self) -> int:
        return sum(said.segment.tokens for said in self.said)


def make_said(message_id: str, role: Voice, text: str, *, place: str, measure: Measure) -> Said:
    """Typed text or a reply as it stands at a place."""
    tokens = measure.count(text) if text else 0
    return Said(
        message=Message(role=_USER if role is _ASKS else _ASSISTANT, pieces=(text,) if text else (), tokens=tokens),
        segment=Segment(
            id=message_id,
            kind=role,
            form=_FULL,
            place=place,
            text=text,
            tokens=tokens,
            recoverable=False,
        ),
    )


def join_answer(exchange: Exchange, joined: Sequence[Said], *, count: Count) -> Exchange:
    """The exchange with these replies after its own, a blank line between them, all in one message."""
    if not joined:
        return replace(exchange, joined=(), answer=None)
    texts = [said.text for said in (exchange.reply, *joined) if said.text]
    pieces = [part for text in texts for part in (text, "\n\n")][:-1]
    answer = Message(role=Role.ASSISTANT, pieces=tuple(pieces), tokens=count_pieces(pieces, count))
    return replace(exchange, joined=tuple(joined), answer=answer)


def build_strip(exchanges: Sequence[Exchange], *, first: int, epoch_start: int, opening: Opening) -> Layer:
    """L4: what stands in for messages taken out, typed text and replies, and the epoch's tool results in messages."""
    segments = list_strip(exchanges, first=first, epoch_start=epoch_start, opening=opening)
    pieces = [part for segment in segments for part in (segment.text, "\n\n") if part]
    return make_layer(
        LayerId.L4, segments=segments, pieces=pieces[:-1], tokens=sum(segment.tokens for segment in segments)
    )


def list_strip(exchanges: Sequence[Exchange], *, first: int, epoch_start: int, opening: Opening) -> list[Segment]:
    """The segments of L4, in their order."""
    segments: list[Segment] = list(opening.segments(message_place(first)))
    # A result that was cut to its call and is attached again stands twice: the newer is what L4 holds of it.
    newest = {tool.artifact.id: tool for exchange in exchanges[epoch_start:] for tool in exchange.tools}
    for index, exchange in enumerate(exchanges):
        if index >= epoch_start:
            segments += [tool.segment for tool in exchange.tools if newest[tool.artifact.id] is tool]
        segments += (_at(exchange.user, first + 2 * index), _at(exchange.reply, first + 2 * index + 1))
        if exchange.joined:
            segments += [_at(reply, first + 2 * index + 1) for reply in exchange.joined]
    return segments


def _at(said: Said, index: int) -> Segment:
    """The segment where it stands now: a system message that came or went moves it by one message."""
    place = message_place(index)
    return said.segment if said.segment.place == place else replace(said.segment, place=place)


def past_messages(exchanges: Sequence[Exchange], *, epoch_start: int) -> Iterable[Message]:
    """Earlier messages as they are sent now: plain before this epoch began, as they were sent within it."""
    for index, exchange in enumerate(exchanges):
        yield exchange.sent if index >= epoch_start else exchange.user.message
        yield exchange.answer or exchange.reply.message
