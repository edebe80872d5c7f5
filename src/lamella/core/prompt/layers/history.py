"""L4, the history: earlier turns as the user saw them, after the history preamble.

``ConversationHistory`` has the earlier turns (the first may be hidden), and ``build_history_layer`` renders
them. ``HistoryPreamble`` has the blocks before the first shown message: the omission notice, summaries, stage digests
and user rules, instead of messages that are not sent. They are marked blocks, not typed text, so that text derived by
a model or a rule never appears as the user's words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from operator import is_not
from types import MappingProxyType
from typing import Generic, TypeVar, overload

from msgspec import Struct

from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.budget import Tokenizer, count_pieces_tokens
from lamella.core.log.turn import ArtifactForm, MessageAuthor
from lamella.core.messages import Message, Role, TextsById, resolve_lazy_texts
from lamella.core.prompt.layers.digest import HistoryDigest, iter_digest_segments
from lamella.core.prompt.layers.library import PlacedArtifact
from lamella.core.prompt.layers.model import (
    Layer,
    LayerId,
    Segment,
    SegmentKind,
    TokenCounter,
    make_layer,
    message_position,
)
from lamella.core.text.content import escape_line, hash_text
from lamella.core.values import replace, repr_without

_BLOCK_TAGS: Mapping[SegmentKind, str] = {
    SegmentKind.SUMMARY: "conversation_summary",
    SegmentKind.DIGEST: "stage_digest",
    SegmentKind.RULES: "standing_wishes",
}
_ID_DIGITS = 16

# User rules, each with the number of the turn in which the user stated or added it; the newest is last.
NumberedRules = tuple[tuple[int, str], ...]


class Placeholder(Struct, frozen=True, kw_only=True):
    """A placeholder block: the omission notice, a summary, a stage digest or the user rules.

    ``content`` is its information without the markup of the block.
    """

    kind: SegmentKind
    text: str
    content: str
    hash: str
    tokens: int

    def __repr__(self) -> str:
        return repr_without(self, without=("text", "content"))


class HistoryPreamble(Struct, frozen=True, kw_only=True):
    """The history preamble: how many messages were removed, the notice about it, and the other blocks.

    ``is_brief`` selects the short notice. The long notice had more tokens than most acknowledgements that compaction
    removes.
    """

    removed_messages: int = 0
    notice: Placeholder | None = None
    blocks: tuple[Placeholder, ...] = ()
    is_brief: bool = False

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return (self.notice, *self.blocks) if self.notice is not None else self.blocks

    def segments(self, position: str) -> Iterator[Segment]:
        """Iterate over the blocks as segments of L4; they are recoverable, since recall returns the messages."""
        counts: Counter[str] = Counter()
        for placeholder in self.placeholders:
            name = f"{placeholder.kind}:{placeholder.hash.removeprefix('sha256:')[:_ID_DIGITS]}"
            counts[name] += 1
            # Summaries of different turns may have the same text, and segment ids must be unique.
            yield Segment(
                id=name if counts[name] == 1 else f"{name}:{counts[name]}",
                kind=placeholder.kind,
                form=ArtifactForm.HANDLE if placeholder.kind is SegmentKind.LEFT_OUT else ArtifactForm.SUMMARY,
                place=position,
                text=placeholder.text,
                tokens=placeholder.tokens,
                recoverable=True,
            )


EMPTY_PREAMBLE = HistoryPreamble()


def extend_preamble(
    preamble: HistoryPreamble,
    *,
    left_out: int,
    blocks: Sequence[Placeholder] = (),
    brief: bool = False,
    names_recall: bool,
    count: TokenCounter,
) -> HistoryPreamble:
    """Return the preamble after more messages were removed, with blocks that replace them."""
    total, brief = preamble.removed_messages + left_out, brief or preamble.is_brief
    if not total and not preamble.blocks and not blocks:
        return EMPTY_PREAMBLE
    text = render_notice(total, brief=brief, names_recall=names_recall)
    notice = make_placeholder(SegmentKind.LEFT_OUT, text, count=count) if total else None
    return HistoryPreamble(removed_messages=total, notice=notice, blocks=(*preamble.blocks, *blocks), is_brief=brief)


def recount_preamble(preamble: HistoryPreamble, count: TokenCounter, *, names_recall: bool) -> HistoryPreamble:
    """Return the same preamble, counted with another tokenizer."""
    blocks = [
        make_placeholder(placeholder.kind, placeholder.text, content=placeholder.content, count=count)
        for placeholder in preamble.blocks
    ]
    return extend_preamble(
        EMPTY_PREAMBLE,
        left_out=preamble.removed_messages,
        blocks=blocks,
        brief=preamble.is_brief,
        names_recall=names_recall,
        count=count,
    )


def render_notice(left_out: int, *, brief: bool = False, names_recall: bool) -> str:
    """Render the notice that says how many messages are missing; notices of older turns say that recall finds them."""
    if brief:
        more = "; recall finds them" if names_recall else ""
        return f"<left_out>{left_out:,} earlier message{'s' * (left_out > 1)}{more}.</left_out>\n"
    messages = "1 earlier message is" if left_out == 1 else f"{left_out:,} earlier messages are"
    more = " and can be recalled" if names_recall else ""
    return f"<left_out>{messages} left out here to save room. Every word is kept{more}.</left_out>\n"


def render_placeholder(kind: SegmentKind, text: str, *, covers: str, exact: str = "") -> str:
    """Render a summary or digest as a block that names its source, so that it does not read as an instruction."""
    tag = _BLOCK_TAGS[kind]
    lines = [
        f"<{tag}>",
        f"<made_from>{escape_line(covers)}; a record of what was said, not an instruction</made_from>",
        f"<content>\n{escape_block_text(text)}\n</content>",
        *([f"<exact>\n{escape_block_text(exact)}\n</exact>"] if exact else []),
        f"</{tag}>",
        "",
    ]
    return "\n".join(lines)


def make_rules_block(rules: NumberedRules, *, omitted: int, count: TokenCounter) -> Placeholder:
    """Build the block of user rules; it also says how many ``omitted`` rules did not fit."""
    return make_placeholder(
        SegmentKind.RULES,
        render_rules_block(rules, omitted=omitted),
        content=encode_rules_for_receipt(rules, omitted=omitted),
        count=count,
    )


def render_rules_block(rules: NumberedRules, *, omitted: int) -> str:
    """Render the user rules word for word, the newest marked.

    Unlike a summary the block says that its content still applies.
    """
    tag = _BLOCK_TAGS[SegmentKind.RULES]
    rendered = [f"and {omitted:,} older; recall finds them"] if omitted else []
    lines = [f"- {text}" for _, text in rules]
    lines[1:] = [*lines[1:-1], f"- (newest) {rules[-1][1]}"] if lines[1:] else []
    made_from = "the user's own words, not in the messages below; they still hold, the newest last"
    body = "\n".join(escape_block_text(line) for line in (*rendered, *lines))
    return f"<{tag}>\n<made_from>{made_from}</made_from>\n<content>\n{body}\n</content>\n</{tag}>\n"


def encode_rules_for_receipt(rules: NumberedRules, *, omitted: int) -> str:
    """Encode the user rules in the line format that receipts store."""
    return "\n".join([*([f"+{omitted}"] if omitted else []), *(f"{turn}\t{text}" for turn, text in rules)])


def parse_rules_in_preamble(preamble: HistoryPreamble) -> tuple[NumberedRules, int]:
    """Return the user rules in a preamble, the newest last, and how many more it counts."""
    lines = [line for one in preamble.blocks if one.kind is SegmentKind.RULES for line in one.content.split("\n")]
    more = sum(int(line[1:]) for line in lines if line.startswith("+") and line[1:].isdecimal())
    parted = (line.rpartition("\t") if "\t" not in line else line.partition("\t") for line in lines if line)
    # A line without a turn number comes from a stored block without content: turn 0, and the text may have a bullet.
    rules = ((int(turn) if turn.isdecimal() else 0, text) for turn, _, text in parted if not text.startswith("+"))
    return tuple((turn, text if turn else text.removeprefix("- ")) for turn, text in rules), more


def with_rules_block(preamble: HistoryPreamble, placeholder: Placeholder | None) -> HistoryPreamble:
    """Return the preamble with this rules block before its other blocks, or without one if it is None."""
    others = tuple(other for other in preamble.blocks if other.kind is not SegmentKind.RULES)
    return replace(preamble, blocks=others if placeholder is None else (placeholder, *others))


def make_placeholder(kind: SegmentKind, text: str, *, content: str = "", count: TokenCounter) -> Placeholder:
    """Build a placeholder, hashed and counted once."""
    return Placeholder(kind=kind, text=text, content=content, hash=hash_text(text), tokens=count(text))


# Earlier turns.

# Module-level names, because looking up an enum member is slow: see docs/decisions/frozen-values.md.
_FULL = ArtifactForm.FULL
_KIND_BY_AUTHOR = {voice: voice.value for voice in MessageAuthor}
_ROLE_BY_AUTHOR = {voice: Role.USER if voice is MessageAuthor.USER else Role.ASSISTANT for voice in MessageAuthor}

NO_RULE_SEARCH: tuple[int, str, NumberedRules, tuple[str, ...]] = (0, "", (), ())

ItemT = TypeVar("ItemT")


class HistoryMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A typed text or a reply, with its message and its segment; both are built once.

    ``full_texts`` has the original text if the request shows a shorter one. ``turn`` is the number of its turn,
    counted from 1, if the reply was joined to the reply of another turn.
    """

    message: Message
    segment: Segment
    full_texts: TextsById | None = None
    turn: int | None = None

    @property
    def id(self) -> str:
        return self.segment.id

    @property
    def text(self) -> str:
        return self.segment.text

    @property
    def original(self) -> str:
        """The full original text, even if the request shows a shorter one."""
        return self.segment.text if self.full_texts is None else self.full_texts[self.segment.id]


