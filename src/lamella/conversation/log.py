"""The log of a conversation: reading branches from it and writing turns to it.

``ConversationLog`` is the log with its token counts and checkpoints. It reads a branch as far as it is needed: turns
covered by a checkpoint are not read again. ``TurnWriter`` writes the turns and replies of a prompt builder as events.
The other functions answer questions about a branch: its last turn, its title, its compactions, and which message a
name means.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, NoReturn

from msgspec import Struct

from lamella.conversation.adapters import AbandonedTurn, LastSentTurn
from lamella.conversation.backend import Backend
from lamella.conversation.checkpoints import EMPTY_BRANCH_CHECKPOINT, BranchCheckpoint, Checkpoints
from lamella.conversation.note_index import Citation, list_citation_hashes, read_citations
from lamella.conversation.past_turns import BranchHistory
from lamella.conversation.token_counts import TokenCountCache
from lamella.conversation.turn import ModelAnswer
from lamella.core.budget import Tokenizer
from lamella.core.log.branch import (
    branch_content_hashes,
    parse_message_time,
    placeholder_text_hashes,
    read_model_calls,
    read_receipts,
    read_turns_in_batches,
)
from lamella.core.log.call import ModelCall
from lamella.core.log.compactions import ActiveCompactions
from lamella.core.log.events.codec import (
    build_compaction_batch,
    build_question_batch,
    build_reply_batch,
    build_tool_calls_batch,
    build_tool_results_batch,
    decode_event,
    merge_batches,
)
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord, RenameEvent
from lamella.core.log.events.message import QuestionEvent, TurnOverrides, inherits_turn_settings
from lamella.core.log.log import FoldedLog
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.tree import MessageTree
from lamella.core.log.turn import LayoutMode, MessageAuthor, ReplyEvent, Turn, TurnSettings, compute_reply_id
from lamella.core.log.turn_records import (
    DECODING_ERRORS,
    PackedTurnRecords,
    TurnRecord,
    TurnRecordPart,
    branch_message_ids,
    damaged_record_error,
    list_branch_parts,
    message_ids_and_texts,
    split_records,
)
from lamella.core.messages import ModelReply, TextsById, ToolOutput
from lamella.core.prompt.checkpoint import decode_state_checkpoint, encode_state_checkpoint, full_text_message_ids
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import canonical_json, make_title
from lamella.core.values import replace
from lamella.errors import ConflictError, InvalidOperationError, ReplyOnOtherBranchError, StoreCorruptedError
from lamella.ports import Store

_TWO_TURNS = 2
_DEFAULT_TURN_SETTINGS = TurnSettings()


def get_last_sent_turn(records: Sequence[TurnRecord], log: FoldedLog) -> LastSentTurn:
    """Return what is known of the last turn of a branch, and of the last request on any branch."""
    asked = log.nodes.get(log.last_sent[0])
    question = None if asked is None else asked.question_event
    return LastSentTurn(
        asked_at=parse_message_time(records[-1].message) if records else None,
        sent_at=None if asked is None else parse_message_time(asked),
        response_id=_get_last_response_id(records),
        seconds_since_previous_turn=_seconds_since_previous_turn(records),
        fingerprint=None if question is None else question.imprint,
        keep_alive_times=_keep_alive_times(records, log),
    )


def _keep_alive_times(records: Sequence[TurnRecord], log: FoldedLog) -> tuple[datetime, ...]:
    """Return when the last request was sent again after its answer to keep its cache entry."""
    reply = records[-1].reply if records else None
    after = () if reply is None else log.auxiliary_calls.get(reply.id, ())
    return tuple(datetime.fromisoformat(one.started) for one in after if one.started)


def _get_last_response_id(records: Sequence[TurnRecord]) -> str | None:
    """Return the provider's id of the last answer; questions without an answer are skipped."""
    for turn in reversed(records):
        calls = read_model_calls(turn)
        if calls or (turn.reply is not None and turn.reply.text):
            return calls[-1].id if calls else None
    return None


