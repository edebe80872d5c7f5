"""The prompt: everything that is sent in one turn, as messages in wire order.

The order is: the system message (L1 and the context library), earlier messages, one user message with the attachments
and the typed text, and the tool rounds of this turn.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ArtifactKind, ImageData, ToolDefinition
from lamella.core.budget import Tokenizer, count_pieces_tokens, count_request_tokens
from lamella.core.log.call import PrefixChangeTrigger
from lamella.core.log.turn import (
    SYSTEM_PART_NAMES,
    AttachmentMode,
    HistoryChangeReason,
    LayoutPlan,
    SystemParts,
    TurnSettings,
)
from lamella.core.messages import LIBRARY_HEADING, QUERY_LABEL, Message, Role
from lamella.core.prompt.artifact_index import ArtifactIndex
from lamella.core.prompt.layers.digest import (
    DigestBlock,
    HistoryDigest,
    list_digest_pieces,
    make_digest_block,
    render_digest_head,
)
from lamella.core.prompt.layers.history import (
    EMPTY_PREAMBLE,
    ConversationHistory,
    HistoryMessage,
    HistoryPreamble,
    extend_preamble,
    history_messages,
    list_history_segments,
    make_placeholder,
    with_rules_block,
)
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact
from lamella.core.prompt.layers.model import (
    EMPTY_SYSTEM_LAYER,
    SYSTEM_POSITION,
    Layer,
    LayerId,
    Segment,
    SegmentKind,
    ShownSegments,
    TokenCounter,
    build_system_layer,
    message_position,
)
from lamella.core.prompt.layers.turn import NO_ATTACHMENTS, RenderedAttachments
from lamella.core.prompt.signed_reasoning import CheckedMessages, drop_invalidated_reasoning
from lamella.core.values import replace, repr_without

# Increase this number when the same state renders to other bytes. The ledger then reports a Lamella upgrade and not
# a bug. A golden file pins the output of each version.
RENDERER_VERSION = 6
# Breakpoints that a request may ask for, at most: one is left for its end.
MAX_PLANNED_BREAKPOINTS = 3
# A C-level getter: a replay checks the system parts of thousands of prompts.
_get_system_parts = attrgetter(*SYSTEM_PART_NAMES)
# The history mode may hide thousands of turns.
_get_joined_replies = attrgetter("joined_replies")


class Prompt(Struct, frozen=True, kw_only=True, dict=True):
    """The prompt of one turn, rendered lazily.

    Replaying a stored conversation builds thousands of prompts and sends only the last one, so layers,
    messages and counts are computed on first use.

    Attributes:
        layout_plan: The layout plan that this prompt follows.
        library: Everything the context library knows.
        system_library: The part of the library that the system message contains.
        placed: Everything that was placed in the request before this turn.
        user: The typed text of this turn.
        question: The user message as sent, with attachments before the typed text.
        first_message: Index of the first message after the system message.
        question_index: Index of the user message of this turn.
        rendered_attachments: The attachments of this turn as segments, pieces, placed artifacts and images.
        rounds: Messages of tool calls and results after the question.
        removed_rounds: Messages of this turn's tool rounds that a compaction removed.
        dropped: Ids that the user dropped with this turn.
        history_rewrite: Set if an edit or a switch of branch changed the messages before this turn.
        compaction_step: Name of the compaction step that changed earlier bytes, or ``undo``.
        cleared_since: Id of the first tool result that the last cut for costs cleared before this request.
        pinned: Ids of messages that compaction must not remove.
        triggers: Other actions of this turn that may change the prefix.
        renderer_version: The renderer version under which the provider received this prompt.
        working_set: Ids that must be readable in this request; only set if costs decide the layout.
        picture_lines: The lines that will name this turn's images once the question is sent without them.
        unlisted_attachments: Sticky attachments of earlier turns that never enter the library, such as images.
        index: The index of ``library`` and ``placed``, if the layout keeps one.
    """

    conversation_id: str
    epoch: int
    turn_settings: TurnSettings
    layout_plan: LayoutPlan
    tokenizer: Tokenizer
    model: str | None
    tools: tuple[ToolDefinition, ...]
    system: SystemParts
    library: Mapping[str, LibraryEntry]
    system_library: Mapping[str, PlacedArtifact]
    placed: Mapping[str, PlacedArtifact]
    history: ConversationHistory
    question: HistoryMessage
    question_message: Message
    first_message: int
    question_index: int
    warnings: tuple[str, ...]
    attached: tuple[Artifact, ...] = ()
    rendered_attachments: RenderedAttachments = NO_ATTACHMENTS
    rounds: tuple[HistoryMessage, ...] = ()
    removed_rounds: tuple[HistoryMessage, ...] = ()
    dropped: tuple[str, ...] = ()
    history_rewrite: HistoryChangeReason | None = None
    compaction_step: str | None = None
    cleared_since: str | None = None
    pinned: frozenset[str] = frozenset()
    triggers: frozenset[PrefixChangeTrigger] = frozenset()
    renderer_version: int = RENDERER_VERSION
    working_set: tuple[str, ...] = ()
    picture_lines: tuple[PlacedArtifact, ...] = ()
    unlisted_attachments: Mapping[str, Artifact] = {}
    index: ArtifactIndex | None = None

    def __repr__(self) -> str:
        return repr_without(
            self,
            without=(
                "system",
                "tools",
                "library",
                "system_library",
                "placed",
                "history",
                "rendered_attachments",
                "tokenizer",
                "unlisted_attachments",
                "index",
            ),
        )

    @property
    def message_id(self) -> str:
        return self.question.segment.id

    @cached_property
    def system_layer(self) -> Layer:
        """L1, the system prompt, as a layer."""
        return (
            build_system_layer(self.system, count=self.tokenizer.count)
            if any(_get_system_parts(self.system))
            else EMPTY_SYSTEM_LAYER
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in wire order, as they are sent."""
        return self.checked_messages.messages

    @cached_property
    def checked_messages(self) -> CheckedMessages:
        """The messages without reasoning whose signature would be invalid, and which replies lost theirs."""
        return drop_invalidated_reasoning(
            self.rendered_messages, self.tools, model=self.model, count=self.tokenizer.count
        )

    @cached_property
    def rendered_messages(self) -> tuple[Message, ...]:
        """The messages in wire order, with all reasoning that the replies were made with."""
        count = self.tokenizer.count
        head = render_system_message(self.system_layer, tuple(self.system_library.values()), count=count)
        first = 1 if head else 0
        messages = [*((head,) if head else ()), *history_messages(self.history.shown), self.question_message]
        messages += [message.message for message in self.rounds]
        if self.preamble != EMPTY_PREAMBLE:
            opening = [placeholder.text for placeholder in self.preamble.placeholders]
            opening[1:1] = list_digest_pieces(self.shown_digest)
            messages[first] = prepend_blocks(messages[first], opening, count=count)
        return tuple(messages)

    @property
    def breakpoints(self) -> tuple[int, ...]:
        """Indices of the messages after which this request wants a cache breakpoint, apart from its end.

        The plan of the turn does not know its tool rounds. If results among them were cleared, the cache still serves
        everything before the first of them, so the message before it gets a breakpoint.
        """
        planned = self.layout_plan.breakpoints
        offset = next((at for at, one in enumerate(self.rounds) if one.id == self.cleared_since), None)
        if offset is None:
            return planned
        # The system message comes first, then the breakpoints that are nearest to the end.
        others = sorted(planned, key=lambda mark: (mark != 0, -mark))
        return tuple(sorted({self.question_index + offset, *others[: MAX_PLANNED_BREAKPOINTS - 1]}))

    @cached_property
    def preamble(self) -> HistoryPreamble:
        """The history preamble: placeholders for messages removed by compaction or hidden by the history mode."""
        history, preamble = self.history, self.history.preamble
        if history.hidden_turns:
            hidden = history.turns[: history.hidden_turns]
            left_out = 2 * len(hidden) + sum(map(len, map(_get_joined_replies, hidden)))
            blocks = (history.placeholder,) if history.placeholder else ()
            preamble = preamble if history.rules is None else with_rules_block(preamble, history.rules)
            preamble = extend_preamble(
                preamble,
                left_out=left_out,
                blocks=blocks,
                names_recall=history.names_recall,
                count=self.tokenizer.count,
            )
        if not self.shown_digest:
            return preamble
        # The head line of the digest says what the notice would say.
        head = make_placeholder(
            SegmentKind.LEFT_OUT, render_digest_head(names_recall=history.names_recall), count=self.tokenizer.count
        )
        return replace(preamble, notice=head)

    @cached_property
    def shown_digest(self) -> HistoryDigest:
        """The shown part of the digest: all of it, unless the history mode hides old turns."""
        history = self.history
        if not history.first_shown_turn or not history.digest:
            return history.digest
        return tuple(
            _iter_shown_blocks(history.digest, history.first_shown_turn, with_excerpts=not history.hides_excerpts)
        )

    @cached_property
    def total(self) -> int:
        """The token count of the whole request, including tool definitions and message overhead."""
        return count_request_tokens(self.messages, self.tools, self.tokenizer)

    @cached_property
    def placed_library(self) -> tuple[PlacedArtifact, ...]:
        """L2 in first-seen order: every known artifact that the request shows or lists.

        It includes listed handles that did not fit into their list and therefore have no text.
        """
        standings = [self.placed[name] for name in self.library]
        return tuple([placed for placed in standings if placed.pieces or placed.is_listed])

    @cached_property
    def shown_library(self) -> tuple[PlacedArtifact, ...]:
        """The part of ``placed_library`` that is in the request or new in its list; no more is looked at."""
        if self.index is None:
            return self.placed_library
        active = [self.index.active_placed[name] for name in self.index.active_library]
        return tuple([placed for placed in active if placed.pieces or placed.is_listed])

    @property
    def retired_count(self) -> int:
        """How many known artifacts the list of handles only counts."""
        return 0 if self.index is None else len(self.index.retired)

    @property
    def library_segments(self) -> Sequence[Segment]:
        """The segments of L2, in first-seen order."""
        shown = tuple([placed.segment for placed in self.shown_library])
        if not self.retired_count:
            return shown
        return ShownSegments(
            shown, len(shown) + self.retired_count, lambda: [placed.segment for placed in self.placed_library]
        )

    @property
    def attachments_in_force(self) -> tuple[Artifact, ...]:
        """The attachments of this turn, and sticky ones of earlier turns that were not detached, oldest first."""
        if self.turn_settings.attachments is not AttachmentMode.STICKY:
            return self.attached
        in_force = {name: entry.artifact for name, entry in self.library.items() if entry.stays_attached}
        in_force.update(self.unlisted_attachments)
        in_force.update({str(artifact.id): artifact for artifact in self.attached})
        return tuple(in_force.values())

    @property
    def moved_attachments(self) -> tuple[Segment, ...]:
        """Attachments of this turn that were known before and that a fold moved into the question."""
        position = message_position(self.question_index)
        known = [self.placed[one.id] for one in self.attached if one.id in self.placed]
        return tuple([one.segment for one in known if one.place == position and one.pieces])

    @cached_property
    def unlayered_artifacts(self) -> tuple[PlacedArtifact, ...]:
        """Artifacts in earlier messages that belong to no layer: images, and notes with images.

        A note that is inlined into L1 has no pieces of its own; it counts as part of L1.
        """
        return tuple(
            placed
            for name, placed in (self.placed if self.index is None else self.index.active_placed).items()
            if name not in self.library
            and placed.artifact.kind is not ArtifactKind.TOOL
            and (placed.place != SYSTEM_POSITION or placed.pieces)
        )

    @cached_property
    def turn_segments(self) -> tuple[Segment, ...]:
        """L3: the attachments in the question's message, and the tool rounds after it."""
        if not self.rounds:
            return self.rendered_attachments[0]
        after = enumerate(self.rounds, start=self.question_index + 1)
        return (
            *self.rendered_attachments[0],
            *(replace(message.segment, place=message_position(at)) for at, message in after),
        )

    @cached_property
    def history_segments(self) -> tuple[Segment, ...]:
        """L4: placeholders for removed messages, earlier messages, and tool results of earlier turns."""
        return list_history_segments(
            self.history, first_message=self.first_message, preamble=self.preamble, digest=self.shown_digest
        )

    def segments(self, layer_id: LayerId) -> Sequence[Segment]:
        """Return the segments of a layer, in order."""
        match layer_id:
            case LayerId.L1:
                return self.system_layer.segments
            case LayerId.L2:
                return self.library_segments
            case LayerId.L3:
                return self.turn_segments
            case LayerId.L4:
                return self.history_segments
            case LayerId.L5:
                return (self.question.segment,)


