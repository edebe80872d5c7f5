"""L4, the conversation strip: earlier turns as the user saw them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from operator import is_not
from types import MappingProxyType
from typing import Generic, TypeVar, overload

from msgspec import Struct

from lamella.core.budget.counting import Measure, count_pieces
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.messages.model import Message, Role
from lamella.core.messages.whole import WholeTexts, read_texts
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import Count, Layer, LayerId, Segment, make_layer, message_place
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, Opening, StandIn, Wishes
from lamella.core.values import replace

# Members by name of their own: see docs/decisions/msgspec.md.
_FULL = Form.FULL
_KINDS = {voice: voice.value for voice in Voice}
_ROLES = {voice: Role.USER if voice is Voice.USER else Role.ASSISTANT for voice in Voice}

NO_WISHES: tuple[int, str, Wishes, tuple[str, ...]] = (0, "", (), ())

Item = TypeVar("Item")


class Said(Struct, frozen=True, kw_only=True, gc=False):
    """Typed text or a reply: its message, and its segment where it stands, both made once.

    ``whole`` has all that was said, where less of it stands. ``turn`` is the number of its turn, counted from 1, where
    it joined another.
    """

    message: Message
    segment: Segment
    whole: WholeTexts | None = None
    turn: int | None = None

    @property
    def id(self) -> str:
        return self.segment.id

    @property
    def text(self) -> str:
        return self.segment.text

    @property
    def original(self) -> str:
        """All that was said, whatever stands of it."""
        return self.segment.text if self.whole is None else self.whole[self.segment.id]


class Exchange(Struct, frozen=True, kw_only=True, gc=False):
    """One earlier turn: what the user typed, the message that it is sent as now, what tools gave, and the reply.

    ``tools`` are results that ride as text in the question's message, ``rounds`` the messages of calls and results
    between question and reply. ``joined`` are later replies whose questions were taken out, ``lines`` say which calls
    were made in rounds that are no longer sent, and ``answer`` is the message that holds them all. ``attached`` says
    that something came with the question; ``number`` is how many turns were asked before it.
    """

    user: Said
    sent: Message
    tools: tuple[Standing, ...]
    reply: Said
    rounds: tuple[Said, ...] = ()
    lines: tuple[Segment, ...] = ()
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


class Series(Sequence[Item], Generic[Item]):
    """Items in order. Those that grew from one another share their items; each shows only its own."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def plus(self, *more: Item) -> "Series[Item]":
        """The series with these at its end."""
        items, end = self._items, self._length + len(more)
        if items and len(items) == self._length:
            items += more
        # Whoever appended first has the place. Another branch, or another thread, goes on in a copy.
        if len(items) < end or any(map(is_not, items[self._length : end], more)):
            items = [*items[: self._length], *more]
        longer: Series[Item] = Series.__new__(Series)
        longer._items, longer._length = items, end
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, int):
            return self._items[range(self._length)[index]]
        within = range(self._length)[index]
        if within.step == 1:
            return tuple(self._items[within.start : within.stop])
        return tuple([self._items[place] for place in within])

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Series({list(self)!r})"


class Talk(Struct, frozen=True, kw_only=True, gc=False):
    """Earlier turns, all of them still sent but the first ``hidden``, after the ``opening`` that stands in for others.

    Those from ``epoch_start`` on stand as they were sent first. ``stand_in`` tells of those that a history mode hides.
    ``spoken`` is how many messages all of them are sent as. ``stubbed`` are results that compactions cut to their
    calls: those of the turn under way stand so as well. ``retold`` is the last summary of hidden turns, with the ids of
    their questions: while it covers the same turns nobody is asked for another. ``wished`` are the wishes of hidden
    turns, with how many turns were looked at, the id of the last, and the cues beside those that ship; ``rules`` is the
    block of wishes while turns are hidden that have some.
    """

    exchanges: Series[Exchange] = Series()
    spoken: int = 0
    epoch_start: int = 0
    opening: Opening = NOTHING_LEFT_OUT
    hidden: int = 0
    stand_in: StandIn | None = None
    stubbed: frozenset[str] = frozenset()
    retold: tuple[str, tuple[str, ...]] | None = None
    wished: tuple[int, str, Wishes, tuple[str, ...]] = NO_WISHES
    rules: StandIn | None = None

    @property
    def shown(self) -> tuple[Exchange, ...]:
        return self.exchanges[self.hidden :]

    @property
    def length(self) -> int:
        """How many messages are sent of it."""
        return self.spoken - count_messages(self.exchanges[: self.hidden]) if self.hidden else self.spoken


def make_said(message_id: str, voice: Voice, text: str, *, place: str | None, measure: Measure) -> Said:
    """Typed text or a reply as it stands at a place."""
    tokens, kind = measure.count(text), _KINDS[voice]
    return Said(
        message=Message(role=_ROLES[voice], pieces=(text,) if text else (), tokens=tokens),
        segment=Segment(id=message_id, kind=kind, form=_FULL, place=place, text=text, tokens=tokens, recoverable=False),
    )


