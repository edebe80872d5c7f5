"""The pieces of a prompt in the order in which they are sent, with their position in tokens.

The layers of an envelope are logical: their segments are in several messages, and message overhead and tool
definitions are in none of them. ``PromptPieceLister`` goes through the request instead, so its pieces add up to the total,
and a piece is before or after the first byte that differs from the previous request.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamella.core.artifacts.model import ArtifactKind, ImageData
from lamella.core.budget import (
    Tokenizer,
    can_be_counted_separately,
    count_images_tokens,
    tool_definition_json,
)
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Message
from lamella.core.prompt.layers.history import HistoryMessage, HistoryTurn
from lamella.core.prompt.layers.library import PlacedArtifact, is_start_or_end_of_handle_list
from lamella.core.prompt.layers.model import SYSTEM_POSITION, LayerId, Segment, SegmentKind, message_position
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import replace

TALK_KIND, OVERHEAD_KIND, TOOL_DEFINITION_KIND = "talk", "overhead", "tool_definition"
TOOLS_POSITION = "tools"
_IMAGE_KIND = ArtifactKind.IMAGE.value
_TALK_KINDS = frozenset({SegmentKind.USER.value, SegmentKind.REPLY.value})
_ROUND_KINDS = frozenset({SegmentKind.CALL.value, ArtifactKind.TOOL.value})
# An earlier tool call or result below this share of the request is part of the band of talk.
_SMALL_SHARE = 0.01


class PromptPiece(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a request.

    Attributes:
        start: How many tokens of the request come before it.
        layer: The layer that it belongs to; None for overhead and tool definitions.
        is_same: Whether the previous request had the same tokens at the same position.
        messages: How many earlier messages a band of talk has; otherwise 0.
        shortened: How many of those are shorter than they were written.
    """

    start: int
    tokens: int
    layer: LayerId | None
    id: str
    kind: str
    form: ArtifactForm
    place: str
    is_same: bool
    message_count: int = 0
    shortened: int = 0


class _PieceOwner(NamedTuple):
    """Whose text a piece of a message is."""

    layer: LayerId | None
    id: str
    kind: str
    form: ArtifactForm


_OVERHEAD = _PieceOwner(None, OVERHEAD_KIND, OVERHEAD_KIND, ArtifactForm.FULL)
_LIST_FRAME = _PieceOwner(LayerId.L2, OVERHEAD_KIND, OVERHEAD_KIND, ArtifactForm.HANDLE)
_TURN_OVERHEAD = _PieceOwner(LayerId.L3, OVERHEAD_KIND, OVERHEAD_KIND, ArtifactForm.FULL)


