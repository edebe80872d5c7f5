"""The prompt: everything that is sent in one turn, as messages in wire order.

The system message is L1 and the library; then earlier messages; then one user message with what is attached and what
was typed; then the rounds of tools of this turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, Image, Kind, ToolDefinition
from lamella.core.budget.counting import Measure, count_pieces, weigh
from lamella.core.log.call import Trigger
from lamella.core.log.placement import Placement
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.log.turn import PART_NAMES, SystemParts
from lamella.core.messages.headings import LIBRARY_HEADING, QUERY_LABEL
from lamella.core.messages.model import Message, Role
from lamella.core.prompt.layers.library import LibraryEntry, Standing
from lamella.core.prompt.layers.model import SYSTEM_PLACE, Count, Layer, LayerId, Segment, message_place
from lamella.core.prompt.layers.opening import NOTHING_LEFT_OUT, Opening, open_with, stand_first
from lamella.core.prompt.layers.strip import Said, Talk, list_strip, past_messages
from lamella.core.prompt.layers.system import NO_SYSTEM, build_system
from lamella.core.prompt.layers.turn import NOTHING_SHOWN, Shown
from lamella.core.values import describe, replace

# Whoever makes the same state render to other bytes raises this, so that the ledger can tell an upgrade from a fault; a
# golden file holds what each number renders.
RENDERER = 4
_parts_of = attrgetter(*PART_NAMES)


class Prompt(Struct, frozen=True, kw_only=True, dict=True):
    """One turn's prompt, rendered as far as somebody asks: resuming makes thousands of which only the last is sent.

    ``library`` is everything known, ``shelf`` what the system message holds of it, ``standing`` everything that stands
    in the request before this turn. ``first`` is the index of the first message after the system message, ``asked_at``
    that of the user's message of this turn. ``rounds`` are the messages after the question, ``unsent`` those of its
    rounds that a compaction took out. ``dropped`` is what the user took out with this turn; ``rewritten`` says that an
    edit or another branch changed what came before it; ``compacted`` names the step of a compaction that did, or
    ``undo``. Messages that are ``pinned`` stay. ``triggers`` are what else the turn did that may move the prefix, and
    ``renderer`` is by which version the provider has it. ``working_set`` is what has to be readable, where prices
    decide where it stands.
    """

    conversation_id: str
    epoch: int
    terms: Terms
    placement: Placement
    measure: Measure
    model: str | None
    tools: tuple[ToolDefinition, ...]
    system: SystemParts
    library: Mapping[str, LibraryEntry]
    shelf: Mapping[str, Standing]
    standing: Mapping[str, Standing]
    talk: Talk
    user: Said
    question: Message
    first: int
    asked_at: int
    warnings: tuple[str, ...]
    attached: tuple[Artifact, ...] = ()
    shown: Shown = NOTHING_SHOWN
    rounds: tuple[Said, ...] = ()
    unsent: tuple[Said, ...] = ()
    dropped: tuple[str, ...] = ()
    rewritten: Rewrite | None = None
    compacted: str | None = None
    pinned: frozenset[str] = frozenset()
    triggers: frozenset[Trigger] = frozenset()
    renderer: int = RENDERER
    working_set: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return describe(self, without=("system", "tools", "library", "shelf", "standing", "talk", "shown", "measure"))

    @property
    def message_id(self) -> str:
        return self.user.segment.id

    @cached_property
    def system_layer(self) -> Layer:
        """L1."""
        return build_system(self.system, count=self.measure.count) if any(_parts_of(self.system)) else NO_SYSTEM

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages in wire order."""
        count = self.measure.count
        head = render_system(self.system_layer, tuple(self.shelf.values()), count=count)
        first = 1 if head else 0
        messages = [*((head,) if head else ()), *past_messages(self.talk.shown), self.question]
        messages += [said.message for said in self.rounds]
        if self.opening != NOTHING_LEFT_OUT:
            opening = [block.text for block in self.opening.stand_ins]
            messages[first] = head_message(messages[first], opening, count=count)
        return tuple(messages)

    @cached_property
    def opening(self) -> Opening:
        """What stands before the first earlier turn: for what compactions took out, and for what the mode hides."""
        talk = self.talk
        if not talk.hidden:
            return talk.opening
        left_out = sum(len(exchange.said) for exchange in talk.exchanges[: talk.hidden])
        blocks = (talk.stand_in,) if talk.stand_in else ()
        opening = talk.opening if talk.rules is None else stand_first(talk.opening, talk.rules)
        return open_with(opening, left_out=left_out, blocks=blocks, count=self.measure.count)

    @cached_property
    def total(self) -> int:
        """Everything the request bills, in tokens."""
        return weigh(self.messages, self.tools, self.measure)

    @cached_property
    def standing_library(self) -> tuple[Standing, ...]:
        """L2 in its order: what stands in the request of everything known, and handles that no list has room for."""
        standings = [self.standing[name] for name in self.library]
        return tuple([standing for standing in standings if standing.pieces or standing.listed])

    @property
    def moved_in(self) -> tuple[Segment, ...]:
        """What is attached now and was known, where a fold shows it in the question beside what else lives."""
        place = message_place(self.asked_at)
        known = [self.standing[one.id] for one in self.attached if one.id in self.standing]
        return tuple([one.segment for one in known if one.place == place and one.pieces])

    @cached_property
    def carried(self) -> tuple[Standing, ...]:
        """What earlier messages hold without belonging to a layer: pictures, notes with pictures.

        A note that is drawn into L1 has no pieces here and is L1's.
        """
        return tuple(
            standing
            for name, standing in self.standing.items()
            if name not in self.library
            and standing.artifact.kind is not Kind.TOOL
            and (standing.place != SYSTEM_PLACE or standing.pieces)
        )

    @cached_property
    def turn_segments(self) -> tuple[Segment, ...]:
        """L3: what is attached, in the question's message, and the rounds of tools after it."""
        if not self.rounds:
            return self.shown[0]
        after = enumerate(self.rounds, start=self.asked_at + 1)
        return (*self.shown[0], *(replace(said.segment, place=message_place(at)) for at, said in after))

    @cached_property
    def strip(self) -> tuple[Segment, ...]:
        """L4: what stands in for messages taken out, what was said, and what tools gave in earlier turns."""
        return list_strip(self.talk, first=self.first, opening=self.opening)

    def segments(self, layer_id: LayerId) -> tuple[Segment, ...]:
        """The segments of a layer, in order."""
        match layer_id:
            case LayerId.L1:
                return self.system_layer.segments
            case LayerId.L2:
                return tuple(standing.segment for standing in self.standing_library)
            case LayerId.L3:
                return self.turn_segments
            case LayerId.L4:
                return self.strip
            case LayerId.L5:
                return (self.user.segment,)


