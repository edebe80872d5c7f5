"""Operations on whole conversations of a store: export, import, search, verify, erase, copy and fork.

``ConversationRepository`` has the operations on one store, ``copy_store`` copies all conversations into another one,
and ``copy_branch_into_new_conversation`` copies a branch up to a message under another name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct

from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.commands import build_command_batch, changes_nothing, list_content_hashes, merge_commands
from lamella.conversation.inspection import StoreInspector, build_log
from lamella.conversation.log import (
    find_explicit_title,
    find_title,
    get_title,
    list_records_up_to_message,
    message_not_found_error,
    resolve_message_alias,
)
from lamella.conversation.names import (
    conversation_not_found_error,
    find_conversation_by_name,
    find_tombstone,
    unused_name,
)
from lamella.conversation.past_turns import reply_from_round
from lamella.conversation.settings import with_last_layout
from lamella.conversation.turn import TurnRequest
from lamella.core.log.branch import (
    auxiliary_events_by_question,
    branch_content_hashes,
    placeholder_text_hashes,
    read_pending_reply,
    read_receipts,
    read_turns,
)
from lamella.core.log.events.artifact import ContentsByHash
from lamella.core.log.events.call import AuxiliaryCallEvent, to_model_call
from lamella.core.log.events.codec import (
    build_compaction_batch,
    build_erasure_batch,
    build_event_batch,
    build_question_batch,
    build_reply_batch,
    build_tool_calls_batch,
    build_tool_results_batch,
    decode_event,
    encode_event,
    merge_batches,
)
from lamella.core.log.events.compaction import CompactionEvent, StageEvent, UndoEvent, read_receipt
from lamella.core.log.events.kinds import (
    Event,
    EventBatch,
    EventKind,
    EventRecord,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SwitchEvent,
    artifact_content_hashes,
    summary_content_hashes,
)
from lamella.core.log.events.message import NO_OVERRIDES, TurnOverrides
from lamella.core.log.log import FoldedLog
from lamella.core.log.receipts import CompactionReceipt, make_receipt
from lamella.core.log.turn import MessageAuthor, ReplyEvent, SystemParts, Turn, compute_reply_id, question_id
from lamella.core.log.turn_records import (
    TurnRecord,
    branch_message_ids,
    damaged_record_error,
    round_result_ids,
    tool_result_hashes,
)
from lamella.core.text.content import canonical_json, normalize_line_ends
from lamella.core.values import replace
from lamella.errors import ConversationErasedError, HistoryConflictError, InvalidOperationError, StoreCorruptedError
from lamella.ports import Clock, ConversationExport, ConversationListItem, Store, StoreProblem, StoreStats

_EXCERPT_CONTEXT_CHARS = 60
_WHITESPACE = re.compile(r"\s+")


# Settings that an imported conversation may bring along: they shape the text of requests, and models are asked about
# when they are used. All others decide cost, tools, files or where data goes, so the user sets them by name.
_IMPORTED_SETTINGS = frozenset(
    {
        "model",
        "summarizer",
        "profile",
        "window",
        "reserve",
        "layout",
        "carry_forward",
        "history",
        "history_turns",
        "warn",
        "target",
        "trigger",
        "hard",
        "compaction",
        "image_notes",
        "system",
        "instructions",
        "temperature",
        "reasoning_effort",
        "attachments",
        "linger",
        "cache_marks",
        "tool_output",
        "recall_hint",
    }
)
# Values that switch nothing on.
_NO_VALUE = object()
_HARMLESS_VALUES: Mapping[str, object] = {"runner": "chat", "keep_alive": 0, "cache_storage": 0, "memory": "off"}


def _list_withheld_settings(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings of an archive that take effect only after the user has set them by name."""
    return {
        name: value
        for name, value in settings.items()
        if value is not None and name not in _IMPORTED_SETTINGS and value != _HARMLESS_VALUES.get(name, _NO_VALUE)
    }


def _compute_settings_after_events(records: Iterable[EventRecord]) -> Mapping[str, object]:
    """Return the settings that events leave a conversation with."""
    settings: dict[str, object] = {}
    for record in records:
        if record.kind is EventKind.SETTINGS:
            event = decode_event(record)
            assert isinstance(event, SettingsEvent)
            settings.update(event.values)
    return settings