class PromptPieceLister:
    """Lists the pieces of prompts; faster for many prompts of one conversation, which share most of their messages.

    With ``folds_talk``, neighbouring earlier messages are one piece, a band of talk, with their message overhead.
    """

    def __init__(self, *, folds_talk: bool) -> None:
        self._folds_talk = folds_talk
        # The tokens of each piece of a message, by the tokenizer and the pieces. Strings compute their hash once.
        self._counted: dict[tuple[str, tuple[str, ...]], Sequence[int]] = {}

    def list_pieces(self, prompt: Prompt, *, same_tokens: int) -> list[PromptPiece]:
        """Return the pieces of a prompt; its first ``same_tokens`` tokens are those of the previous request.

        A piece that only begins with the same tokens is split there.
        """
        lines = _PieceList(prompt, same_tokens=same_tokens, folds_talk=self._folds_talk)
        count, owners = prompt.tokenizer.count, _list_owners(prompt)
        for tool in prompt.tools:
            definition = _PieceOwner(None, tool.name, TOOL_DEFINITION_KIND, ArtifactForm.FULL)
            lines.add(definition, count(tool_definition_json(tool)), TOOLS_POSITION)
        messages, at = prompt.messages, prompt.first_message
        if at:
            self._add_system_message(lines, prompt, messages[0])
        for turn in prompt.history.shown:
            at = self._add_earlier_turn(lines, prompt, turn, at=at, owners=owners)
        segments, pieces, _, _ = prompt.rendered_attachments
        # The headings and the state line of this turn count as L3; those of earlier turns are overhead.
        own = {**dict.fromkeys(pieces, _TURN_OVERHEAD), **owners}
        own |= {segment.text: _segment_to_owner(LayerId.L3, segment) for segment in segments if segment.text}
        own |= dict.fromkeys(prompt.question.message.pieces, _segment_to_owner(LayerId.L5, prompt.question.segment))
        self._add_message(lines, prompt, messages[at], at, own, LayerId.L3)
        for index, message in enumerate(prompt.rounds, start=at + 1):
            lines.add_round(LayerId.L3, message, message_position(index))
        lines.add(_OVERHEAD, prompt.tokenizer.tokens_per_request, message_position(len(messages) - 1))
        return lines.finish()

    def _add_system_message(self, lines: "_PieceList", prompt: Prompt, message: Message) -> None:
        """Add L1 part by part, and the library."""
        rest = message.tokens
        library = tuple(prompt.system_library.values())
        rest -= sum([placed.segment.tokens for placed in library])
        for segment in prompt.system_layer.segments:
            # Parts are counted one by one here and together in the request, which may merge tokens where they meet.
            tokens = min(segment.tokens, rest)
            lines.add(_segment_to_owner(LayerId.L1, segment), tokens, SYSTEM_POSITION)
            rest -= tokens
        lines.add(_OVERHEAD, rest, SYSTEM_POSITION)
        for placed in library:
            lines.add(_segment_to_owner(LayerId.L2, placed.segment), placed.segment.tokens, SYSTEM_POSITION)
        lines.add(_OVERHEAD, prompt.tokenizer.tokens_per_message, SYSTEM_POSITION)
        lines.end_message()

    def _add_earlier_turn(
        self, lines: "_PieceList", prompt: Prompt, turn: HistoryTurn, *, at: int, owners: Mapping[str, _PieceOwner]
    ) -> int:
        """Add the messages of an earlier turn, and return the index of the next message."""
        messages = prompt.messages
        question, reply = messages[at], messages[at + len(turn.rounds) + 1]
        if question is turn.question.message:
            lines.add_talk(turn.question, message_position(at))
        else:
            own = dict.fromkeys(turn.question.message.pieces, _segment_to_owner(LayerId.L4, turn.question.segment))
            for result in turn.tool_results:
                own |= dict.fromkeys(result.pieces, _segment_to_owner(LayerId.L4, result.segment))
            self._add_message(lines, prompt, question, at, {**owners, **own}, None)
        for message in turn.rounds:
            at += 1
            lines.add_round(LayerId.L4, message, message_position(at))
        at += 1
        if reply is turn.reply.message:
            lines.add_talk(turn.reply, message_position(at))
        else:
            own = {segment.text: _segment_to_owner(LayerId.L4, segment) for segment in turn.call_lines}
            for one in turn.replies:
                own |= dict.fromkeys(one.message.pieces, _segment_to_owner(LayerId.L4, one.segment))
            self._add_message(lines, prompt, reply, at, {**owners, **own}, None)
        return at + 1

    def _add_message(
        self,
        lines: "_PieceList",
        prompt: Prompt,
        message: Message,
        at: int,
        owners: Mapping[str, _PieceOwner],
        image_layer: LayerId | None,
    ) -> None:
        """Add a message piece by piece, with its images and its overhead."""
        position = message_position(at)
        for text, tokens in zip(message.pieces, self._count_pieces(message, prompt.tokenizer), strict=True):
            owner = owners.get(text, _OVERHEAD)
            if owner.layer is LayerId.L4 and owner.kind in _TALK_KINDS:
                lines.add_talk_text(owner, tokens, position)
            else:
                lines.add(owner, tokens, position)
        if message.images:
            for owner, tokens in _list_images(prompt, message.images, position, image_layer):
                lines.add(owner, tokens, position)
        lines.add(_OVERHEAD, prompt.tokenizer.tokens_per_message, position)
        lines.end_message()

    def _count_pieces(self, message: Message, tokenizer: Tokenizer) -> Sequence[int]:
        """Return the tokens of each piece of a message, which add up to those of the message."""
        key = (tokenizer.name, message.pieces)
        known = self._counted.get(key)
        if known is None:
            counts = message.piece_token_counts
            if len(counts) != len(message.pieces) or sum(counts) != message.tokens:
                counts = tuple(_iter_piece_token_counts(message, tokenizer))
            known = self._counted[key] = counts
        return known