def has_system(system: SystemParts, shelf: Mapping[str, Standing]) -> bool:
    """Whether a request has a system message: an empty L1 still sends the library."""
    return bool(shelf) or any(_parts_of(system))


def render_system(system: Layer, shelf: Sequence[Standing], *, count: Count) -> Message | None:
    """The system message, or none where there is nothing to say."""
    shelved = [piece for standing in shelf for piece in standing.pieces]
    head = ["\n\n".join((*system.pieces, LIBRARY_HEADING))] if shelved else list(system.pieces)
    if not head:
        return None
    weights = (count(head[0]), *[standing.segment.tokens for standing in shelf])
    return Message(role=Role.SYSTEM, pieces=(*head, *shelved), tokens=sum(weights), weights=weights)


def ask_with(shown: Shown, typed: Message, *, count: Count, moved: Sequence[str] = ()) -> Message:
    """The user's message of a turn: what moved there from earlier messages, what is attached, then what was typed."""
    _, attached, _, images = shown
    pieces = (*moved, *attached)
    return render_user(pieces, typed.pieces, images, count=count) if pieces or images else typed


def find_moved(library: Iterable[str], standing: Mapping[str, Standing], place: str) -> list[str]:
    """What stood in earlier messages and stands in the question now, because the fold kept those before them."""
    return [one.pieces[-1] for one in (standing[name] for name in library) if one.pieces and one.place == place]


def render_user(turn: Sequence[str], typed: Sequence[str], images: Sequence[Image], *, count: Count) -> Message:
    """A question: tool results, references, new artifacts, the label, what was typed. Alone, just what was typed."""
    pieces = (*turn, QUERY_LABEL, *typed) if turn else tuple(typed)
    return Message(role=Role.USER, pieces=pieces, images=tuple(images), tokens=count_pieces(pieces, count))


def head_message(message: Message, pieces: Sequence[str], *, count: Count) -> Message:
    """The same message with blocks before it; text that stood alone gets the label that tells it from them."""
    labelled = QUERY_LABEL in message.pieces
    joined = (*pieces, *(() if labelled else (QUERY_LABEL,)), *message.pieces)
    return replace(message, pieces=joined, tokens=count_pieces(joined, count), weights=())