def _without_withheld_setting_events(records: Iterable[EventRecord]) -> list[EventRecord]:
    """Return the events without those that an import added to withhold settings."""
    return [one for one in records if one.kind is not EventKind.SETTINGS or not _withholds_settings(one)]


def _withholds_settings(record: EventRecord) -> bool:
    event = decode_event(record)
    assert isinstance(event, SettingsEvent)
    return bool(event.values) and all(
        value is None and name not in _IMPORTED_SETTINGS for name, value in event.values.items()
    )


class ImportOutcome(StrEnum):
    """The outcome of importing a conversation."""

    NEW = "new"
    EXTENDED = "extended"
    SAME = "same"
    OLDER = "older"


class MessageHit(Struct, frozen=True, kw_only=True):
    """A message that a search found, with its conversation, its author and an excerpt.

    ``turn`` is the number of its turn on the active branch; None for a message of another branch.
    """

    conversation: str
    name: str
    title: str
    message: str
    role: MessageAuthor
    excerpt: str
    turn: int | None = None


class ConversationRepository:
    """All conversations of a store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        forget_conversation: Callable[[str], object] | None = None,
        find_request_problems: Callable[[str], Iterator[StoreProblem]] | None = None,
    ) -> None:
        """Open the conversations of a store.

        ``forget_conversation`` removes data about a conversation that is stored elsewhere. It runs before an erasure.
        ``find_request_problems`` compares the requests of a conversation with their stored hashes.
        """
        self._forget_conversation = forget_conversation
        self._store = store
        self._clock = clock
        self._inspector = StoreInspector(store, find_request_problems=find_request_problems)

    def resolve_conversation(self, name_or_key: str, *, match_prefix: bool = True) -> ConversationListItem:
        """Return the conversation with this name, key or title, or with this unique beginning.

        Raises ``ConversationErasedError`` if it was erased, and ``InvalidOperationError`` if there is none.
        """
        found = find_conversation_by_name(self._store, name_or_key, match_prefix=match_prefix)
        if found is not None:
            return found
        erased = find_tombstone(self._store, name_or_key)
        if erased is not None:
            raise ConversationErasedError(
                f"The conversation {name_or_key} was erased at {erased.erased_at}.",
                hint="Begin a new one; the name it had is free.",
            )
        raise conversation_not_found_error(name_or_key)

    def get_conversation_or_tombstone(self, name_or_key: str) -> ConversationListItem:
        """Return the conversation to erase from, or its tombstone, so that an interrupted erasure can be finished."""
        found = find_conversation_by_name(self._store, name_or_key, match_prefix=False) or find_tombstone(
            self._store, name_or_key
        )
        if found is None:
            raise conversation_not_found_error(name_or_key)
        return found

    def resolve_erased_key(self, name_or_key: str) -> str:
        """Return the key of the tombstone, or of the conversation in which something was erased.

        Unknown words are returned as a key: verifying that key then reports that nothing was erased.
        """
        tombstone = find_tombstone(self._store, name_or_key)
        if tombstone is not None and tombstone.conversation == name_or_key:
            return name_or_key
        found = find_conversation_by_name(self._store, name_or_key, match_prefix=False) or tombstone
        return name_or_key if found is None else found.conversation

    def conversation_name(self, conversation_key: str) -> str:
        """Return the name of a conversation by its key."""
        found = self._store.find_conversation(conversation_key)
        if found is None or found.conversation == conversation_key:
            return conversation_key if found is None else found.name
        # Another conversation has this key as its name.
        return next(listed.name for listed in self.list_conversations() if listed.conversation == conversation_key)

    def load_log(self, conversation_key: str) -> FoldedLog:
        """Return the event log of a conversation; raises ``InvalidOperationError`` if there is none."""
        return self._load(conversation_key)[1]

    def load_log_with_message(self, conversation_key: str, message: str) -> tuple[FoldedLog, str]:
        """Return the event log of a conversation and a message's id, also for names such as ``turn:3``.

        Raises ``InvalidOperationError`` if the conversation lacks the message.
        """
        log = self.load_log(conversation_key)
        found = resolve_message_alias(log, message)
        if found not in log.nodes:
            raise message_not_found_error(log, message, conversation_name=self.conversation_name(conversation_key))
        return log, found

    def _load(self, conversation_key: str) -> tuple[Sequence[EventRecord], FoldedLog]:
        """Return the events of a conversation and the log they fold to."""
        records = self._store.load(conversation_key)
        return records, build_log(conversation_key, records)

    def export_conversation(self, conversation_key: str) -> ConversationExport:
        """Export a whole conversation with all its contents."""
        records, log = self._load(conversation_key)
        hashes = tuple(dict.fromkeys(name for record in records for name in record.contents))
        name = self.conversation_name(conversation_key)
        return ConversationExport(
            conversation_key=conversation_key,
            name=None if name == conversation_key else name,
            title=get_title(log),
            created=log.created,
            records=tuple(records),
            contents=self._store.read_contents(conversation_key, hashes),
        )

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents with these hashes that a conversation already has here."""
        return self._store.read_contents(conversation_key, hashes)

    def is_erased(self, conversation_key: str) -> bool:
        """Return whether the store had a conversation with this key and erased it."""
        found = find_tombstone(self._store, conversation_key)
        return found is not None and found.conversation == conversation_key

    def list_import_warnings(self, export: ConversationExport) -> Sequence[str]:
        """Return a warning for each setting that an import of this archive would not use."""
        there = _without_withheld_setting_events(self._store.load(export.conversation_key))
        new = _without_withheld_setting_events(export.records)[len(there) :]
        return [
            f"The archive sets {name} to {canonical_json(value)}, which is not used until you set {name} yourself."
            for name, value in sorted(_list_withheld_settings(_compute_settings_after_events(new)).items())
        ]

    def import_conversation(self, export: ConversationExport, *, is_own: bool = False) -> ImportOutcome:
        """Import a conversation by its key.

        An existing conversation is extended, never duplicated or cut. A new one keeps its name, with a number if the
        name is taken. Settings of an archive that decide cost, tools or where data goes are withheld, unless the
        conversation comes from the user's own store (``is_own``). Raises ``HistoryConflictError`` if the histories
        differ.
        """
        stored = list(self._store.load(export.conversation_key))
        there, ours = (
            (stored, list(export.records))
            if is_own
            else map(_without_withheld_setting_events, (stored, export.records))
        )
        shared = min(len(there), len(ours))
        if there[:shared] != ours[:shared]:
            raise HistoryConflictError(
                f"The store has {self.conversation_name(export.conversation_key)} with another history from event "
                f"{_find_first_different_event(there, ours):,} on.",
                hint="Delete one of the two, or import into another store.",
            )
        if len(ours) <= len(there):
            return ImportOutcome.SAME if len(ours) == len(there) else ImportOutcome.OLDER
        missing = tuple(ours[shared:])
        withheld = {} if is_own else _list_withheld_settings(_compute_settings_after_events(missing))
        if withheld:
            reset = SettingsEvent(values=dict.fromkeys(withheld))
            missing = (*missing, encode_event(reset, timestamp=self.current_time()))
        named = {name for record in missing for name in record.contents}
        contents = {name: data for name, data in export.contents.items() if name in named}
        self._store.append(
            export.conversation_key,
            EventBatch(records=missing, contents=contents),
            expected=len(stored),
            title=find_explicit_title(missing) if there else find_title(missing),
            name=None if there else unused_name(self._store, export.name or export.conversation_key),
        )
        return ImportOutcome.EXTENDED if there else ImportOutcome.NEW

    def search(self, text: str) -> Iterator[MessageHit]:
        """Yield every message on any branch that contains the words, ignoring case.

        A damaged conversation does not stop the search: its error is raised after all hits.
        """
        wanted = text.casefold()
        damage: StoreCorruptedError | None = None
        for listed in self.list_conversations():
            log = FoldedLog(listed.conversation)
            try:
                log.extend(self._store.load(listed.conversation))
            except StoreCorruptedError as error:
                damage = damage or error
                continue
            except ConversationErasedError:
                # Another process erased it after it was listed.
                continue
            turns: dict[str, int] | None = None
            for node in log.nodes.values():
                at = _find_ignoring_case(node.text, wanted)
                if at is not None:
                    turns = _turn_numbers(log) if turns is None else turns
                    yield MessageHit(
                        conversation=listed.conversation,
                        name=listed.name,
                        title=listed.title,
                        message=node.id,
                        role=node.role,
                        excerpt=_excerpt_around(node.text, at, at + len(text)),
                        turn=turns.get(node.id),
                    )
        if damage is not None:
            raise damage

    def fork(self, conversation_key: str, message: str) -> None:
        """Continue from a message; the branch left behind stays."""
        log, message = self.load_log_with_message(conversation_key, message)
        if message != log.head:
            self._append(log, build_event_batch(ForkEvent(head=message), timestamp=self.current_time()))

    def rename(self, conversation_key: str, title: str) -> None:
        """Set the title of a conversation."""
        log = self.load_log(conversation_key)
        self._append(log, build_event_batch(RenameEvent(title=title), timestamp=self.current_time()), title=title)

    def _append(self, log: FoldedLog, batch: EventBatch, *, title: str | None = None) -> None:
        self._store.append(log.conversation, batch, expected=log.version, title=title)

    def erase(self, conversation_key: str) -> None:
        """Erase the content of a conversation for good; a tombstone stays.

        Calling it again finishes an interrupted erasure.
        """
        if all(listed.conversation != conversation_key for listed in self._store.list_conversations()):
            raise conversation_not_found_error(conversation_key)
        self._delete_data_outside_its_events(conversation_key)
        self._store.erase_conversation(conversation_key, at=self.current_time())

    def erase_artifact(self, conversation_key: str, artifact: str) -> int:
        """Erase an artifact from a conversation for good, and return the number of contents removed.

        This covers every version of it, its images, the instructions that include it, and every summary of the
        history, since a summary may repeat it.
        """
        records, log = self._load(conversation_key)
        given = tool_result_hashes(log.nodes.values(), log.open_rounds, artifact)
        own = dict.fromkeys(
            (*_iter_content_hashes(records, lambda event: artifact_content_hashes(event, artifact)), *given)
        )
        if not own:
            name = self.conversation_name(conversation_key)
            raise InvalidOperationError(
                f"{name} never had an artifact {artifact!r}.",
                hint=lambda hints: f"See its attachments with {hints.show_chat_hint(name)}.",
            )
        contents = tuple({**own, **dict.fromkeys(_iter_content_hashes(records, summary_content_hashes))})
        self._delete_data_outside_its_events(conversation_key)
        batch = build_erasure_batch(artifact, contents, timestamp=self.current_time())
        self._store.erase_contents(conversation_key, contents, batch, expected=log.version)
        return len(contents)

    def _delete_data_outside_its_events(self, conversation_key: str) -> None:
        """Remove data about a conversation elsewhere, before the erasure: afterwards no command would look for it."""
        if self._forget_conversation is not None:
            self._forget_conversation(conversation_key)

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Check every hash, id, request and listed title, of one conversation or of all; yield the problems."""
        return self._inspector.verify(conversation_key)

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield what is left of an erased conversation, or of contents erased from an existing one."""
        return self._inspector.verify_erased(conversation_key)

    def repair(self, problems: Iterable[StoreProblem]) -> list[str]:
        """Rebuild damaged data that can be derived from events; return the keys of the repaired conversations."""
        return self._inspector.repair(problems)

    def stats(self) -> StoreStats:
        return self._store.stats()

    def close(self) -> None:
        self._store.close()

    def list_conversations(self) -> list[ConversationListItem]:
        """Return every conversation that was not erased, last changed first."""
        return [listed for listed in self._store.list_conversations() if listed.erased_at is None]

    def current_time(self) -> str:
        """Return the current time in the format of the log."""
        return self._clock.now().isoformat().replace("+00:00", "Z")