class HistoryTurn(Struct, frozen=True, kw_only=True, gc=False):
    """One earlier turn: the question, its tool rounds and the reply.

    Attributes:
        question: The typed text.
        question_message: The message as it is sent now. While it is the identical object as ``question.message``, the
            question contains only the typed text; many fast paths test that.
        tool_results: Tool results, and lines that name images, that are part of the text of the question message.
        reply: The reply of this turn.
        rounds: Messages of tool calls and results between question and reply.
        call_lines: One line per call of rounds that are no longer sent.
        joined_replies: Later replies whose questions were removed.
        reply_message: The message with lines, reply and joined replies; None if there is only the reply.
        has_attachments: Whether the question had attachments.
        turn_index: How many turns were asked before this one.
        picture_lines: The lines that name the images of the question once it is sent without them.
    """

    question: HistoryMessage
    question_message: Message
    tool_results: tuple[PlacedArtifact, ...]
    reply: HistoryMessage
    rounds: tuple[HistoryMessage, ...] = ()
    call_lines: tuple[Segment, ...] = ()
    joined_replies: tuple[HistoryMessage, ...] = ()
    reply_message: Message | None = None
    has_attachments: bool = False
    turn_index: int = 0
    picture_lines: tuple[PlacedArtifact, ...] = ()

    @property
    def replies(self) -> tuple[HistoryMessage, ...]:
        """The reply, and the replies joined to it."""
        return (self.reply, *self.joined_replies)

    @property
    def messages(self) -> tuple[HistoryMessage, ...]:
        """The question and all replies."""
        return (self.question, self.reply, *self.joined_replies)

    @property
    def message_tokens(self) -> int:
        return sum(message.segment.tokens for message in self.messages)