def _seconds_since_previous_turn(records: Sequence[TurnRecord]) -> float | None:
    """Return the seconds between the pending turn and the one before it; None if no turn is pending."""
    if len(records) < _TWO_TURNS or records[-1].reply is not None:
        return None
    earlier, later = parse_message_time(records[-2].message), parse_message_time(records[-1].message)
    return (later - earlier).total_seconds() if earlier and later else None


def last_model(records: Sequence[TurnRecord]) -> str | None:
    """Return the current model of a branch from its events alone, without reading any content."""
    for part in reversed(list_branch_parts(records)):
        # Turns in a batch contain only text and never name a model.
        named = (
            part
            if isinstance(part, PackedTurnRecords)
            else part.message.event
            if isinstance(part, TurnRecord)
            else None
        )
        if isinstance(named, PackedTurnRecords | QuestionEvent) and named.model:
            return named.model
    return None


def last_runner(log: FoldedLog) -> str | None:
    """Return the runner of the last question of the active branch; None if nothing was asked yet."""
    last = log.nodes.get(log.head)
    if last is None:
        return None
    asked = log.nodes[last.event.parent].event if isinstance(last.event, ReplyEvent) else last.event
    # This runs for nearly every turn. Resolving all turn settings for one field would take longer.
    given = getattr(asked, "runner", None)
    return given if isinstance(given, str) else _DEFAULT_TURN_SETTINGS.runner


def last_layout(log: FoldedLog) -> LayoutMode | None:
    """Return the layout of the last turn; None if nothing was asked or the turn leaves its settings open."""
    last = log.nodes.get(log.head) or next(iter(log.nodes.values()), None)
    if last is None:
        return None
    asked = log.nodes[last.event.parent].event if isinstance(last.event, ReplyEvent) else last.event
    if isinstance(given := getattr(asked, "layout", None), LayoutMode):
        return given
    # Imported turns leave their settings open. The first event formats omitted values that were the default then.
    return None if inherits_turn_settings(asked) else _DEFAULT_TURN_SETTINGS.layout


def empty_reply_id(log: FoldedLog, message: str) -> str:
    """Return the id that an empty reply to a question has; an empty string if the message is no question."""
    node = log.nodes.get(message)
    if node is None or not isinstance(node.event, QuestionEvent):
        return ""
    return compute_reply_id(log.conversation, parent=node.event.id, text="")


def list_records_up_to_message(log: FoldedLog, message: str) -> Sequence[TurnRecord]:
    """Return the turns before a turn that is asked after ``message``.

    If that message is a question with an empty reply, the reply is included.
    """
    empty = empty_reply_id(log, message)
    return log.branch_records(empty if empty in log.nodes else message)


def get_inherited_overrides(log: FoldedLog) -> TurnOverrides:
    """Return the overrides for the next turn if an open question is abandoned once more.

    They include what that question sets now, which may differ from when it was abandoned before.
    """
    asked = log.branch_records()[-1].message.event
    return log.overrides.merged_over(asked.overrides) if isinstance(asked, QuestionEvent) else log.overrides


# Erased attachments, the question of a message, and errors for missing messages.


def erased_artifact_ids(records: Iterable[TurnRecord]) -> frozenset[str]:
    """Return the ids of artifacts of a branch that were erased after they were attached."""
    nodes = [turn.message for turn in records if turn.message.erased]
    return frozenset(
        ref.id
        for node in nodes
        if node.question_event is not None
        for ref in node.question_event.artifacts()
        if ref.hash in node.erased
    )


_MESSAGE_ALIAS = re.compile(r"(?P<author>turn|reply):(?P<number>\d{1,9})")


def resolve_message_alias(log: FoldedLog, message: str) -> str:
    """Return the id of a message that is named by its place on the branch, as in ``turn:3`` or ``reply:3``.

    Anything else is returned unchanged: it is an id already, or names no message.
    """
    alias = _MESSAGE_ALIAS.fullmatch(message)
    if alias is None or message in log.nodes:
        return message
    records, number = log.branch_records(), int(alias["number"])
    if not 1 <= number <= len(records):
        return message
    record = records[number - 1]
    node = record.message if alias["author"] == "turn" else record.reply
    return message if node is None else node.id