def _find_first_different_event(existing: Sequence[EventRecord], imported: Sequence[EventRecord]) -> int:
    return next(i for i, (one, other) in enumerate(zip(existing, imported, strict=False), start=1) if one != other)


def _iter_content_hashes(
    records: Iterable[EventRecord], list_hashes: Callable[[Event], Iterable[str]]
) -> Iterator[str]:
    for number, record in enumerate(records, start=1):
        try:
            yield from list_hashes(decode_event(record))
        except (LookupError, TypeError, ValueError) as error:
            raise damaged_record_error(f"Event {number}", error) from error


def _excerpt_around(text: str, first: int, last: int) -> str:
    """Return a match with some words around it on one line; only a word longer than the excerpt is cut."""
    start, end = max(0, first - _EXCERPT_CONTEXT_CHARS), min(len(text), last + _EXCERPT_CONTEXT_CHARS)
    before, found, after = text[start:first], text[first:last], text[last:end]
    if start and not text[start - 1].isspace():
        before = _WHITESPACE.split(before, maxsplit=1)[-1]
    if end < len(text) and not text[end].isspace():
        after = _WHITESPACE.split(after[::-1], maxsplit=1)[-1][::-1]
    shown = " ".join(f"{before}{found}{after}".split())
    return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"


def _turn_numbers(log: FoldedLog) -> dict[str, int]:
    """Return the number of the turn of each message of the active branch."""
    return {
        name: number
        for number, record in enumerate(log.branch_records(), start=1)
        for name in (record.message.id, *(() if record.reply is None else (record.reply.id,)))
    }