def _iter_shown_blocks(digest: HistoryDigest, first_shown_turn: int, *, with_excerpts: bool) -> Iterator[DigestBlock]:
    """Yield the blocks with the messages of shown turns, and ``with_excerpts`` with what is left of earlier ones."""
    for block in digest:
        shown = [
            one for one in block.messages if (with_excerpts and one.is_excerpt) or one.turn_index >= first_shown_turn
        ]
        if len(shown) == len(block.messages):
            yield block
        elif shown:
            yield make_digest_block(shown)


def has_system_message(system: SystemParts, placed_library: Mapping[str, PlacedArtifact]) -> bool:
    """Return whether the request has a system message; a library is sent even if L1 is empty."""
    return bool(placed_library) or any(_get_system_parts(system))


def render_system_message(
    system: Layer, system_library: Sequence[PlacedArtifact], *, count: TokenCounter
) -> Message | None:
    """Render the system message, or return None if there is nothing to put into it."""
    shelved = [piece for placed in system_library for piece in placed.pieces]
    head = ["\n\n".join((*system.pieces, LIBRARY_HEADING))] if shelved else list(system.pieces)
    if not head:
        return None
    weights = (count(head[0]), *[placed.segment.tokens for placed in system_library])
    return Message(role=Role.SYSTEM, pieces=(*head, *shelved), tokens=sum(weights), piece_token_counts=weights)