class _PieceList:
    """Collects pieces: joins neighbouring overhead and talk, and splits at the end of the common prefix."""

    def __init__(self, prompt: Prompt, *, same_tokens: int, folds_talk: bool) -> None:
        self._pieces: list[PromptPiece] = []
        self._same_tokens = same_tokens
        self._folds_talk = folds_talk
        self._small_tokens = prompt.total * _SMALL_SHARE
        self._message_overhead = prompt.tokenizer.tokens_per_message
        self._offset = 0
        # The piece that further talk or overhead may join: its owner, position, tokens, messages and shortened ones.
        self._open: _PieceOwner | None = None
        self._position = ""
        self._tokens = self._messages = self._shortened = 0

    def add(self, owner: _PieceOwner, tokens: int, position: str) -> None:
        """Add a piece of a message."""
        if tokens <= 0:
            return
        if owner is _OVERHEAD and self._open is not None:
            self._tokens += tokens
            return
        self._end_band_of_talk()
        self._open, self._position, self._tokens = owner, position, tokens
        if owner is not _OVERHEAD:
            self._end_band_of_talk()

    def add_talk(self, message: HistoryMessage, position: str) -> None:
        """Add an earlier message that has only its own text, with its overhead."""
        segment = message.segment
        if self._folds_talk and self._open is not None and self._open.kind == TALK_KIND:
            # Most messages of a long chat take this path.
            self._tokens += segment.tokens + self._message_overhead
            self._messages += 1
            self._shortened += segment.form is not ArtifactForm.FULL
        else:
            self.add_talk_text(_segment_to_owner(LayerId.L4, segment), segment.tokens, position)
            self.add(_OVERHEAD, self._message_overhead, position)
        self.end_message()

    def add_talk_text(self, owner: _PieceOwner, tokens: int, position: str) -> None:
        """Add the text of an earlier message."""
        if not self._folds_talk:
            self.add(owner, tokens, position)
            return
        if self._open is None or self._open.kind not in (TALK_KIND, OVERHEAD_KIND):
            self._end_band_of_talk()
            self._position = position
        if self._open is None or self._open.kind != TALK_KIND:
            # Labels before a typed text are part of the band, too.
            self._open = _PieceOwner(LayerId.L4, owner.id, TALK_KIND, ArtifactForm.FULL)
            self._position = position
        self._tokens += tokens
        self._messages += 1
        self._shortened += owner.form is not ArtifactForm.FULL

    def add_round(self, layer: LayerId, message: HistoryMessage, position: str) -> None:
        """Add a message of a tool round."""
        owner, tokens = _segment_to_owner(layer, message.segment), message.message.tokens
        if layer is LayerId.L4 and owner.kind in _ROUND_KINDS and tokens < self._small_tokens:
            self.add_talk_text(owner, tokens, position)
        else:
            self.add(owner, tokens, position)
        self.add(_OVERHEAD, self._message_overhead, position)
        self.end_message()

    def end_message(self) -> None:
        """End a message: a band of talk ends where the common prefix does."""
        if self._open is not None and (
            self._open.kind != TALK_KIND or self._offset + self._tokens == self._same_tokens or not self._folds_talk
        ):
            self._end_band_of_talk()

    def finish(self) -> list[PromptPiece]:
        """Return all pieces."""
        self._end_band_of_talk()
        return self._pieces

    def _end_band_of_talk(self) -> None:
        owner, tokens, messages, shortened = self._open, self._tokens, self._messages, self._shortened
        self._open = None
        self._tokens = self._messages = self._shortened = 0
        if owner is None or not tokens:
            return
        start, same = self._offset, self._same_tokens - self._offset
        piece = PromptPiece(
            start=start,
            tokens=tokens,
            layer=owner.layer,
            id=owner.id,
            kind=owner.kind,
            form=owner.form,
            place=self._position,
            is_same=same >= tokens,
            message_count=messages,
            shortened=shortened,
        )
        if 0 < same < tokens:
            self._pieces.append(replace(piece, tokens=same, is_same=True))
            piece = replace(piece, start=start + same, tokens=tokens - same)
        self._pieces.append(piece)
        self._offset += tokens