def _find_ignoring_case(text: str, query: str) -> int | None:
    """Return the position of ``query`` in a text, ignoring case, or None.

    Case folding can change the length of a text, so the position is mapped back to the original.
    """
    folded = text.casefold()
    at = folded.find(query)
    if at < 0 or len(folded) == len(text):
        return at if at >= 0 else None
    lengths = accumulate(len(character.casefold()) for character in text)
    return next(index for index, end in enumerate(lengths) if end > at) if text else 0


# Copies of whole stores.


def copy_store(source: Store, target: Store, clock: Clock) -> Iterator[tuple[str, str]]:
    """Copy every conversation, and yield its name in the target and the outcome.

    The outcome is new, extended, same, older, diverged, damaged or erased. Conversations are compared by key, because
    two of them may share a name by chance. If another conversation has the same name, the key is given in its place.
    Repeating a copy is safe. A conversation that was erased in either store is erased in the target.
    """
    theirs, ours = ConversationRepository(source, clock), ConversationRepository(target, clock)
    there = {listed.conversation: listed for listed in target.list_conversations()}
    found = list(source.list_conversations())
    called = {one.name: one.conversation for one in (*found, *there.values()) if one.erased_at is None}
    for listed in found:
        outcome = _copy_conversation(
            listed, there.get(listed.conversation), source_repository=theirs, target_repository=ours, target=target
        )
        if outcome == "new":
            yield ours.conversation_name(listed.conversation), outcome
            continue
        known = there.get(listed.conversation)
        name = listed.name if known is None or known.erased_at is not None else known.name
        is_own = called.get(name, listed.conversation) == listed.conversation
        yield name if is_own else listed.conversation, outcome