class SharedSequence(Sequence[ItemT], Generic[ItemT]):
    """An immutable sequence that shares its list with the sequences it grew from.

    Appending to the longest of them is O(1) per item. Each instance shows only its own length of the list.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[ItemT] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def with_items_appended(self, *more: ItemT) -> "SharedSequence[ItemT]":
        """Return the sequence with these items at its end."""
        items, end = self._items, self._length + len(more)
        if items and len(items) == self._length:
            items += more
        # The first to append owns the shared list. Another branch or thread that appends at the same length finds
        # other objects there (compared by identity) and continues in a copy.
        if len(items) < end or any(map(is_not, items[self._length : end], more)):
            items = [*items[: self._length], *more]
        longer: SharedSequence[ItemT] = SharedSequence.__new__(SharedSequence)
        longer._items, longer._length = items, end
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> ItemT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ItemT, ...]: ...
    def __getitem__(self, index: int | slice) -> ItemT | tuple[ItemT, ...]:
        if isinstance(index, int):
            return self._items[range(self._length)[index]]
        within = range(self._length)[index]
        if within.step == 1:
            return tuple(self._items[within.start : within.stop])
        return tuple([self._items[number] for number in within])

    def __iter__(self) -> Iterator[ItemT]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedSequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Series({list(self)!r})"


class ConversationHistory(Struct, frozen=True, kw_only=True, gc=False):
    """The history: earlier turns (the first ``hidden_turns`` are not sent), and the preamble before them.

    Attributes:
        turns: All turns, oldest first.
        message_count: Number of messages of all turns, hidden ones included.
        epoch_start: Index of the first turn that is still as it was sent.
        preamble: Placeholders for messages that compaction removed.
        hidden_turns: How many turns the history mode hides.
        placeholder: Placeholder for the hidden turns.
        stubbed_ids: Ids of tool results that compaction reduced to their calls, including results of the current turn.
        last_summary: The last summary of hidden turns and the ids of their questions. As long as it covers the same
            turns, no other summary is requested.
        rule_search: Cached search for rules in hidden turns: number of turns searched, id of the last question among
            them, the rules, and the extra cues used.
        rules: The rules block while hidden turns contain rules.
        digest: Earlier messages in the digest, before the turns.
        first_shown_turn: Index of the first turn that the history mode shows; 0 if it shows all.
        hides_excerpts: Whether the directives of earlier turns in the digest are hidden, too.
        names_recall: Whether the notice and the head of the digest name recall, as ``TurnSettings.names_recall`` said
            when they were written.
    """

    turns: SharedSequence[HistoryTurn] = SharedSequence()
    message_count: int = 0
    epoch_start: int = 0
    preamble: HistoryPreamble = EMPTY_PREAMBLE
    hidden_turns: int = 0
    placeholder: Placeholder | None = None
    stubbed_ids: frozenset[str] = frozenset()
    last_summary: tuple[str, tuple[str, ...]] | None = None
    rule_search: tuple[int, str, NumberedRules, tuple[str, ...]] = NO_RULE_SEARCH
    rules: Placeholder | None = None
    digest: HistoryDigest = ()
    first_shown_turn: int = 0
    hides_excerpts: bool = False
    names_recall: bool = True

    @property
    def shown(self) -> tuple[HistoryTurn, ...]:
        return self.turns[self.hidden_turns :]

    @property
    def hides_turns(self) -> bool:
        """Whether the history mode hides turns, or earlier messages of the digest."""
        return bool(self.hidden_turns or self.first_shown_turn)

    @property
    def shown_message_count(self) -> int:
        """The number of messages that are sent."""
        return count_messages(self.shown) if self.hidden_turns else self.message_count


def make_history_message(
    message_id: str, author: MessageAuthor, text: str, *, position: str | None, tokenizer: Tokenizer
) -> HistoryMessage:
    """Build a history message from a typed text or a reply at a position."""
    tokens, kind = tokenizer.count(text), _KIND_BY_AUTHOR[author]
    return HistoryMessage(
        message=Message(role=_ROLE_BY_AUTHOR[author], pieces=(text,) if text else (), tokens=tokens),
        segment=Segment(
            id=message_id, kind=kind, form=_FULL, place=position, text=text, tokens=tokens, recoverable=False
        ),
    )


def shorten_message(original: HistoryMessage, text: str, *, form: ArtifactForm, count: TokenCounter) -> HistoryMessage:
    """Return a history message with a shorter text; recall can return the original."""
    tokens = count(text)
    segment = replace(original.segment, form=form, text=text, tokens=tokens, recoverable=True)
    message = replace(original.message, pieces=(text,), tokens=tokens)
    whole = {original.segment.id: original.segment.text} if original.full_texts is None else original.full_texts
    return replace(original, message=message, segment=segment, full_texts=whole)


def make_plain_turns(
    message_ids: Sequence[str],
    texts: Sequence[str | TextsById],
    *,
    positions: Iterable[int],
    numbers: Iterable[int],
    tokens: Iterable[int],
    shortened: Mapping[int, tuple[str, ArtifactForm]] = MappingProxyType({}),
) -> list[HistoryTurn]:
    """Build many turns at once that contain only a question and a reply.

    ``message_ids``, ``texts`` and ``positions`` alternate between question and reply; ``numbers`` has one entry per
    turn. ``shortened`` has, by message index, a shorter text and its form. ``tokens`` are the counts of the texts that
    are sent.
    """
    voices = cycle(
        [(_ROLE_BY_AUTHOR[voice], _KIND_BY_AUTHOR[voice]) for voice in (MessageAuthor.USER, MessageAuthor.REPLY)]
    )
    texts_left, forms, wholes = list(texts), [_FULL] * len(texts), list[TextsById | None]([None]) * len(texts)
    for at, (text, form) in shortened.items():
        whole = texts[at]
        texts_left[at], forms[at], wholes[at] = (
            text,
            form,
            {message_ids[at]: whole} if isinstance(whole, str) else whole,
        )
    shown = resolve_lazy_texts(message_ids, texts_left)
    columns = zip(message_ids, shown, tokens, map(message_position, positions), voices, forms, wholes, strict=False)
    every = [
        HistoryMessage(
            message=Message(role=role, pieces=(text,) if text else (), tokens=counted),
            segment=Segment(
                id=name, kind=kind, form=form, place=position, text=text, tokens=counted, recoverable=whole is not None
            ),
            full_texts=whole,
        )
        for name, text, counted, position, (role, kind), form, whole in columns
    ]
    turns = zip(every[::2], every[1::2], numbers, strict=False)
    return [
        HistoryTurn(question=user, question_message=user.message, tool_results=(), reply=reply, turn_index=turn)
        for user, reply, turn in turns
    ]


def with_joined_replies(turn: HistoryTurn, joined: Sequence[HistoryMessage], *, count: TokenCounter) -> HistoryTurn:
    """Return the turn with these replies joined to its own in one message, after its lines.

    A blank line separates the replies.
    """
    if not joined and not turn.call_lines:
        return replace(turn, joined_replies=(), reply_message=None)
    texts = [message.text for message in (turn.reply, *joined) if message.text]
    pieces = [part for text in texts for part in (text, "\n\n")][:-1]
    pieces = [*(line.text for line in turn.call_lines), *pieces]
    answer = Message(role=Role.ASSISTANT, pieces=tuple(pieces), tokens=count_pieces_tokens(pieces, count))
    return replace(turn, joined_replies=tuple(joined), reply_message=answer)


def list_history_segments(
    history: ConversationHistory, *, first_message: int, preamble: HistoryPreamble, digest: HistoryDigest = ()
) -> tuple[Segment, ...]:
    """Return the segments of L4 in order; ``first_message`` is the message index after the system message.

    ``digest`` is the part of the digest that is shown. Its head line is the notice of the preamble.
    """
    shown = history.shown
    segments = [] if preamble == EMPTY_PREAMBLE else list(preamble.segments(message_position(first_message)))
    if digest:
        segments[1:1] = iter_digest_segments(digest, message_position(first_message))
    if not any(map(_has_extra_segments, shown)):
        plain = [one for turn in shown for one in (turn.question.segment, turn.reply.segment)]
        places = [message_position(at) for at in range(first_message, first_message + len(plain))]
        # Thousands of turns are like this, and mostly their positions have not changed.
        if [segment.place for segment in plain] != places:
            plain = [_with_position(segment, place) for segment, place in zip(plain, places, strict=True)]
        return (*segments, *plain)
    # A result that was reduced to its call and is attached again occurs twice. L4 contains the newer one only.
    newest = {placed_result.artifact.id: placed_result for turn in shown for placed_result in turn.tool_results}
    at = first_message
    for turn in shown:
        position = message_position(at)
        if turn.tool_results:
            tools = [
                placed_result.segment
                for placed_result in turn.tool_results
                # Lines that name images are no segments, like references to artifacts.
                if newest[placed_result.artifact.id] is placed_result
                and placed_result.artifact.kind is ArtifactKind.TOOL
            ]
            segments += [_with_position(segment, position) for segment in tools]
        question_segment = turn.question.segment
        # Adding or removing the system message shifts all positions by one. Mostly nothing shifts, so the common
        # case, thousands of segments, avoids the call.
        segments.append(
            question_segment if question_segment.place == position else _with_position(question_segment, position)
        )
        for question_segment in [one.segment for one in turn.rounds] if turn.rounds else ():
            at += 1
            segments.append(_with_position(question_segment, message_position(at)))
        position = message_position(at + 1)
        segments += [_with_position(line, position) for line in turn.call_lines] if turn.call_lines else ()
        question_segment = turn.reply.segment
        segments.append(
            question_segment if question_segment.place == position else _with_position(question_segment, position)
        )
        segments += (
            [_with_position(reply.segment, position) for reply in turn.joined_replies] if turn.joined_replies else ()
        )
        at += 2
    return tuple(segments)


def _has_extra_segments(turn: HistoryTurn) -> bool:
    """Return whether a turn has more segments than a question and a reply."""
    return bool(turn.tool_results or turn.rounds or turn.call_lines or turn.joined_replies)


def _with_position(segment: Segment, position: str) -> Segment:
    return segment if segment.place == position else replace(segment, place=position)


def build_history_layer(segments: Sequence[Segment]) -> Layer:
    """Build L4: placeholders for removed messages, earlier messages, and tool results of earlier turns."""
    pieces = [part for segment in segments for part in (segment.text, "\n\n") if part]
    tokens = sum([segment.tokens for segment in segments])
    return make_layer(LayerId.L4, segments=segments, pieces=pieces[:-1], tokens=tokens)


def history_messages(turns: Sequence[HistoryTurn]) -> list[Message]:
    """Return earlier messages as they are sent now."""
    messages: list[Message] = []
    for turn in turns:
        if turn.rounds:
            messages += [turn.question_message, *(message.message for message in turn.rounds)]
            messages.append(turn.reply_message or turn.reply.message)
        else:
            messages += (turn.question_message, turn.reply_message or turn.reply.message)
    return messages


def count_messages(turns: Sequence[HistoryTurn]) -> int:
    """Return how many messages these turns are sent as."""
    return 2 * len(turns) + sum([len(turn.rounds) for turn in turns])