def _segment_to_owner(layer: LayerId | None, segment: Segment) -> _PieceOwner:
    return _PieceOwner(layer, segment.id, str(segment.kind), segment.form)


def _list_owners(prompt: Prompt) -> dict[str, _PieceOwner]:
    """Return whose each text of artifacts, placeholders and the digest is, wherever it is sent."""
    owners: dict[str, _PieceOwner] = {}
    for name, placed in prompt.placed.items():
        layer = LayerId.L2 if name in prompt.library else None
        layer = LayerId.L4 if layer is None and placed.artifact.kind is ArtifactKind.TOOL else layer
        owners.update(_iter_placed_texts(layer, placed))
    for one in prompt.preamble.segments(SYSTEM_POSITION):
        owners[one.text] = _segment_to_owner(LayerId.L4, one)
    for block in prompt.shown_digest:
        owners[block.text] = _PieceOwner(LayerId.L4, block.messages[0].id, SegmentKind.USER.value, ArtifactForm.FULL)
    return owners


def _iter_placed_texts(layer: LayerId | None, placed: PlacedArtifact) -> Iterator[tuple[str, _PieceOwner]]:
    """Yield the texts that show an artifact: the first copy, and the updates after it."""
    last = len(placed.pieces) - 1
    for at, text in enumerate(placed.pieces):
        if placed.is_listed and is_start_or_end_of_handle_list(text):
            # Lists share the text of their frames, so a frame is of no single artifact.
            yield text, _LIST_FRAME
            continue
        form = placed.form if at == last else ArtifactForm.UPDATE if at else ArtifactForm.FULL
        yield text, _PieceOwner(layer, placed.segment.id, str(placed.segment.kind), form)


def _list_images(
    prompt: Prompt, images: Sequence[ImageData], position: str, layer: LayerId | None
) -> list[tuple[_PieceOwner, int]]:
    """Return the images of a message with their tokens; those of an unknown artifact are one piece."""
    known = [*prompt.attached, *prompt.unlisted_attachments.values()]
    known += [placed.artifact for placed in prompt.placed.values()]
    artifacts = {str(one.id): one.images for one in known if one.kind is ArtifactKind.IMAGE}
    found: list[tuple[_PieceOwner, int]] = []
    left = list(images)
    for name, own in artifacts.items():
        if own and all(one in left for one in own):
            found.append(
                (_PieceOwner(layer, name, _IMAGE_KIND, ArtifactForm.FULL), count_images_tokens(own, prompt.tokenizer))
            )
            left = [one for one in left if one not in own]
    rest = count_images_tokens(images, prompt.tokenizer) - sum(tokens for _, tokens in found)
    if rest > 0:
        found.append((_PieceOwner(layer, position, _IMAGE_KIND, ArtifactForm.FULL), rest))
    return found


def _iter_piece_token_counts(message: Message, tokenizer: Tokenizer) -> Iterator[int]:
    """Yield the tokens of each piece of a message.

    Pieces that tokenise together are counted together, as the request counts them. The difference to their own counts
    goes to the largest of them.
    """
    groups: list[list[str]] = [[]]
    for piece in message.pieces:
        if groups[-1] and can_be_counted_separately(groups[-1][-1], piece):
            groups.append([])
        groups[-1].append(piece)
    counts: list[int] = []
    for group in groups:
        own = [tokenizer.count(piece) if piece else 0 for piece in group]
        if len(group) > 1:
            own = _adjust_counts_to_total(own, tokenizer.count("".join(group)))
        counts += own
    yield from _adjust_counts_to_total(counts, message.tokens)


def _adjust_counts_to_total(counts: list[int], total: int) -> list[int]:
    """Return the counts changed so that they add up to ``total``, with the difference in the largest ones."""
    left = total - sum(counts)
    adjusted = list(counts)
    for at in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
        change = max(left, -adjusted[at])
        adjusted[at] += change
        left -= change
        if not left:
            break
    return adjusted
