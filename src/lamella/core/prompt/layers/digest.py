"""The history digest: earlier messages, word for word and numbered, without the replies between them.

A long conversation keeps what the user said after the replies are removed. The digest is written in sealed blocks: a
later compaction appends a block, and rewrites an earlier one only if words leave it, so most of its bytes stay cached.

A text in the digest has the authority that its message had. Its number says where it was said, so that a later message
can take it back. Missing numbers show the reader what was left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.log.turn import ArtifactForm, MessageAuthor
from lamella.core.prompt.layers.model import Segment, SegmentKind, TokenCounter
from lamella.core.values import replace, repr_without

_TAG = "earlier_messages"
DIGEST_END = f"</{_TAG}>\n"
# A line of a message that looks like the number of another message.
_NUMBER_AT_LINE_START = re.compile(r"(?<=\n)(?=\[\d+\])")


class DigestMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message in the digest: its text word for word, or the sentences that are left of it (``is_excerpt``).

    ``number`` counts the messages of the branch from 1: questions are odd, replies are even. ``tokens`` is the count of
    the rendered line.
    """

    id: str
    number: int
    text: str
    tokens: int
    is_excerpt: bool = False

    def __repr__(self) -> str:
        return repr_without(self, without=("text",))

    @property
    def turn_index(self) -> int:
        """How many turns were asked before the turn of this message."""
        return (self.number - 1) // 2

    @property
    def author(self) -> MessageAuthor:
        """Who wrote the message."""
        return MessageAuthor.USER if self.number % 2 else MessageAuthor.REPLY


class DigestBlock(Struct, frozen=True, kw_only=True):
    """Messages of the digest that one compaction wrote, in order, and the text that they render to."""

    messages: tuple[DigestMessage, ...]
    text: str

    def __repr__(self) -> str:
        return repr_without(self, without=("text",))


HistoryDigest = tuple[DigestBlock, ...]


def render_digest_head(*, names_recall: bool) -> str:
    """Render the head line of the digest, which says what its numbers are."""
    return (
        f"<{_TAG}>\n"
        "Earlier messages of this conversation by number, odd ones from the user, even ones from the assistant. Missing "
        f"numbers and cut words are left out here{'; recall finds them' if names_recall else ''}.\n"
    )


def question_message_number(turn_index: int) -> int:
    """Return the message number of the question of a turn, given how many turns were asked before it."""
    return 2 * turn_index + 1


def render_digest_line(number: int, text: str) -> str:
    """Render one message as the digest shows it."""
    escaped = _NUMBER_AT_LINE_START.sub(" ", escape_block_text(text.strip()))
    return f"[{number}] {escaped}\n"


def make_digest_message(
    message_id: str, number: int, text: str, *, count: TokenCounter, is_excerpt: bool = False
) -> DigestMessage:
    """Build a message of the digest, counted once."""
    tokens = count(render_digest_line(number, text))
    return DigestMessage(id=message_id, number=number, text=text, tokens=tokens, is_excerpt=is_excerpt)


def make_digest_block(messages: Sequence[DigestMessage]) -> DigestBlock:
    """Build a block of messages, in the order of their numbers."""
    ordered = tuple(sorted(messages, key=lambda message: message.number))
    return DigestBlock(
        messages=ordered, text="".join([render_digest_line(message.number, message.text) for message in ordered])
    )


def iter_digest_messages(digest: HistoryDigest) -> Iterator[DigestMessage]:
    """Iterate over all messages of the digest, in order."""
    return chain.from_iterable([block.messages for block in digest])


def add_to_digest(digest: HistoryDigest, messages: Sequence[DigestMessage]) -> HistoryDigest:
    """Return the digest with more messages: in a new block at its end, or in their place if they are older.

    A message that the digest already has stays as it is.
    """
    known = {message.id for message in iter_digest_messages(digest)}
    new = [message for message in messages if message.id not in known]
    if not new:
        return digest
    last = digest[-1].messages[-1].number if digest else 0
    if min(message.number for message in new) > last:
        return (*digest, make_digest_block(new))
    # Only messages that left alone, from between turns that stay, come out of order. Then all blocks become one.
    return (make_digest_block([*iter_digest_messages(digest), *new]),)


def shorten_digest(digest: HistoryDigest, excerpts: Mapping[str, str], *, count: TokenCounter) -> HistoryDigest:
    """Return the digest in which these messages, given by id, are cut to an excerpt, or are gone if that is empty.

    Blocks without such a message stay the same object.
    """
    blocks: list[DigestBlock] = []
    for block in digest:
        if all(message.id not in excerpts for message in block.messages):
            blocks.append(block)
            continue
        left = list(_iter_shortened(block.messages, excerpts, count=count))
        if left:
            blocks.append(make_digest_block(left))
    return tuple(blocks)


def _iter_shortened(
    messages: Iterable[DigestMessage], excerpts: Mapping[str, str], *, count: TokenCounter
) -> Iterator[DigestMessage]:
    for message in messages:
        text = excerpts.get(message.id)
        if text is None:
            yield message
        elif text:
            yield make_digest_message(message.id, message.number, text, count=count, is_excerpt=True)


def recount_digest(digest: HistoryDigest, count: TokenCounter) -> HistoryDigest:
    """Return the same digest, counted with another tokenizer."""
    return tuple(
        [
            replace(
                block,
                messages=tuple(
                    [
                        replace(message, tokens=count(render_digest_line(message.number, message.text)))
                        for message in block.messages
                    ]
                ),
            )
            for block in digest
        ]
    )


def without_digest_texts(digest: HistoryDigest) -> HistoryDigest:
    """Return the digest without the texts that its messages have in the log; excerpts keep theirs."""
    return tuple(
        [
            DigestBlock(
                messages=tuple([one if one.is_excerpt else replace(one, text="") for one in block.messages]), text=""
            )
            for block in digest
        ]
    )


def with_loaded_digest_texts(
    digest: HistoryDigest, load_texts: Callable[[Sequence[DigestMessage]], Sequence[str]]
) -> HistoryDigest:
    """Return a digest from ``without_digest_texts`` with its texts; ``load_texts`` returns those of some messages."""
    waiting = [message for message in iter_digest_messages(digest) if not message.is_excerpt]
    texts = iter(load_texts(waiting))
    return tuple(
        [
            make_digest_block([one if one.is_excerpt else replace(one, text=next(texts)) for one in block.messages])
            for block in digest
        ]
    )


def list_digest_pieces(digest: HistoryDigest) -> tuple[str, ...]:
    """Return the pieces of text of the digest, after its head line."""
    return (*(block.text for block in digest), DIGEST_END) if digest else ()


def iter_digest_segments(digest: HistoryDigest, position: str) -> Iterator[Segment]:
    """Iterate over the messages of the digest as segments of L4."""
    for message in iter_digest_messages(digest):
        yield Segment(
            id=message.id,
            kind=SegmentKind.USER if message.author is MessageAuthor.USER else SegmentKind.REPLY,
            form=ArtifactForm.PREVIEW if message.is_excerpt else ArtifactForm.FULL,
            place=position,
            text=render_digest_line(message.number, message.text),
            tokens=message.tokens,
            recoverable=True,
        )
