"""Talk as it is kept: where each turn stands and what is left of it. What was said is not written a second time."""

from collections.abc import Sequence

from lamella.core.log.placement import Form
from lamella.core.messages.model import Message, Role
from lamella.core.messages.whole import WholeTexts
from lamella.core.prompt.kept.known import Shelves
from lamella.core.prompt.layers.strip import Exchange, make_exchanges
from lamella.core.values import replace

# A question that is sent as more than what was typed: its pieces, and the tokens of all and of each.
KeptQuestion = tuple[tuple[int, ...], int, tuple[int, ...]]
# The number of each turn, and the places and tokens of its two messages. By their index: turns that something came
# with, replies of which less is left, questions that are sent as more, and turns of which more is to be told.
KeptTalk = tuple[
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    dict[int, tuple[str, Form]],
    dict[int, KeptQuestion],
    dict[int, Exchange],
]
_MESSAGE = "message:"
# In place of a piece: what was typed.
_TYPED = -1


def pack_talk(
    exchanges: Sequence[Exchange],
    names: Sequence[str],
    texts: Sequence[str | WholeTexts],
    *,
    shelves: Shelves,
) -> KeptTalk:
    """Turns without what was said in them: ids and texts of question, reply, question, reply are kept elsewhere."""
    numbers = tuple([one.number for one in exchanges])
    said = [spoken.segment for one in exchanges for spoken in (one.user, one.reply)]
    places = tuple([_read_place(segment.place) for segment in said])
    tokens = tuple([segment.tokens for segment in said])
    shorter = {
        at: (one.reply.segment.text, one.reply.segment.form)
        for at, one in enumerate(exchanges)
        if one.reply.whole is not None
    }
    attached = tuple([at for at, one in enumerate(exchanges) if one.attached])
    asked = {
        at: _pack_question(one, shelves)
        for at, one in enumerate(exchanges)
        if one.sent is not one.user.message and not (one.tools or one.rounds)
    }
    talk = numbers, places, tokens, attached, shorter, asked, dict[int, Exchange]()
    again = unpack_talk(talk, names, texts, pieces=shelves.pieces)
    # What is not told by this stands there as it is: a turn with rounds of tools, or one that another's reply joined.
    pairs = enumerate(zip(exchanges, again, strict=True))
    odd = {at: _read_whole(one) for at, (one, other) in pairs if one != other and not _are_same(one, other)}
    for at in odd:
        shorter.pop(at, None)
        asked.pop(at, None)
    return numbers, places, tokens, attached, shorter, asked, odd


def _are_same(one: Exchange, other: Exchange) -> bool:
    """Whether turns are the same but for where all of their reply is found."""
    if one.reply.whole is None or other.reply.whole is None:
        return False
    found = replace(other, reply=replace(other.reply, whole=one.reply.whole))
    return one == found and one.reply.original == other.reply.original


def _read_whole(exchange: Exchange) -> Exchange:
    """A turn with all that was said in it at hand, where less of it stands."""
    replies = [one if one.whole is None else replace(one, whole={one.id: one.original}) for one in exchange.replies]
    return replace(exchange, reply=replies[0], joined=tuple(replies[1:]))


def _read_place(place: str | None) -> int:
    return int(place[len(_MESSAGE) :]) if place is not None and place.startswith(_MESSAGE) else 0


def _pack_question(exchange: Exchange, shelves: Shelves) -> KeptQuestion:
    typed, sent = exchange.user.segment.text, exchange.sent
    pieces = tuple([_TYPED if piece is typed or piece == typed else shelves.name_piece(piece) for piece in sent.pieces])
    return pieces, sent.tokens, sent.weights


def unpack_talk(
    talk: KeptTalk, names: Sequence[str], texts: Sequence[str | WholeTexts], *, pieces: Sequence[str]
) -> list[Exchange]:
    """The turns again."""
    numbers, places, tokens, attached, shorter, asked, odd = talk
    if numbers != tuple(range(len(numbers))):
        said = [at for number in numbers for at in (2 * number, 2 * number + 1)]
        names, texts = [names[at] for at in said], [texts[at] for at in said]
    # Turns that stand there as they are need no text of theirs, which may not have been read.
    texts = texts if not odd else ["" if at // 2 in odd else text for at, text in enumerate(texts)]
    less = {2 * at + 1: one for at, one in shorter.items()}
    exchanges = make_exchanges(names, texts, places=places, numbers=numbers, tokens=tokens, shorter=less)
    for at in attached:
        exchanges[at] = replace(exchanges[at], attached=True)
    for at, question in asked.items():
        exchanges[at] = _unpack_question(exchanges[at], question, pieces)
    for at, one in odd.items():
        exchanges[at] = replace(one, sent=one.user.message) if one.sent == one.user.message else one
    return exchanges


def _unpack_question(exchange: Exchange, question: KeptQuestion, pieces: Sequence[str]) -> Exchange:
    named, weighed, weights = question
    typed = exchange.user.segment.text
    sent = tuple([typed if one == _TYPED else pieces[one] for one in named])
    message = Message(role=Role.USER, pieces=sent, tokens=weighed, weights=weights)
    return replace(exchange, sent=message)