def _copy_conversation(
    summary: ConversationListItem,
    existing: ConversationListItem | None,
    *,
    source_repository: ConversationRepository,
    target_repository: ConversationRepository,
    target: Store,
) -> str:
    if _is_other_conversation(summary, existing):
        return "diverged"
    if summary.erased_at is not None and summary.event_count:
        # A real tombstone has no events. This entry is wrong, so nothing is erased because of it.
        return "damaged"
    if summary.erased_at is not None:
        target.erase_conversation(summary.conversation, at=summary.erased_at)
        return "erased"
    try:
        return str(
            target_repository.import_conversation(
                replace(source_repository.export_conversation(summary.conversation), name=summary.name), is_own=True
            )
        )
    except ConversationErasedError:
        return "erased"
    except HistoryConflictError:
        return "diverged"
    except (StoreCorruptedError, InvalidOperationError):
        return "damaged"


def _is_other_conversation(one: ConversationListItem, other: ConversationListItem | None) -> bool:
    """Return whether a tombstone has a conversation's key but belongs to another one with another start time.

    Before keys were generated, users chose them. Two stores may therefore have the same key for two conversations.
    """
    if other is None or (one.erased_at is None) == (other.erased_at is None):
        return False
    tombstone = other if one.erased_at is None else one
    # A tombstone of a conversation that its store never had does not know when that conversation was created.
    return one.created != other.created and tombstone.created != tombstone.erased_at


# Forks: a branch up to a message, under another name.


