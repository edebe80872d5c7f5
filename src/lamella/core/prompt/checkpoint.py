"""Encode a prompt state as a checkpoint, so that only the turns after it have to be replayed.

``encode_state_checkpoint`` encodes a state, and ``decode_state_checkpoint`` reads a ``StateCheckpoint`` back.
Contents are stored by hash, and each artifact and piece of text once, by number (``CheckpointTables``). Message texts
are not included: the conversation log already has them.

A checkpoint is derived data. It is valid as long as replaying would give the same state: same renderer version, same
tokenizer, a branch that continues from its last message, and the same compactions in force before that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import DecodeError, Raw
from msgspec.msgpack import Decoder, Encoder

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import KINDS, LIBRARY_KIND
from lamella.core.artifacts.model import Artifact, LazyArtifact, LazyTexts
from lamella.core.budget import Tokenizer
from lamella.core.log.compactions import ActiveCompactions
from lamella.core.log.events.artifact import (
    ContentsByHash,
    StoredArtifact,
    read_artifact,
    to_lazy_artifact,
    to_stored_artifact,
)
from lamella.core.log.turn import ArtifactForm, TurnSettings
from lamella.core.messages import Message, Role, TextsById
from lamella.core.messages import resolve_lazy_texts as load_message_texts
from lamella.core.prompt.layers.digest import iter_digest_messages, with_loaded_digest_texts, without_digest_texts
from lamella.core.prompt.layers.history import HistoryTurn, SharedSequence, make_plain_turns
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact, make_placed_artifact
from lamella.core.prompt.prompt import RENDERER_VERSION
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import hash_text
from lamella.core.values import replace

# A library entry: the number of its artifact, the turn that attached it last, its form, the flags ``stays_attached`` and
# ``is_listed``, and how many turns in a row before attached the same text.
EncodedEntry = tuple[int, int, ArtifactForm | None, bool | None, bool, int]
# A placed artifact: the number of the artifact, its form and position, the numbers of its pieces, its token count, and
# whether it is listed.
EncodedPlacement = tuple[int, ArtifactForm, str | None, tuple[int, ...], int, bool]
# A piece of text: the text itself, or for the block of an artifact the number of the artifact and the block's hash.
EncodedPiece = str | tuple[int, str]


class CheckpointTables:
    """Numbers artifacts and pieces of text, each once, while a state is encoded."""

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []
        self.pieces: list[str] = []
        self.encoded_pieces: list[EncodedPiece] = []
        self.stored_artifacts: list[StoredArtifact] = []
        self.blocks: dict[str, str] = {}
        self._artifact_numbers: dict[StoredArtifact, int] = {}
        self._piece_numbers: dict[str, int] = {}

    def add_artifact(self, artifact: Artifact) -> int:
        """Return the number of an artifact.

        Raises ``ValueError`` if decoding would not give an equal artifact.
        """
        spec = KINDS[artifact.kind]
        if (artifact.recoverable, artifact.trust) != (spec.recoverable, spec.trust):
            raise ValueError(f"{artifact.id} is not what its kind makes of it")
        # Compare all fields but the text. The hash represents the text, which may not have been read yet.
        stored = to_stored_artifact(artifact)
        number = self._artifact_numbers.setdefault(stored, len(self.stored_artifacts))
        if number == len(self.stored_artifacts):
            self.stored_artifacts.append(stored)
            self.artifacts.append(artifact)
        return number

    def add_piece(self, piece: str) -> int:
        """Return the number of a piece of text."""
        return self._piece_numbers[piece] if piece in self._piece_numbers else self._add_piece(piece, piece)

    def _add_piece(self, piece: str, encoded: EncodedPiece) -> int:
        number = self._piece_numbers[piece] = len(self.pieces)
        self.pieces.append(piece)
        self.encoded_pieces.append(encoded)
        return number

    def encode_placed(self, placed: PlacedArtifact) -> EncodedPlacement:
        """Encode a placed artifact."""
        artifact = self.add_artifact(placed.artifact)
        for piece in placed.pieces:
            if piece not in self._piece_numbers:
                self._add_piece(
                    piece, self._encode_block(piece, artifact) if _is_full_text_block(piece, placed) else piece
                )
        pieces = tuple([self._piece_numbers[piece] for piece in placed.pieces])
        return artifact, placed.form, placed.place, pieces, placed.tokens, placed.is_listed

    def _encode_block(self, block: str, artifact: int) -> EncodedPiece:
        """Encode a block by its hash.

        A block is long and stays in the request for many turns, so it is not written again with each checkpoint.
        """
        name = hash_text(block)
        self.blocks[name] = block
        return artifact, name

    def encode_entry(self, entry: LibraryEntry) -> EncodedEntry:
        """Encode a library entry."""
        return (
            self.add_artifact(entry.artifact),
            entry.last_attached_turn,
            entry.form,
            entry.stays_attached,
            entry.is_listed,
            entry.repeats,
        )


def _is_full_text_block(piece: str, placed: PlacedArtifact) -> bool:
    """Return whether a piece is the block with the full text of the artifact."""
    if placed.form is not ArtifactForm.FULL:
        return False
    # A lazy artifact was placed in full when its checkpoint was written; do not load its text to check that. A piece
    # beside its block, such as a line before it, is then stored as a block, too, and decodes to the same text.
    return isinstance(placed.artifact, LazyArtifact) or piece in _iter_full_text_blocks(placed.artifact)


def _iter_full_text_blocks(artifact: Artifact) -> Iterator[str]:
    """Iterate over the blocks that can show the full text."""
    for kind in dict.fromkeys((artifact.kind, LIBRARY_KIND[artifact.kind])):
        yield render_block(artifact, kind=kind)


def lazy_artifact_indices(
    stored: Sequence[StoredArtifact], encoded_pieces: Iterable[EncodedPiece], blocks: Collection[str] = ()
) -> frozenset[int]:
    """Return the indices of the artifacts whose texts can be loaded lazily.

    These are artifacts that are not placed in full, or whose block is in ``blocks``. Artifacts with images are loaded
    at once.
    """
    shown = {one[0] for one in encoded_pieces if not isinstance(one, str) and one[1] not in blocks}
    return frozenset([at for at, one in enumerate(stored) if at not in shown and not one.images])


def artifact_required_hashes(stored: StoredArtifact, *, is_lazy: bool) -> tuple[str, ...]:
    """Return the hashes of the contents of an artifact that are needed at once."""
    return tuple([name for name in stored.iter_content_hashes() if not (is_lazy and name == stored.hash)])


def decode_artifacts(
    stored: Sequence[StoredArtifact],
    contents: ContentsByHash,
    *,
    lazy_indices: Collection[int] = (),
    lazy_texts: LazyTexts,
) -> list[Artifact]:
    """Decode artifacts; those in ``lazy_indices`` load their text on demand.

    Raises ``LookupError`` if a content is missing.
    """
    artifacts: list[Artifact] = []
    for at, one in enumerate(stored):
        is_lazy = at in lazy_indices
        artifact = to_lazy_artifact(one, contents, lazy_texts) if is_lazy else read_artifact(one, contents)
        if artifact is None or not contents.keys() >= set(artifact_required_hashes(one, is_lazy=is_lazy)):
            raise LookupError(one.id)
        artifacts.append(artifact)
    return artifacts


def decode_pieces(
    encoded: Iterable[EncodedPiece], artifacts: Sequence[Artifact], blocks: Mapping[str, str]
) -> list[str]:
    """Decode the pieces of text; raises ``LookupError`` if a block cannot be rebuilt."""
    return [one if isinstance(one, str) else blocks.get(one[1]) or _rebuild_block(artifacts, *one) for one in encoded]


def _rebuild_block(artifacts: Sequence[Artifact], number: int, block_hash: str) -> str:
    """Render the block with this hash again from its artifact."""
    found = next((block for block in _iter_full_text_blocks(artifacts[number]) if hash_text(block) == block_hash), None)
    if found is None:
        raise LookupError(block_hash)
    return found


def decode_library(encoded: Mapping[str, EncodedEntry], artifacts: Sequence[Artifact]) -> dict[str, LibraryEntry]:
    """Decode the library."""
    return {
        name: LibraryEntry(
            artifact=artifacts[artifact],
            last_attached_turn=at,
            form=form,
            stays_attached=is_attached,
            is_listed=listed,
            repeats=repeats,
        )
        for name, (artifact, at, form, is_attached, listed, repeats) in encoded.items()
    }


def decode_placed(encoded: EncodedPlacement, artifacts: Sequence[Artifact], pieces: Sequence[str]) -> PlacedArtifact:
    """Decode a placed artifact."""
    artifact, form, position, named, tokens, listed = encoded
    texts = tuple([pieces[one] for one in named])
    one = make_placed_artifact(artifacts[artifact], form=form, position=position, pieces=texts, tokens=tokens)
    return replace(one, is_listed=True) if listed else one


# The history: positions, token counts and shortened texts of the turns.

# A question that is sent with more than its typed text: the numbers of its pieces, its token count, and the token
# counts of its parts.
EncodedQuestion = tuple[tuple[int, ...], int, tuple[int, ...]]
# In order: the number of each turn; positions and token counts of its two messages; indices of turns with attachments;
# and by turn index: shortened replies, questions that are sent with more than their text, and turns stored as a whole.
EncodedHistory = tuple[
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    dict[int, tuple[str, ArtifactForm]],
    dict[int, EncodedQuestion],
    dict[int, HistoryTurn],
]
_MESSAGE_PREFIX = "message:"
# Represents the typed text in a list of piece numbers.
_TYPED_TEXT_NUMBER = -1


def encode_history(
    turns: Sequence[HistoryTurn],
    message_ids: Sequence[str],
    texts: Sequence[str | TextsById],
    *,
    tables: CheckpointTables,
) -> EncodedHistory:
    """Encode turns without their messages, whose ids and texts are stored elsewhere."""
    numbers = tuple([one.turn_index for one in turns])
    messages = [spoken.segment for one in turns for spoken in (one.question, one.reply)]
    positions = tuple([_parse_position(segment.place) for segment in messages])
    tokens = tuple([segment.tokens for segment in messages])
    shorter = {
        at: (one.reply.segment.text, one.reply.segment.form)
        for at, one in enumerate(turns)
        if one.reply.full_texts is not None
    }
    attached = tuple([at for at, one in enumerate(turns) if one.has_attachments])
    asked = {
        at: _encode_question(one, tables)
        for at, one in enumerate(turns)
        if one.question_message is not one.question.message and not (one.tool_results or one.rounds)
    }
    talk = numbers, positions, tokens, attached, shorter, asked, dict[int, HistoryTurn]()
    again = decode_history(talk, message_ids, texts, pieces=tables.pieces)
    # Turns that do not decode to an equal one are stored as a whole: turns with tool rounds or with joined replies.
    pairs = enumerate(zip(turns, again, strict=True))
    irregular = {
        at: _load_full_texts(one)
        for at, (one, other) in pairs
        if one != other and not _are_equal_when_loaded(one, other)
    }
    for at in irregular:
        shorter.pop(at, None)
        asked.pop(at, None)
    return numbers, positions, tokens, attached, shorter, asked, irregular


def _are_equal_when_loaded(one: HistoryTurn, other: HistoryTurn) -> bool:
    """Return whether turns are equal except for the mapping with the full text of the reply."""
    if one.reply.full_texts is None or other.reply.full_texts is None:
        return False
    found = replace(other, reply=replace(other.reply, full_texts=one.reply.full_texts))
    return one == found and one.reply.original == other.reply.original


def _load_full_texts(turn: HistoryTurn) -> HistoryTurn:
    """Return a turn whose shortened replies have their full texts loaded, so that it can be stored as a whole."""
    replies = [
        one if one.full_texts is None else replace(one, full_texts={one.id: one.original}) for one in turn.replies
    ]
    return replace(turn, reply=replies[0], joined_replies=tuple(replies[1:]))


def _parse_position(position: str | None) -> int:
    return int(position[len(_MESSAGE_PREFIX) :]) if position is not None and position.startswith(_MESSAGE_PREFIX) else 0


def _encode_question(turn: HistoryTurn, tables: CheckpointTables) -> EncodedQuestion:
    typed, sent = turn.question.segment.text, turn.question_message
    pieces = tuple(
        [_TYPED_TEXT_NUMBER if piece is typed or piece == typed else tables.add_piece(piece) for piece in sent.pieces]
    )
    return pieces, sent.tokens, sent.piece_token_counts


def decode_history(
    encoded: EncodedHistory, message_ids: Sequence[str], texts: Sequence[str | TextsById], *, pieces: Sequence[str]
) -> list[HistoryTurn]:
    """Decode the turns."""
    numbers, positions, tokens, attached, shorter, asked, irregular = encoded
    if numbers != tuple(range(len(numbers))):
        message_numbers = [at for number in numbers for at in (2 * number, 2 * number + 1)]
        message_ids, texts = [message_ids[at] for at in message_numbers], [texts[at] for at in message_numbers]
    # Turns stored as a whole do not need the given texts, which may not have been loaded.
    texts = texts if not irregular else ["" if at // 2 in irregular else text for at, text in enumerate(texts)]
    less = {2 * at + 1: one for at, one in shorter.items()}
    turns = make_plain_turns(message_ids, texts, positions=positions, numbers=numbers, tokens=tokens, shortened=less)
    for at in attached:
        turns[at] = replace(turns[at], has_attachments=True)
    for at, question in asked.items():
        turns[at] = _decode_question(turns[at], question, pieces)
    for at, one in irregular.items():
        turns[at] = (
            replace(one, question_message=one.question.message) if one.question_message == one.question.message else one
        )
    return turns


def _decode_question(turn: HistoryTurn, question: EncodedQuestion, pieces: Sequence[str]) -> HistoryTurn:
    named, token_count, weights = question
    typed = turn.question.segment.text
    sent = tuple([typed if one == _TYPED_TEXT_NUMBER else pieces[one] for one in named])
    message = Message(role=Role.USER, pieces=sent, tokens=token_count, piece_token_counts=weights)
    return replace(turn, question_message=message)


# Whole states.

# Raise this number when a field of the encoded state changes its name or meaning: msgspec fills a missing field with
# its default, so an older checkpoint would load as a wrong state. Checkpoints of another format are rebuilt from the
# events.
CHECKPOINT_FORMAT = 3
# A checkpoint is written again with every snapshot that grows. One with megabytes of tool results would be written
# every sixteenth turn; replaying when such a conversation is opened is cheaper.
_MAX_CHECKPOINT_BYTES = 2**20
_NO_CHECKPOINT: tuple[bytes, Mapping[str, str]] = (b"", {})
# Errors for bytes that another program wrote or that are damaged, and for contents that are no longer stored.
_DECODING_ERRORS = (DecodeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)

# The inputs of a state beside its messages: renderer version, tokenizer name and factor, default turn settings, and for
# each compaction in force the id of the question after it and its own id.
_StateInputs = tuple[int, int, str, float, TurnSettings, tuple[tuple[str, str], ...]]
# In order: the state without the following parts; artifacts; pieces of text; their token counts; all placed artifacts;
# the library; the placed library and the artifacts placed in messages, by number (None for the latter if both are the
# same object); whether the placed library was rendered from this library (None if from none); and the history.
_CheckpointBody = tuple[
    PromptState,
    tuple[StoredArtifact, ...],
    tuple[EncodedPiece, ...],
    tuple[int, ...],
    tuple[EncodedPlacement, ...],
    dict[str, EncodedEntry],
    dict[str, int],
    dict[str, int] | None,
    bool | None,
    EncodedHistory,
]


def _encode_value_unknown_to_msgspec(value: object) -> object:
    if isinstance(value, SharedSequence | MappingProxyType):
        return dict(value) if isinstance(value, MappingProxyType) else list(value)
    raise TypeError(f"a {type(value).__name__} is not kept")


_ENCODER = Encoder(enc_hook=_encode_value_unknown_to_msgspec)
_DECODER = Decoder(tuple[_StateInputs, int, str, Raw])
_BODY_DECODER = Decoder(_CheckpointBody, dec_hook=lambda _type, items: SharedSequence(items))

# Loads texts by their content hashes.
TextLoader = Callable[[Collection[str]], Mapping[str, str]]


class StateCheckpoint:
    """An encoded state after this number of ``turns``, whose last message is ``head``."""

    def __init__(self, inputs: _StateInputs, *, turns: int, head: str, body: Raw) -> None:
        self._inputs = inputs
        self.turns = turns
        self.head = head
        self._body: _CheckpointBody = _BODY_DECODER.decode(body)

    @property
    def model(self) -> str | None:
        """The model that is set in the state."""
        return self._body[0].model

    def is_valid_for(
        self,
        message_ids: Sequence[str],
        active_compactions: ActiveCompactions,
        *,
        defaults: TurnSettings,
        tokenizer: Tokenizer,
    ) -> bool:
        """Return whether the checkpoint is valid for a branch, given the ids of all messages of the branch."""
        end = 2 * self.turns
        # At least one turn must follow: the next request is compared with the one before it, which is built from that
        # turn.
        if len(message_ids) < end + 2 or message_ids[end - 1] != self.head:
            return False
        return self._inputs == _collect_state_inputs(
            message_ids[:end], active_compactions, defaults=defaults, tokenizer=tokenizer
        )

    def required_hashes(self, blocks: Collection[str] = ()) -> tuple[str, ...]:
        """Return the hashes of all contents needed to decode the state if these blocks are available."""
        waiting = lazy_artifact_indices(*self._body[1:3], blocks)
        needed = [artifact_required_hashes(one, is_lazy=at in waiting) for at, one in enumerate(self._body[1])]
        return tuple(dict.fromkeys([name for names in needed for name in names]))

    def decode(
        self,
        message_ids: Sequence[str],
        texts: Sequence[str | TextsById],
        contents: ContentsByHash,
        *,
        blocks: Mapping[str, str] = MappingProxyType({}),
        load_texts: TextLoader,
    ) -> tuple[PromptState, Mapping[str, int]] | None:
        """Decode the state and the token counts of its texts; None if a content is missing.

        ``message_ids`` and ``texts`` are the messages of the branch. The full text of an artifact is loaded on demand
        if the request shows only a line or an outline of it, or if its block is in ``blocks``.
        """
        state, stored, kept, weights, stood, known, shelved, encoded_placed, owns, talk = self._body
        waiting = lazy_artifact_indices(stored, kept, blocks)
        unread = LazyTexts([stored[at].hash for at in waiting], load_texts)
        try:
            artifacts = decode_artifacts(stored, contents, lazy_indices=waiting, lazy_texts=unread)
            pieces = decode_pieces(kept, artifacts, blocks)
            system_library = [decode_placed(one, artifacts, pieces) for one in stood]
            library = decode_library(known, artifacts)
            end = 2 * self.turns
            turns = decode_history(talk, message_ids[:end], texts[:end], pieces=pieces)
            digest = with_loaded_digest_texts(
                state.history.digest,
                lambda messages: load_message_texts(
                    [one.id for one in messages], [texts[one.number - 1] for one in messages]
                ),
            )
        except _DECODING_ERRORS:
            return None
        placed_library = {name: system_library[at] for name, at in shelved.items()}
        unpacked = replace(
            state,
            library=library,
            system_library=placed_library,
            # Only the identity matters: an empty dict means "rendered from an older library".
            library_rendered_from=None if owns is None else library if owns else {},
            placed=placed_library
            if encoded_placed is None
            else {name: system_library[at] for name, at in encoded_placed.items()},
            history=replace(state.history, turns=SharedSequence(turns), digest=digest),
        )
        # A question with attachments is counted by its pieces, and the typed text is one of them.
        typed = [turns[at].question.segment for at in talk[5]]
        return unpacked, dict(zip(pieces, weights, strict=False)) | {one.text: one.tokens for one in typed}


def _collect_state_inputs(
    message_ids: Sequence[str], active_compactions: ActiveCompactions, *, defaults: TurnSettings, tokenizer: Tokenizer
) -> _StateInputs:
    """Return the inputs of a state beside its messages."""
    before = active_compactions.by_next_question
    asked = [name for name in message_ids[::2] if name in before] if before else []
    receipts = tuple([(name, event.id) for name in asked for event in before[name]])
    return CHECKPOINT_FORMAT, RENDERER_VERSION, tokenizer.name, tokenizer.count_factor, defaults, receipts


def encode_state_checkpoint(
    state: PromptState,
    message_ids: Sequence[str],
    texts: Sequence[str | TextsById],
    *,
    active_compactions: ActiveCompactions,
    defaults: TurnSettings,
    tokenizer: Tokenizer,
) -> tuple[bytes, Mapping[str, str]]:
    """Encode a state between two turns; return the bytes and the blocks that they name by hash.

    ``message_ids`` and ``texts`` are the messages of the branch. The bytes are empty if the state would not decode to
    an equal one, or if they would be too large.
    """
    end, shelves = 2 * state.turn_count, CheckpointTables()
    if (
        state.waits_for_reply
        or state.tokenizer_name != tokenizer.name
        or not end
        or message_ids[end - 1 : end] != (state.head,)
    ):
        return _NO_CHECKPOINT
    inputs = _collect_state_inputs(message_ids[:end], active_compactions, defaults=defaults, tokenizer=tokenizer)
    try:
        body = _encode_body(state, message_ids[:end], texts[:end], tables=shelves, tokenizer=tokenizer)
        data = b"" if body is None else _ENCODER.encode((inputs, state.turn_count, state.head, body))
    except _DECODING_ERRORS:
        return _NO_CHECKPOINT
    return (data, shelves.blocks) if data and len(data) <= _MAX_CHECKPOINT_BYTES else _NO_CHECKPOINT


def _encode_body(
    state: PromptState,
    message_ids: Sequence[str],
    texts: Sequence[str | TextsById],
    *,
    tables: CheckpointTables,
    tokenizer: Tokenizer,
) -> _CheckpointBody | None:
    # Keyed by the encoded form: comparing placed artifacts could load texts that have not been read.
    stood: dict[EncodedPlacement, int] = {}
    encoded_library, encoded_placed = (
        _number_placed_artifacts(state.system_library, tables, stood),
        _number_placed_artifacts(state.placed, tables, stood),
    )
    if encoded_library is None or encoded_placed is None:
        return None
    known = {name: tables.encode_entry(entry) for name, entry in state.library.items()}
    talk = encode_history(state.history.turns[:], message_ids, texts, tables=tables)
    return (
        replace(
            state,
            library={},
            system_library={},
            library_rendered_from=None,
            placed={},
            last_prompt=None,
            compaction_step=None,
            kept_messages=None,
            cleared_from=None,
            index=None,
            cache_history=state.cache_history._replace(attachment_stats=dict(state.cache_history.attachment_stats)),
            history=replace(state.history, turns=SharedSequence(), digest=without_digest_texts(state.history.digest)),
        ),
        tuple(tables.stored_artifacts),
        tuple(tables.encoded_pieces),
        tuple([tokenizer.count(piece) for piece in tables.pieces]),
        tuple(stood),
        known,
        encoded_library,
        None if state.placed is state.system_library else encoded_placed,
        None if state.library_rendered_from is None else state.library_rendered_from is state.library,
        talk,
    )


def _number_placed_artifacts(
    placed: Mapping[str, PlacedArtifact], tables: CheckpointTables, placement_numbers: dict[EncodedPlacement, int]
) -> dict[str, int] | None:
    """Number the placed artifacts; None if one of them would not decode to an equal one."""
    numbers: dict[str, int] = {}
    for name, one in placed.items():
        kept = tables.encode_placed(one)
        if kept not in placement_numbers and decode_placed(kept, tables.artifacts, tables.pieces) != one:
            return None
        numbers[name] = placement_numbers.setdefault(kept, len(placement_numbers))
    return numbers


def full_text_message_ids(state: PromptState) -> set[str]:
    """Return the ids of the messages whose full original text the state uses."""
    messages = [one for turn in state.history.turns for one in (turn.question, turn.reply)]
    shown = {one.segment.id for one in messages if one.full_texts is None}
    return shown | {one.id for one in iter_digest_messages(state.history.digest) if not one.is_excerpt}


def decode_state_checkpoint(data: bytes) -> StateCheckpoint | None:
    """Read a checkpoint, or return None if the bytes are not a valid one."""
    try:
        inputs, turns, head, body = _DECODER.decode(data)
        return StateCheckpoint(inputs, turns=turns, head=head, body=body)
    except _DECODING_ERRORS:
        return None