def shorten(said: Said, text: str, *, form: Form, count: Count) -> Said:
    """Something said as less than its words, which can be recalled."""
    tokens = count(text)
    segment = replace(said.segment, form=form, text=text, tokens=tokens, recoverable=True)
    message = replace(said.message, pieces=(text,), tokens=tokens)
    whole = {said.segment.id: said.segment.text} if said.whole is None else said.whole
    return replace(said, message=message, segment=segment, whole=whole)


def make_exchanges(
    names: Sequence[str],
    texts: Sequence[str | WholeTexts],
    *,
    places: Iterable[int],
    numbers: Iterable[int],
    tokens: Iterable[int],
    shorter: Mapping[int, tuple[str, Form]] = MappingProxyType({}),
) -> list[Exchange]:
    """Turns that only talk: ids, texts and places of question, reply, question, reply, and the number of each turn.

    Of some messages a ``shorter`` text stands there, by their index, in a form. ``tokens`` are those of what stands.
    """
    voices = cycle([(_ROLES[voice], _KINDS[voice]) for voice in (Voice.USER, Voice.REPLY)])
    said, forms, wholes = list(texts), [_FULL] * len(texts), list[WholeTexts | None]([None]) * len(texts)
    for at, (text, form) in shorter.items():
        whole = texts[at]
        said[at], forms[at], wholes[at] = text, form, {names[at]: whole} if isinstance(whole, str) else whole
    shown = read_texts(names, said)
    columns = zip(names, shown, tokens, map(message_place, places), voices, forms, wholes, strict=False)
    every = [
        Said(
            message=Message(role=role, pieces=(text,) if text else (), tokens=counted),
            segment=Segment(
                id=name, kind=kind, form=form, place=place, text=text, tokens=counted, recoverable=whole is not None
            ),
            whole=whole,
        )
        for name, text, counted, place, (role, kind), form, whole in columns
    ]
    turns = zip(every[::2], every[1::2], numbers, strict=False)
    return [Exchange(user=user, sent=user.message, tools=(), reply=reply, number=turn) for user, reply, turn in turns]


def join_answer(exchange: Exchange, joined: Sequence[Said], *, count: Count) -> Exchange:
    """The exchange with these replies after its own, a blank line between them, all in one message after its lines."""
    if not joined and not exchange.lines:
        return replace(exchange, joined=(), answer=None)
    texts = [said.text for said in (exchange.reply, *joined) if said.text]
    pieces = [part for text in texts for part in (text, "\n\n")][:-1]
    pieces = [*(line.text for line in exchange.lines), *pieces]
    answer = Message(role=Role.ASSISTANT, pieces=tuple(pieces), tokens=count_pieces(pieces, count))
    return replace(exchange, joined=tuple(joined), answer=answer)


def list_strip(talk: Talk, *, first: int, opening: Opening) -> tuple[Segment, ...]:
    """The segments of L4, in their order; ``first`` is the index of the first message after the system message."""
    shown = talk.shown
    segments = [] if opening == NOTHING_LEFT_OUT else list(opening.segments(message_place(first)))
    # A result that was cut to its call and is attached again stands twice: the newer is what L4 holds of it.
    newest = {tool.artifact.id: tool for exchange in shown for tool in exchange.tools}
    at = first
    for exchange in shown:
        place = message_place(at)
        if exchange.tools:
            tools = [tool.segment for tool in exchange.tools if newest[tool.artifact.id] is tool]
            segments += [_move(segment, place) for segment in tools]
        said = exchange.user.segment
        # A system message that came or went moves what was said by one message. Mostly nothing moves, in thousands.
        segments.append(said if said.place == place else _move(said, place))
        for said in [one.segment for one in exchange.rounds] if exchange.rounds else ():
            at += 1
            segments.append(_move(said, message_place(at)))
        place = message_place(at + 1)
        segments += [_move(line, place) for line in exchange.lines] if exchange.lines else ()
        said = exchange.reply.segment
        segments.append(said if said.place == place else _move(said, place))
        segments += [_move(reply.segment, place) for reply in exchange.joined] if exchange.joined else ()
        at += 2
    return tuple(segments)


def _move(segment: Segment, place: str) -> Segment:
    return segment if segment.place == place else replace(segment, place=place)


def build_strip(segments: Sequence[Segment]) -> Layer:
    """L4: what stands in for messages taken out, what was said, and what tools gave in earlier turns."""
    pieces = [part for segment in segments for part in (segment.text, "\n\n") if part]
    tokens = sum([segment.tokens for segment in segments])
    return make_layer(LayerId.L4, segments=segments, pieces=pieces[:-1], tokens=tokens)


def past_messages(exchanges: Sequence[Exchange]) -> list[Message]:
    """Earlier messages as they are sent now."""
    messages: list[Message] = []
    for exchange in exchanges:
        messages.append(exchange.sent)
        if exchange.rounds:
            messages += [said.message for said in exchange.rounds]
        messages.append(exchange.answer or exchange.reply.message)
    return messages


def count_messages(exchanges: Sequence[Exchange]) -> int:
    """How many messages these exchanges are sent as."""
    return 2 * len(exchanges) + sum([len(exchange.rounds) for exchange in exchanges])