def build_question_message(
    rendered: RenderedAttachments, typed: Message, *, count: TokenCounter, moved: Sequence[str] = ()
) -> Message:
    """Build the user message of a turn: moved texts, new attachments, then the typed text.

    ``moved`` are pieces that a fold moved here from earlier messages. If there are neither pieces nor images, the
    result is the ``typed`` object itself; callers compare it by identity.
    """
    _, attached, _, images = rendered
    pieces = (*moved, *attached)
    return render_user_message(pieces, typed.pieces, images, count=count) if pieces or images else typed


def list_pieces_moved_by_fold(library: Iterable[str], placed: Mapping[str, PlacedArtifact], position: str) -> list[str]:
    """List the library texts that a fold moved from earlier messages into the question at ``position``."""
    return [one.pieces[-1] for one in (placed[name] for name in library) if one.pieces and one.place == position]


def render_user_message(
    attached_pieces: Sequence[str], typed: Sequence[str], images: Sequence[ImageData], *, count: TokenCounter
) -> Message:
    """Render a user message: attached pieces, a label, then the typed text.

    Without attached pieces the message is the typed text alone.
    """
    pieces = (*attached_pieces, QUERY_LABEL, *typed) if attached_pieces else tuple(typed)
    return Message(role=Role.USER, pieces=pieces, images=tuple(images), tokens=count_pieces_tokens(pieces, count))


def prepend_blocks(message: Message, pieces: Sequence[str], *, count: TokenCounter) -> Message:
    """Return the message with blocks before it, and with a label that separates its own text from them."""
    labelled = QUERY_LABEL in message.pieces
    joined = (*pieces, *(() if labelled else (QUERY_LABEL,)), *message.pieces)
    return replace(message, pieces=joined, tokens=count_pieces_tokens(joined, count), piece_token_counts=())