def copy_branch_into_new_conversation(backend: Backend, conversation_key: str, message: str, *, name: str) -> None:
    """Copy a branch up to a message into a new conversation, with its settings, title and compactions.

    Messages get new ids, because an id is derived from the conversation key. No request contains message ids.
    """
    conversations = ConversationRepository(backend.store, backend.clock)
    log, message = conversations.load_log_with_message(conversation_key, message)
    if backend.store.find_conversation(name) is not None:
        raise InvalidOperationError(
            f"There is a conversation {name!r} already.", hint="Choose another name for the new one."
        )
    commands = log.pending_commands if message == log.head else ()
    if message != log.head:
        # The fork is only applied to the log in memory, to find what would apply after this message.
        log.extend(build_event_batch(ForkEvent(head=message), timestamp=log.created).records)
    records, branch = log.branch_records(), list_records_up_to_message(log, message)
    committed = log.active_compactions(branch)
    hashes = (
        *branch_content_hashes((*branch, records[-1])),
        *placeholder_text_hashes(committed),
        *list_content_hashes(commands),
    )
    contents = backend.store.read_contents(conversation_key, hashes) if hashes else {}
    defaults = with_last_layout(backend.resolve_settings(log.settings), log).turn_settings
    turns = read_turns(branch, contents, committed, defaults=defaults)
    key = backend.make_key(name)
    copy = _ForkWriter(conversation_key, key)
    copy.write_settings(log.settings, at=log.created)
    staged = [event for _, event in log.stage_events(branch)]
    copy.copy_stage_events(staged, copied_message_ids=("",), at=log.created)
    asides = auxiliary_events_by_question(branch, log.auxiliary_calls)
    undone = log.undone_clearings(branch)
    for turn, one in zip(turns, branch, strict=True):
        copy.copy_undone_clearings(undone, at=one.message.at)
        copy.copy_turn(turn, one, auxiliary_calls=asides[one.message.id], is_last=one is branch[-1])
        copy.copy_stage_events(staged, copied_message_ids=branch_message_ids([one]), at=one.message.at)
    copy.copy_undone_clearings(undone, at=records[-1].message.at)
    copy.copy_compactions(read_receipts(committed.after_last_message, contents), at=records[-1].message.at)
    if records[-1].reply is None and branch[-1].reply is not None:
        (again,) = read_turns(records[-1:], contents, defaults=defaults)
        copy.reopen_last_question(again, records[-1], abandoned=branch[-1])
    copy.copy_pending_calls(records[-1], contents)
    copy.copy_auxiliary_calls(
        log.auxiliary_calls.get(message, ()) if records[-1].reply is not None else (), at=records[-1].message.at
    )
    copy.copy_pending_commands(merge_commands(commands, contents), at=conversations.current_time())
    copy.write_title_and_next_turn_settings(log, at=conversations.current_time())
    batch = merge_batches(*copy.batches)
    backend.store.append(key, batch, expected=0, title=find_title(batch.records), name=name)