def get_question_id(log: FoldedLog, message: str, *, conversation_name: str) -> str:
    """Return the id of the question that a message is, or that it answers.

    Raises ``InvalidOperationError`` if there is no such message. ``name`` is the name of the conversation.
    """
    node = log.nodes.get(message)
    if node is None:
        raise message_not_found_error(log, message, conversation_name=conversation_name)
    return node.id if node.role is MessageAuthor.USER else node.parent


def message_not_found_error(log: FoldedLog, message: str, *, conversation_name: str) -> InvalidOperationError:
    """Return the error for a message that does not exist, is on another branch, or is not a question."""
    node = log.nodes.get(message)
    if node is None:
        return InvalidOperationError(
            f"The conversation {conversation_name} has no such message: {canonical_json(message)}.",
            hint=lambda hints: f"See its messages with {hints.show_chat_hint(conversation_name)}.",
        )
    if message in branch_message_ids(log.branch_records()) and node.role is MessageAuthor.REPLY:
        return InvalidOperationError(
            f"The message {message} of {conversation_name} is an answer.",
            hint=f"Name its question: {node.parent}, or regenerate it.",
        )
    head = next(
        (head for head in log.list_branch_heads() if message in branch_message_ids(log.branch_records(head))), message
    )
    return InvalidOperationError(
        f"The message {message} of {conversation_name} is on another branch.",
        hint=lambda hints: f"Go there first: {hints.switch_branch_hint(conversation_name, head)}.",
    )


# Compactions and undos, each with the message it came after.

_MARKER_KINDS = (EventKind.COMPACTION, EventKind.UNDO)


class CompactionMarker(Struct, frozen=True, kw_only=True):
    """A compaction or an undo after a message.

    A compaction has its ``receipt``; ``undone`` says that it was undone later. An undo has the ids of the receipts
    that it ``voided``.
    """

    message: str
    receipt: CompactionReceipt | None = None
    undone: bool = False
    voided: tuple[str, ...] = ()


def list_compactions_and_undos(conversation_key: str, records: Sequence[EventRecord]) -> tuple[CompactionMarker, ...]:
    """Return every compaction and undo of a conversation, in the order in which they happened."""
    log = FoldedLog(conversation_key)
    markers: list[CompactionMarker] = []
    start = 0
    for end, record in enumerate(records):
        if record.kind in _MARKER_KINDS:
            log.extend(records[start:end])
            before = _active_receipt_ids(log)
            log.extend((record,))
            start = end + 1
            if record.kind is EventKind.COMPACTION:
                markers.append(_build_marker(record))
            else:
                markers = _with_undo_marker(log, markers, before)
    return tuple(markers)


def _build_marker(record: EventRecord) -> CompactionMarker:
    event = decode_event(record)
    assert isinstance(event, CompactionEvent)
    (receipt,) = read_receipts([event], {})
    return CompactionMarker(message=receipt.parent, receipt=receipt)


def _with_undo_marker(
    log: FoldedLog, markers: Sequence[CompactionMarker], active_before: Sequence[str]
) -> list[CompactionMarker]:
    """Return the markers with one more for an undo, and with the compactions it voided marked as undone."""
    voided = tuple(name for name in active_before if name not in _active_receipt_ids(log))
    marked = [
        replace(mark, undone=True) if mark.receipt is not None and mark.receipt.id in voided else mark
        for mark in markers
    ]
    return [*marked, CompactionMarker(message=log.head, voided=voided)]


def _active_receipt_ids(log: FoldedLog) -> Sequence[str]:
    return [event.id for event in log.active_compactions(log.branch_records()).events]


# Titles: the last one set, otherwise one made from the first question.


def get_title(log: FoldedLog) -> str:
    """Return the title of a conversation; empty if it has neither a title nor a message."""
    if log.title:
        return log.title
    first = next(iter(log.nodes.values()), None)
    return "" if first is None else make_title(first.typed)


def find_title(records: Sequence[EventRecord]) -> str | None:
    """Return the title that the first events of a conversation define, or None."""
    given = find_explicit_title(records)
    first = next((record for record in records if record.kind is EventKind.MESSAGE), None)
    if given or first is None:
        return given
    event = _decode_title_event(first)
    assert isinstance(event, QuestionEvent)
    return make_title(event.text if event.typed is None else event.typed)


