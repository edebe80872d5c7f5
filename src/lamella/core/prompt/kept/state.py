"""A state as it is kept: what a past came to, so that only what came since has to be told.

It is derived, and holds as long as it would be derived again: under the same rendering, counted alike, on a branch that
goes on from its last message, with the same compactions in force before that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec import DecodeError, Raw
from msgspec.msgpack import Decoder, Encoder

from lamella.core.artifacts.unread import UnreadTexts
from lamella.core.budget.counting import Measure
from lamella.core.log.compactions import CompactionsInForce
from lamella.core.log.events.artifact import Contents, StoredArtifact
from lamella.core.log.terms import Terms
from lamella.core.messages.whole import WholeTexts
from lamella.core.prompt.kept.known import (
    KeptEntry,
    KeptPiece,
    KeptStanding,
    Shelves,
    find_waiting,
    list_needed,
    unpack_artifacts,
    unpack_library,
    unpack_pieces,
    unpack_standing,
)
from lamella.core.prompt.kept.talk import KeptTalk, pack_talk, unpack_talk
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.strip import Series
from lamella.core.prompt.prompt import RENDERER
from lamella.core.prompt.state import State
from lamella.core.values import replace

# It is written anew with every snapshot that grows: one with megabytes of results in it is told again when it is
# opened, in place of being written every sixteenth turn.
_LARGEST = 2**20
_NOTHING: tuple[bytes, Mapping[str, str]] = (b"", {})
# What can be wrong with bytes that somebody else made, or with contents that are not there any more.
_UNREADABLE = (DecodeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)

# Whose rendering it is, who counted (a name and a factor), the terms of turns that say none, and of each compaction in
# force the question that it was before and its id.
_Grounds = tuple[int, str, float, Terms, tuple[tuple[str, str], ...]]
# The state without what follows; artifacts, pieces of text, their tokens, and everything that stands somewhere; the
# library; the shelf and what stands in messages, by their numbers, and none of the latter where it is the shelf;
# whether the shelf is the library's, none where it is nobody's; and the talk.
_Body = tuple[
    State,
    tuple[StoredArtifact, ...],
    tuple[KeptPiece, ...],
    tuple[int, ...],
    tuple[KeptStanding, ...],
    dict[str, KeptEntry],
    dict[str, int],
    dict[str, int] | None,
    bool | None,
    KeptTalk,
]


def _write_odd(value: object) -> object:
    if isinstance(value, Series | MappingProxyType):
        return dict(value) if isinstance(value, MappingProxyType) else list(value)
    raise TypeError(f"a {type(value).__name__} is not kept")


_ENCODER = Encoder(enc_hook=_write_odd)
_DECODER = Decoder(tuple[_Grounds, int, str, Raw])
_BODY_DECODER = Decoder(_Body, dec_hook=lambda _type, items: Series(items))

# What gives the texts of contents by their hashes.
ReadTexts = Callable[[Collection[str]], Mapping[str, str]]


class KeptState:
    """A state after so many ``turns``, the last message of which is the ``head``, still packed."""

    def __init__(self, grounds: _Grounds, *, turns: int, head: str, body: Raw) -> None:
        self._grounds = grounds
        self.turns = turns
        self.head = head
        self._body: _Body = _BODY_DECODER.decode(body)

    @property
    def model(self) -> str | None:
        """The model that holds after it."""
        return self._body[0].model

    def holds(self, names: Sequence[str], committed: CompactionsInForce, *, usual: Terms, measure: Measure) -> bool:
        """Whether it is what a branch came to by then, given the ids of all its messages."""
        end = 2 * self.turns
        # What is asked next needs the request before it, which is made of the turn after this state.
        if len(names) < end + 2 or names[end - 1] != self.head:
            return False
        return self._grounds == _find_grounds(names[:end], committed, usual=usual, measure=measure)

    def hashes(self, blocks: Collection[str] = ()) -> tuple[str, ...]:
        """Every content that is needed for it where blocks of these hashes are there."""
        waiting = find_waiting(*self._body[1:3], blocks)
        needed = [list_needed(one, waits=at in waiting) for at, one in enumerate(self._body[1])]
        return tuple(dict.fromkeys([name for names in needed for name in names]))

    def unpack(
        self,
        names: Sequence[str],
        texts: Sequence[str | WholeTexts],
        contents: Contents,
        *,
        blocks: Mapping[str, str] = MappingProxyType({}),
        read_later: ReadTexts,
    ) -> tuple[State, Mapping[str, int]] | None:
        """The state, given what was said on its branch, and the tokens of its texts; none where a content is gone.

        Texts of which nothing stands but a line or an outline, or a block that is there, are read once they are asked
        for.
        """
        state, stored, kept, weights, stood, known, shelved, standing, owns, talk = self._body
        waiting = find_waiting(stored, kept, blocks)
        unread = UnreadTexts([stored[at].hash for at in waiting], read_later)
        try:
            artifacts = unpack_artifacts(stored, contents, waiting=waiting, unread=unread)
            pieces = unpack_pieces(kept, artifacts, blocks)
            stands = [unpack_standing(one, artifacts, pieces) for one in stood]
            library = unpack_library(known, artifacts)
            end = 2 * self.turns
            exchanges = unpack_talk(talk, names[:end], texts[:end], pieces=pieces)
        except _UNREADABLE:
            return None
        shelf = {name: stands[at] for name, at in shelved.items()}
        unpacked = replace(
            state,
            library=library,
            shelf=shelf,
            # Of one that is older nobody asks what was in it.
            shelf_of=None if owns is None else library if owns else {},
            standing=shelf if standing is None else {name: stands[at] for name, at in standing.items()},
            talk=replace(state.talk, exchanges=Series(exchanges)),
        )
        # A question that is sent as more than what was typed is weighed by its pieces, of which that is one.
        typed = [exchanges[at].user.segment for at in talk[5]]
        return unpacked, dict(zip(pieces, weights, strict=False)) | {one.text: one.tokens for one in typed}


def _find_grounds(names: Sequence[str], committed: CompactionsInForce, *, usual: Terms, measure: Measure) -> _Grounds:
    """What a state follows from beside what was said."""
    before = committed.before
    asked = [name for name in names[::2] if name in before] if before else []
    receipts = tuple([(name, event.id) for name in asked for event in before[name]])
    return RENDERER, measure.name, measure.factor, usual, receipts


def write_state(
    state: State,
    names: Sequence[str],
    texts: Sequence[str | WholeTexts],
    *,
    committed: CompactionsInForce,
    usual: Terms,
    measure: Measure,
) -> tuple[bytes, Mapping[str, str]]:
    """A state between two turns of a branch, given what was said on it, and the blocks that it names by their hashes.

    Nothing where it would not be read as it is.
    """
    end, shelves = 2 * state.turns, Shelves()
    if state.waits or state.measured_by != measure.name or not end or names[end - 1 : end] != (state.head,):
        return _NOTHING
    grounds = _find_grounds(names[:end], committed, usual=usual, measure=measure)
    try:
        body = _pack(state, names[:end], texts[:end], shelves=shelves, measure=measure)
        data = b"" if body is None else _ENCODER.encode((grounds, state.turns, state.head, body))
    except _UNREADABLE:
        return _NOTHING
    return (data, shelves.blocks) if data and len(data) <= _LARGEST else _NOTHING


def _pack(
    state: State,
    names: Sequence[str],
    texts: Sequence[str | WholeTexts],
    *,
    shelves: Shelves,
    measure: Measure,
) -> _Body | None:
    # By how they are kept: to look for an equal one might be to look at texts that nobody has read.
    stood: dict[KeptStanding, int] = {}
    shelf, standing = _number(state.shelf, shelves, stood), _number(state.standing, shelves, stood)
    if shelf is None or standing is None:
        return None
    known = {name: shelves.pack_entry(entry) for name, entry in state.library.items()}
    talk = pack_talk(state.talk.exchanges[:], names, texts, shelves=shelves)
    return (
        replace(
            state,
            library={},
            shelf={},
            shelf_of=None,
            standing={},
            last=None,
            compacted=None,
            kept=None,
            talk=replace(state.talk, exchanges=Series()),
        ),
        tuple(shelves.stored),
        tuple(shelves.kept),
        tuple([measure.count(piece) for piece in shelves.pieces]),
        tuple(stood),
        known,
        shelf,
        None if state.standing is state.shelf else standing,
        None if state.shelf_of is None else state.shelf_of is state.library,
        talk,
    )


def _number(
    standing: Mapping[str, Standing], shelves: Shelves, stood: dict[KeptStanding, int]
) -> dict[str, int] | None:
    """The number of what stands for each artifact; none where something would not be read as it is."""
    numbers: dict[str, int] = {}
    for name, one in standing.items():
        kept = shelves.pack_standing(one)
        if kept not in stood and unpack_standing(kept, shelves.artifacts, shelves.pieces) != one:
            return None
        numbers[name] = stood.setdefault(kept, len(stood))
    return numbers


def list_standing(state: State) -> set[str]:
    """The ids of the messages whose own words a state is made of."""
    said = [one for exchange in state.talk.exchanges for one in (exchange.user, exchange.reply)]
    return {one.segment.id for one in said if one.whole is None}


def read_state(data: bytes) -> KeptState | None:
    """The state that the bytes hold, or none."""
    try:
        grounds, turns, head, body = _DECODER.decode(data)
        return KeptState(grounds, turns=turns, head=head, body=body)
    except _UNREADABLE:
        return None