class _ForkWriter:
    """Collects the events of a conversation that is copied under another key."""

    def __init__(self, conversation_key: str, key: str) -> None:
        self.batches: list[EventBatch] = []
        self._source_key = conversation_key
        self._target_key = key
        self._head = ""
        # The new ids of messages and replies by their old ids.
        self._new_ids: dict[str, str] = {}

    def write_settings(self, settings: Mapping[str, object], *, at: str) -> None:
        """Write the settings that apply before the first message."""
        if settings:
            self.batches.append(build_event_batch(SettingsEvent(values=dict(settings)), timestamp=at))

    def write_title_and_next_turn_settings(self, log: FoldedLog, *, at: str) -> None:
        """Write what applies to the next turn, and the title.

        These events have the time of the copy: a list shows the time of the last event.
        """
        if log.is_model_chosen:
            self.batches.append(build_event_batch(SettingsEvent(values={"model": log.settings["model"]}), timestamp=at))
        if log.overrides != NO_OVERRIDES:
            self.batches.append(
                build_event_batch(
                    ForkEvent(head=self._head, overrides=_without_template_notes(log.overrides)), timestamp=at
                )
            )
        self.batches.append(build_event_batch(RenameEvent(title=log.title), timestamp=at))

    def copy_stage_events(self, events: Iterable[StageEvent], *, copied_message_ids: Sequence[str], at: str) -> None:
        """Copy the stage events after these messages, which are copied already."""
        self.batches += [
            build_event_batch(replace(one, after=self._head), timestamp=at)
            for one in events
            if one.after in copied_message_ids
        ]

    def copy_pending_commands(self, pending: TurnRequest, *, at: str) -> None:
        """Copy the pending commands."""
        pin, unpin = (tuple(self._new_ids.get(name, name) for name in names) for names in (pending.pin, pending.unpin))
        if not changes_nothing(pending):
            self.batches.append(build_command_batch(replace(pending, pin=pin, unpin=unpin), (), at=at))

    def copy_turn(
        self, turn: Turn, record: TurnRecord, *, auxiliary_calls: Iterable[AuxiliaryCallEvent], is_last: bool
    ) -> None:
        """Copy one turn with the compactions before it; an unanswered turn before the last gets an empty reply."""
        parent, at = self._head, record.message.at
        self.copy_compactions(turn.receipts, at=at)
        asked = self._with_new_ids(turn)
        self._head = question_id(self._target_key, parent, asked)
        self._new_ids[record.message.id] = self._head
        self.batches.append(build_question_batch(asked, message_id=self._head, parent=parent, timestamp=at))
        self.copy_auxiliary_calls(auxiliary_calls, at=at)
        self._copy_rounds(turn, record)
        if record.reply is not None or not is_last:
            self._copy_reply(record)

    def copy_auxiliary_calls(self, auxiliary_calls: Iterable[AuxiliaryCallEvent], *, at: str) -> None:
        """Copy auxiliary calls made after the last copied message."""
        self.batches += [build_event_batch(replace(one, parent=self._head), timestamp=at) for one in auxiliary_calls]

    def _with_new_ids(self, turn: Turn) -> Turn:
        """Return a turn without an id and with its pinned messages under their new ids."""
        pinned = None if turn.pinned is None else tuple(self._new_ids.get(name, name) for name in turn.pinned)
        return replace(turn, id=None, pinned=pinned)

    def reopen_last_question(self, turn: Turn, record: TurnRecord, *, abandoned: TurnRecord) -> None:
        """Open the last question again, which was copied with the empty reply it was abandoned with."""
        question = self._new_ids[record.message.id]
        if record.message.event == abandoned.message.event:
            self.batches.append(build_event_batch(SwitchEvent(head=question), timestamp=record.message.at))
        else:
            asked, parent = self._with_new_ids(turn), self._new_ids.get(record.message.parent, "")
            self.batches.append(
                build_question_batch(asked, message_id=question, parent=parent, timestamp=record.message.at)
            )
        self._head = question
        self._copy_rounds(turn, record)

    def copy_pending_calls(self, record: TurnRecord, contents: ContentsByHash) -> None:
        """Copy the tool calls of the last turn that await their outputs, and the outputs that are there."""
        pending = read_pending_reply(record, contents)
        if pending is not None and record.pending_round is not None:
            reply, outputs = pending
            at, made = record.message.at, map(to_model_call, record.pending_round.model_calls)
            self.batches.append(build_tool_calls_batch(reply, parent=self._head, timestamp=at, model_calls=made))
            if outputs:
                self.batches.append(build_tool_results_batch(outputs, parent=self._head, timestamp=at))

    def _copy_rounds(self, turn: Turn, record: TurnRecord) -> None:
        """Copy tool rounds; their results keep their ids, because requests refer to them by id."""
        for number, (one, stored) in enumerate(zip(turn.rounds, record.completed_rounds, strict=True)):
            at = record.message.at
            made = map(to_model_call, stored.model_calls)
            self.batches.append(
                build_tool_calls_batch(reply_from_round(one), parent=self._head, timestamp=at, model_calls=made)
            )
            names = round_result_ids(record.message.id, number, stored)
            outputs = [replace(output, id=name) for output, name in zip(one.outputs, names, strict=True)]
            self.batches.append(build_tool_results_batch(outputs, parent=self._head, timestamp=at))

    def _copy_reply(self, record: TurnRecord) -> None:
        reply, question = record.reply, self._head
        text, at = ("", record.message.at) if reply is None else (reply.text, reply.at)
        event = reply.event if reply is not None and isinstance(reply.event, ReplyEvent) else None
        own, sources, rounds_hash = ((), (), "") if event is None else (event.calls, event.sources, event.rounds_hash)
        old = compute_reply_id(self._source_key, parent=record.message.id, text="")
        self._head = compute_reply_id(self._target_key, parent=question, text=text, rounds_hash=rounds_hash)
        self._new_ids[old if reply is None else reply.id] = self._head
        calls = map(to_model_call, own)
        self.batches.append(
            build_reply_batch(
                text,
                message_id=self._head,
                parent=question,
                timestamp=at,
                model_calls=calls,
                sources=sources,
                rounds_hash=rounds_hash,
            )
        )

    def copy_compactions(self, receipts: Sequence[CompactionReceipt], *, at: str) -> None:
        """Copy compactions after the last copied message."""
        for receipt in receipts:
            self.batches.append(build_compaction_batch(self._with_new_key(receipt), timestamp=at))

    def copy_undone_clearings(self, undone: Iterable[CompactionEvent], *, at: str) -> None:
        """Copy the undone cuts of tool results after the last copied message, so that they are not made again."""
        for event in undone:
            if self._new_ids.get(event.parent, event.parent) == self._head:
                receipt = self._with_new_key(read_receipt(event, {}))
                self.batches.append(build_compaction_batch(receipt, timestamp=at))
                self.batches.append(build_event_batch(UndoEvent(receipt=receipt.id), timestamp=at))

    def _with_new_key(self, receipt: CompactionReceipt) -> CompactionReceipt:
        """Return a receipt after the last copied message, with the new ids of messages."""
        steps = tuple(
            replace(step, removed=tuple(self._new_ids.get(one, one) for one in step.removed)) for step in receipt.steps
        )
        renamed = make_receipt(
            self._target_key,
            parent=self._head,
            steps=steps,
            skipped=receipt.skipped,
            tokens=(receipt.tokens_before, receipt.tokens_after),
            target=receipt.target,
            automatic=receipt.automatic,
            chain_version=receipt.chain_version,
            certificate=receipt.certificate,
            since_message=self._new_ids.get(receipt.since_message, receipt.since_message),
            soft_target=receipt.soft_target,
        )
        return replace(renamed, clears_in_place=receipt.clears_in_place, why=receipt.why)