def find_explicit_title(records: Sequence[EventRecord]) -> str | None:
    """Return the title that these events set, or None; the listed title then stays as it is."""
    last = next((record for record in reversed(records) if record.kind is EventKind.RENAME), None)
    event = None if last is None else _decode_title_event(last)
    return event.title if isinstance(event, RenameEvent) else None


def _decode_title_event(record: EventRecord) -> object:
    try:
        return decode_event(record)
    except DECODING_ERRORS as error:
        raise damaged_record_error("A title", error) from error


# The log, and the writer of turns.


class ConversationLog:
    """The log of one conversation in a store: its events, token counts, checkpoints and contents.

    It is opened by name or key. A conversation that does not exist starts under that name with a generated key.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._store = backend.store
        found = self._store.find_conversation(name)
        self.name, key = (name, backend.make_key(name)) if found is None else (found.name, found.conversation)
        if found is None and key != name:
            # The key was generated just now, so the store has nothing to read.
            self._start_log(key)
        else:
            self._restore_log(key)
            self._apply_records(self._store.load(key, after=self.log.version))

    def _start_log(self, key: str) -> None:
        self._checkpoints = Checkpoints(self._store, key, events_per_checkpoint=self._backend.checkpoint_every)
        self.log, self._is_incomplete = FoldedLog(key), False
        # The encoded state of the branch that was active in the newest checkpoint.
        self._checkpoint_state = b""
        self.token_counts = TokenCountCache(self._backend.adapters.counter)

    def _restore_log(self, key: str) -> None:
        self._start_log(key)
        restored = self._checkpoints.restore()
        self.log, self._checkpoint_state = restored.log, restored.state
        self.token_counts.start_from(restored.encoded_other_token_counts, restored.message_token_counts)

    def reload(self) -> None:
        """Load what other processes wrote since.

        If another process started a conversation under this name first, that one is opened.
        """
        # The last fold failed halfway, so the log in memory is incomplete.
        if self._is_incomplete:
            self._restore_log(self.log.conversation)
        if not self.log.version:
            begun = self._store.find_conversation(self.name)
            if begun is not None and begun.conversation != self.log.conversation:
                self._restore_log(begun.conversation)
        self._apply_records(self._store.load(self.log.conversation, after=self.log.version))

    def append(
        self,
        batch: EventBatch,
        *,
        title: str | None = None,
        encode_checkpoint: Callable[[], BranchCheckpoint] = lambda: EMPTY_BRANCH_CHECKPOINT,
    ) -> None:
        """Write events; new token counts are stored with the last one.

        Raises ``ConflictError`` if another process wrote first. ``encode_checkpoint`` encodes the active branch for a
        checkpoint that may be due.
        """
        if title is None and not self.log.nodes and not self.log.title:
            title = find_title(batch.records)
        counts = self.token_counts.encode_new_counts()
        last = replace(batch.records[-1], counts=counts)
        counted = replace(batch, records=(*batch.records[:-1], last))
        self._store.append(self.log.conversation, counted, expected=self.log.version, title=title, name=self.name)
        self._extend_log(counted.records)
        self.token_counts.mark_saved(counts)
        self._checkpoints.collect_token_counts(counted.records)
        self._checkpoints.save_if_due(self.log, encode_checkpoint)

    def read_contents(self, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents with these hashes that the conversation has."""
        return self._store.read_contents(self.log.conversation, hashes) if hashes else {}

    def release_checkpoint_blocks(self) -> Mapping[str, str]:
        """Return the blocks that came with the checkpoints, and release them."""
        blocks, self._checkpoints.blocks = self._checkpoints.blocks, {}
        return blocks

    def read_texts(self, hashes: Collection[str]) -> Mapping[str, str]:
        """Return the texts of contents that the conversation had when it was loaded.

        Raises ``ConflictError`` if one is missing and another process wrote since, otherwise ``StoreCorruptedError``.
        """
        key, known = self.log.conversation, self.log.version
        found = self._store.read_contents(key, list(hashes))
        missing = next((name for name in hashes if name not in found), None)
        if missing is not None:
            more = len(self._store.load(key, after=known))
            if more:
                raise ConflictError(conversation_key=self.name, expected=known, found=known + more)
            raise StoreCorruptedError(
                f"The content {missing} of {self.name} is missing.",
                hint=lambda hints: f"Use {hints.verify_store_hint()} to see what is damaged.",
            )
        return {name: data.decode() for name, data in found.items()}

    def append_without_conflict_check(self, batch: EventBatch) -> None:
        """Append events that conflict with nothing, after the events of other processes; the log is not updated."""
        key, known = self.log.conversation, self.log.version
        while True:
            behind = len(self._store.load(key, after=known))
            if not known + behind:
                # Another process started a conversation under this name, so there is none with this key.
                return
            try:
                self._store.append(key, batch, expected=known + behind)
            except ConflictError:
                continue
            return

    def _extend_log(self, records: Sequence[EventRecord]) -> None:
        # Folding an event may read an old message from the store. If that fails halfway, the flag stays set and
        # ``reload`` opens the log again.
        self._is_incomplete = True
        self.log.extend(records)
        self._is_incomplete = False

    def _apply_records(self, records: Sequence[EventRecord]) -> None:
        self._extend_log(records)
        self.token_counts.load_counts([record.counts for record in records])
        self._checkpoints.collect_token_counts(records)

    def load_history(
        self,
        records: Sequence[TurnRecord],
        compactions: ActiveCompactions,
        *,
        defaults: TurnSettings,
        tokenizer: Tokenizer,
        find_time: Callable[[str], str | None],
    ) -> BranchHistory:
        """Return the history of a branch, starting from the newest checkpoint if that is valid for this branch.

        ``defaults`` are the turn settings for turns that store none. Turns that the checkpoint covers are not read
        until they are needed.
        """
        if not records:
            return BranchHistory(find_time=find_time)
        names, texts = message_ids_and_texts(records)
        state = self._load_state(names, texts, compactions, defaults=defaults, tokenizer=tokenizer)
        covered, rest = split_records(records, 0 if state is None else state.turn_count)
        contents, since = self._load_contents(rest, compactions), compactions.after_last_message
        return BranchHistory(
            read_turns_in_batches(rest, contents, compactions, defaults=defaults),
            path=names,
            receipts=read_receipts(since, contents) if since else (),
            find_time=find_time,
            undone_results=compactions.undone_results,
            checkpoint=None
            if state is None
            else (
                state,
                lambda: read_turns_in_batches(
                    covered, self._load_contents(covered, compactions), compactions, defaults=defaults
                ),
            ),
        )

    def _load_contents(self, records: Sequence[TurnRecordPart], compactions: ActiveCompactions) -> Mapping[str, bytes]:
        """Return the contents of some turns, of the compactions before them, and of those since the last turn."""
        before = compactions.by_next_question
        asked = branch_message_ids(records) if before else ()
        own = ActiveCompactions(
            by_next_question={name: before[name] for name in asked if name in before},
            after_last_message=compactions.after_last_message,
        )
        return self.read_contents((*branch_content_hashes(records), *placeholder_text_hashes(own)))

    def _load_state(
        self,
        names: Sequence[str],
        texts: Sequence[str | TextsById],
        compactions: ActiveCompactions,
        *,
        defaults: TurnSettings,
        tokenizer: Tokenizer,
    ) -> PromptState | None:
        """Return the state of the newest checkpoint, or None if it is not valid for this branch.

        It is not valid if one of its messages was written again since, or asked again with other settings.
        """
        # Taken in any case, so that they are released: there is no other user.
        blocks = self.release_checkpoint_blocks()
        nodes, asked = self.log.nodes, self.log.question_versions
        is_unchanged = isinstance(nodes, MessageTree) and nodes.is_unchanged and asked.keys().isdisjoint(names)
        packed = decode_state_checkpoint(self._checkpoint_state) if self._checkpoint_state and is_unchanged else None
        if packed is None or not packed.is_valid_for(names, compactions, defaults=defaults, tokenizer=tokenizer):
            return None
        contents = self.read_contents(packed.required_hashes(blocks))
        # Texts of the state that are not loaded yet refer to this log. The garbage collector does not track the structs
        # that hold them (``gc=False``), so the log must not refer to the conversation: that cycle would never be freed.
        decoded = packed.decode(names, texts, contents, blocks=blocks, load_texts=self.read_texts)
        if decoded is None:
            return None
        state, tokens = decoded
        self.token_counts.add_counts(tokenizer, tokens)
        return state


class TurnWriter:
    """Writes the turns and replies of one prompt builder as events.

    ``name`` is the name of the conversation for messages. ``edited_message_id`` is the message that the first turn
    replaces. ``abandoned_message_id`` is a question that the first turn abandons again with an empty reply.
    """

    def __init__(
        self,
        log: FoldedLog,
        *,
        name: str,
        append: Callable[[EventBatch], None],
        reload: Callable[[], None],
        format_time: Callable[[datetime | None], str],
        edited_message_id: str | None = None,
        abandoned_message_id: str | None = None,
    ) -> None:
        self._log = log
        self._name = name
        self._append = append
        self._reload = reload
        self._format_time = format_time
        self._edited_message_id = edited_message_id
        self._abandoned_message_id = abandoned_message_id

    def write_turn(
        self,
        turn: Turn,
        *,
        message_id: str,
        parent_id: str,
        abandoned: AbandonedTurn | None,
        receipt: CompactionReceipt | None,
        at: datetime | None,
    ) -> None:
        """Write a turn in one append with everything it needs.

        This includes an empty reply to an unanswered question, "not made" outputs for its pending calls, and a
        compaction.
        """
        moment = self._format_time(at)
        parts: list[EventBatch] = []
        answers = abandoned.id if abandoned is not None else self._abandoned_message_id
        if abandoned is not None and abandoned.placeholder_outputs:
            parts.append(build_tool_results_batch(abandoned.placeholder_outputs, parent=abandoned.id, timestamp=moment))
        if answers is not None:
            parts.append(build_reply_batch("", message_id=parent_id, parent=answers, timestamp=moment))
        if receipt is not None:
            parts.append(build_compaction_batch(receipt, timestamp=moment))
        parts.append(
            build_question_batch(
                turn, message_id=message_id, parent=parent_id, timestamp=moment, edited_message=self._edited_message_id
            )
        )
        self._append(merge_batches(*parts))
        self._edited_message_id = self._abandoned_message_id = None

    def write_receipt(
        self, receipt: CompactionReceipt, *, at: datetime | None, before_message_id: str | None = None
    ) -> None:
        """Write a compaction between two turns, or before a turn that was asked already."""
        self._append(build_compaction_batch(receipt, timestamp=self._format_time(at), resent_message=before_message_id))

    def write_tool_calls(self, reply: ModelReply, *, parent_id: str, at: datetime | None, call: ModelCall) -> None:
        """Write the tool calls of a reply with the model call that produced them.

        If the conversation continued meanwhile, the text of the reply is stored on its own branch.
        """
        moment = self._format_time(at)
        batch = build_tool_calls_batch(reply, parent=parent_id, timestamp=moment, model_calls=(call,))
        if not self._append_if_question_is_open(batch, parent_id):
            reply_id = compute_reply_id(self._log.conversation, parent=parent_id, text=reply.text)
            self._store_answer_on_own_branch(
                ModelAnswer(reply=reply), message_id=reply_id, parent_id=parent_id, at=moment, calls=(call,)
            )

    def write_results(self, outputs: Sequence[ToolOutput], *, parent_id: str, at: datetime | None) -> None:
        """Write the outputs of tools; raises ``ConflictError`` if the turn is no longer open."""
        known = self._log.version
        if not self._append_if_question_is_open(
            build_tool_results_batch(outputs, parent=parent_id, timestamp=self._format_time(at)), parent_id
        ):
            raise ConflictError(conversation_key=self._name, expected=known, found=self._log.version)

    def make_reply_id(self, parent_id: str, text: str) -> tuple[str, str]:
        """Return the id of a reply to the last turn and the ``rounds_hash`` of its event, which is mostly empty."""
        rounds_hash = self._log.find_rounds_hash(parent_id, text)
        return (
            compute_reply_id(self._log.conversation, parent=parent_id, text=text, rounds_hash=rounds_hash),
            rounds_hash,
        )

    def write_reply(
        self,
        answer: ModelAnswer,
        *,
        message_id: str,
        parent_id: str,
        at: datetime | None,
        calls: Sequence[ModelCall] = (),
        rounds_hash: str = "",
    ) -> None:
        """Write a reply to the last turn with the model calls that produced it.

        If the conversation continued meanwhile, the reply is stored on its own branch.
        """
        moment, text, sources = self._format_time(at), answer.reply.text, answer.citations
        batch = build_reply_batch(
            text,
            message_id=message_id,
            parent=parent_id,
            timestamp=moment,
            model_calls=calls,
            sources=sources,
            rounds_hash=rounds_hash,
        )
        if not self._append_if_question_is_open(batch, parent_id):
            # On a branch of its own the reply has the rounds that the question was left with.
            own_id = compute_reply_id(self._log.conversation, parent=parent_id, text=text)
            self._store_answer_on_own_branch(answer, message_id=own_id, parent_id=parent_id, at=moment, calls=calls)

    def _append_if_question_is_open(self, batch: EventBatch, question_id: str) -> bool:
        """Append an answer to a question while the question is still open; other events do not matter.

        Returns False if the question is no longer open: the answer would then belong to another turn, or could not be
        read.
        """
        rounds = self._log.open_rounds.get(question_id)
        while self._log.head == question_id and self._log.open_rounds.get(question_id) == rounds:
            try:
                self._append(batch)
            except ConflictError:
                self._reload()
            else:
                return True
        return False

    def _store_answer_on_own_branch(
        self, answer: ModelAnswer, *, message_id: str, parent_id: str, at: str, calls: Sequence[ModelCall]
    ) -> NoReturn:
        """Store an answer on its own branch after its question, and raise ``ReplyOnOtherBranchError`` with its id."""
        text, sources = answer.reply.text, answer.citations
        batch = build_reply_batch(
            text,
            message_id=message_id,
            parent=parent_id,
            timestamp=at,
            model_calls=calls,
            on_own_branch=True,
            sources=sources,
        )
        while True:
            try:
                self._append(batch)
            except ConflictError:
                self._reload()
            else:
                raise ReplyOnOtherBranchError(conversation_key=self._name, reply_id=message_id)