def _without_template_notes(overrides: TurnOverrides) -> TurnOverrides:
    """Return the overrides with instructions as typed, without the notes that templates inserted.

    The inserted notes belong to a turn that is not copied.
    """
    system = overrides.system
    if system is None or system.drawn is None:
        return overrides
    typed = replace(system, instructions=system.typed_instructions, drawn=None, inlined=())
    return replace(overrides, system=typed)


# Turns from elsewhere as events. Nothing is sent, read or expanded for them.

# A question and its answer.
QuestionReply = tuple[str, str]


def build_turn_events(
    log: FoldedLog,
    exchanges: Sequence[QuestionReply],
    *,
    settings: ConversationSettings,
    first: TurnRequest | None,
    at: str,
) -> tuple[EventBatch, str]:
    """Build the events of questions and answers after the last message, and return them with the last message's id.

    ``first`` has the model and the system prompt of the first turn, if the conversation is empty. Raises
    ``InvalidOperationError`` while a question awaits its answer.
    """
    head = log.head
    if head and log.nodes[head].role is MessageAuthor.USER:
        raise InvalidOperationError(
            "A question waits for its answer.", hint="Have it answered first, or go back to an answer."
        )
    parts: list[EventBatch] = []
    for asked, answered in exchanges:
        text = normalize_line_ends(asked)
        turn = Turn(text=text, typed=text, turn_settings=settings.turn_settings)
        if not head and first is not None:
            turn = replace(turn, model=first.model or settings.model, system=_to_system_parts(first.system))
        question = question_id(log.conversation, head, turn)
        reply = normalize_line_ends(answered)
        parts.append(build_question_batch(turn, message_id=question, parent=head, timestamp=at))
        head = compute_reply_id(log.conversation, parent=question, text=reply)
        parts.append(build_reply_batch(reply, message_id=head, parent=question, timestamp=at))
    return merge_batches(*parts), head


def _to_system_parts(texts: Mapping[str, str]) -> SystemParts | None:
    given = {name: normalize_line_ends(text) for name, text in texts.items()}
    # Templates in the instructions are expanded when the prompt is sent.
    return SystemParts(**given, inlined=(), typed_instructions=given.get("instructions", "")) if given else None