def encode_checkpoint(
    log: FoldedLog, state: PromptState, *, defaults: TurnSettings, tokenizer: Tokenizer
) -> BranchCheckpoint:
    """Encode a state of the active branch with the blocks it refers to; empty if it belongs to another branch."""
    records = log.branch_records()
    names, texts = message_ids_and_texts(records)
    if not log.question_versions.keys().isdisjoint(names):
        return EMPTY_BRANCH_CHECKPOINT
    data, blocks = encode_state_checkpoint(
        state, names, texts, active_compactions=log.active_compactions(records), defaults=defaults, tokenizer=tokenizer
    )
    return BranchCheckpoint(data, blocks, full_text_message_ids(state)) if data else EMPTY_BRANCH_CHECKPOINT


# Messages of a branch with everything needed to show them: tool results, sources, compactions.


class BranchMessages(NamedTuple):
    """The turns of a branch; ``contents`` has the tool results, ``sources`` the citations of each reply."""

    path: Sequence[TurnRecord]
    contents: Mapping[str, bytes]
    sources: Sequence[Sequence[Citation]]
    markers: Sequence[CompactionMarker]


def load_branch_messages(
    store: Store, conversation_key: str, path: Sequence[TurnRecord], *, markers: Sequence[CompactionMarker] = ()
) -> BranchMessages:
    """Read the contents that a branch refers to and return it with them."""
    named = [
        name
        for record in path
        for one in (record.open_rounds if record.reply is None else record.reply.rounds)
        for name in one.iter_content_hashes()
    ]
    named += [name for record in path for name in list_citation_hashes(record)]
    contents = store.read_contents(conversation_key, named) if named else {}
    return BranchMessages(path, contents, [read_citations(record, contents) for record in path], markers)
