"""The event log: events folded into a tree of messages with an active branch.

Editing, regenerating, deleting and forking never change existing events. Each of them adds a branch, and the old
branch stays readable. A branch is identified by its last message.
"""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from lamella.core.log.compactions import (
    NO_COMPACTIONS,
    ActiveCompactions,
    CompactionLog,
    StageEntry,
    list_branch_stage_events,
    reassign_stage_events_after_deletion,
)
from lamella.core.log.events.artifact import PendingCommandsEvent
from lamella.core.log.events.call import AuxiliaryCallEvent
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.compaction import CompactionEvent, StageEvent, UndoEvent
from lamella.core.log.events.kinds import (
    DeleteEvent,
    ErasureEvent,
    Event,
    EventRecord,
    ForkEvent,
    IgnoredEvent,
    RenameEvent,
    SettingsEvent,
    SwitchEvent,
)
from lamella.core.log.events.message import (
    NO_OVERRIDES,
    EditEvent,
    QuestionEvent,
    StoredRound,
    ToolCallsEvent,
    ToolResultsEvent,
    TurnOverrides,
    add_results_to_last_round,
    hash_rounds,
    make_waiting_round,
    round_content_hashes,
)
from lamella.core.log.tree import EventNumbers, build_branch, iter_message_parents
from lamella.core.log.turn import HistoryChangeReason, MessageAuthor, ReplyEvent, compute_message_id, compute_reply_id
from lamella.core.log.turn_records import (
    DECODING_ERRORS,
    MessageNode,
    TurnRecord,
    branch_message_ids,
    completed_rounds,
    copy_event_under_parent,
    damaged_record_error,
    derive_message_id,
    is_same_question_resent,
    mark_nodes_with_erased_contents,
    merge_replies,
    validate_position,
)
from lamella.core.values import CachedProperty, replace

# Module-level names, because looking up an enum member is slow and happens thousands of times: see
# docs/decisions/frozen-values.md.
_USER, _REPLY = MessageAuthor.USER, MessageAuthor.REPLY

# Version of the fold's result and of the snapshot format. Raise it with every change of either, so that older snapshots
# are not used. A golden file for each version checks that a format does not change under the same number.
SNAPSHOT_FORMAT = 17
ConversationChange = DeleteEvent | ForkEvent | SwitchEvent | RenameEvent | ErasureEvent | SettingsEvent | IgnoredEvent

# Snapshots contain these fields under their earlier names. A decoder fills a missing field with its default, so a
# changed name would silently load a wrong log.
_STORED_NAMES = {
    "auxiliary_calls": "asides",
    "compacted_since_undo": "compacted_since",
    "first_questions_after_undo": "undone_before",
    "history_rewrite": "rewritten",
    "is_model_chosen": "chose_model",
    "last_question": "last_asked",
    "open_rounds": "rounds",
    "overrides": "left",
    "pending_commands": "commands",
    "question_versions": "asked",
    "stage_entries": "stages",
    "undone_since_last_question": "undone",
}


class FoldedLog(Struct, dict=True, rename=_STORED_NAMES):
    """The state of a conversation while its events are folded one by one.

    - ``is_model_chosen``, ``overrides``: settings in effect that no turn of the branch has: a model chosen since the
      last turn, and what the last question had set when it was deleted.
    - ``last_sent``: the question whose request was sent last, as far as events show, and the number of that event.
    - ``first_questions_after_undo``: questions that were the first after an undo.
    - ``open_rounds``: the tool rounds of questions without a reply.
    - ``question_versions``: for questions that were sent again in another version, for example with another model: the
      version that each reply answers.
    - ``pending_commands``: pending commands for the next question, on any branch.
    - ``auxiliary_calls``: auxiliary calls without a reply yet, by the message after which they were made.
    - ``stage_entries``: workflow stage events, each with the number of events before it.
    """

    conversation: str
    version: int = 0
    head: str = ""
    title: str = ""
    created: str = ""
    settings: dict[str, object] = {}
    nodes: MutableMapping[str, MessageNode] = {}
    history_rewrite: HistoryChangeReason | None = None
    last_question: str = ""
    last_sent: tuple[str, int] = ("", 0)
    is_model_chosen: bool = False
    overrides: TurnOverrides = NO_OVERRIDES
    compactions: CompactionLog = field(default_factory=CompactionLog)
    undone_since_last_question: bool = False
    compacted_since_undo: bool = False
    first_questions_after_undo: set[str] = set()
    open_rounds: dict[str, tuple[StoredRound, ...]] = {}
    question_versions: dict[str, QuestionEvent | EditEvent] = {}
    pending_commands: tuple[PendingCommandsEvent, ...] = ()
    auxiliary_calls: dict[str, tuple[AuxiliaryCallEvent, ...]] = {}
    stage_entries: tuple[StageEntry, ...] = ()
    _leaves: dict[str, None] = {}

    @CachedProperty
    def _children(self) -> dict[str, tuple[str, ...]]:
        """The children of each message that has any."""
        followed: dict[str, tuple[str, ...]] = {}
        for name, parent in iter_message_parents(self.nodes):
            followed[parent] = (*followed.get(parent, ()), name)
        return followed

    def extend(self, records: Iterable[EventRecord]) -> None:
        """Fold more events, in order; raises ``StoreCorruptedError`` for an event that cannot be read."""
        for record in records:
            try:
                self._apply_event(decode_event(record), record.at)
            except DECODING_ERRORS as error:
                raise damaged_record_error(f"Event {self.version + 1} of {self.conversation}", error) from error
            self.created = self.created or record.at
            self.version += 1

    def branch_records(self, head: str | None = None) -> Sequence[TurnRecord]:
        """Return the turn records from the start to a message, by default the last one of the active branch."""
        return build_branch(
            self.nodes,
            self.head if head is None else head,
            open_rounds=self.open_rounds,
            question_versions=self.question_versions,
        )

    def siblings(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return, for each message that has alternatives, all messages that follow the same one, itself included.

        Each comes with the last message of the branch that ended last among those that contain it.
        """
        groups = [names for names in self._children.values() if len(names) > 1]
        if not groups:
            return {}
        parents, heads = dict(iter_message_parents(self.nodes)), dict[str, str]()
        for leaf in self.list_branch_heads():
            name = leaf
            while name:
                heads[name] = leaf
                name = parents[name]
        return {name: tuple([(one, heads.get(one, one)) for one in names]) for names in groups for name in names}

    def find_question(self, message: str) -> MessageNode | None:
        """Return a question as the active branch has it, else in its latest version, or None if there is none."""
        node = self.nodes.get(message)
        if node is None or node.role is not _USER:
            return None
        return next((record.message for record in self.branch_records() if record.message.id == message), node)

    def active_compactions(self, records: Sequence[TurnRecord], *, as_of_event: int | None = None) -> ActiveCompactions:
        """Return the compactions that are active on a branch, now or as of event ``as_of_event``."""
        return (
            self.compactions.active_on_branch(self._message_numbers(records), as_of_event=as_of_event)
            if self.compactions
            else NO_COMPACTIONS
        )

    def undone_clearings(self, records: Sequence[TurnRecord]) -> Sequence[CompactionEvent]:
        """Return the compactions of a branch that cleared tool results in place and were undone."""
        return self.compactions.undone_clearings(self._message_numbers(records)) if self.compactions else ()

    def stage_events(self, records: Sequence[TurnRecord]) -> list[tuple[int, StageEvent]]:
        """Return the stage events of a branch, each with the number of the branch's messages before it."""
        return (
            list_branch_stage_events(self.stage_entries, self._message_numbers(records)) if self.stage_entries else []
        )

    def records_at_last_request(self) -> Sequence[TurnRecord]:
        """Return the records up to the question whose request was sent last, with its reply if that is newest."""
        asked, at = self.last_sent
        head = self.nodes.get(self.head)
        answers = head is not None and head.parent == asked and head.event_number > at
        return self.branch_records(self.head if answers else asked)

    def _message_numbers(self, records: Sequence[TurnRecord]) -> Mapping[str, int]:
        """Return the messages of a branch in order, with the event number of each."""
        return EventNumbers(self.nodes, branch_message_ids(records))

    def all_message_ids(self) -> frozenset[str]:
        """Return the ids of all messages.

        They include the id of an empty reply to each question, which the prompt uses for a question whose reply was
        deleted.
        """
        asked = (name for name, node in self.nodes.items() if node.role is _USER)
        empty = (compute_message_id(self.conversation, parent=name, role=_REPLY, text="") for name in asked)
        return frozenset((*self.nodes, *empty))

    def list_branch_heads(self) -> tuple[str, ...]:
        """Return the last message of every branch, in the order in which the branches ended, with the active one."""
        return tuple(dict.fromkeys((*self._leaves, self.head))) if self.head else tuple(self._leaves)

    def _apply_event(self, event: Event, timestamp: str) -> None:
        match event:
            case QuestionEvent():
                self._add_question(MessageNode(event=event, at=timestamp, event_number=self.version))
            case ReplyEvent():
                node = MessageNode(event=event, at=timestamp, event_number=self.version)
                (self._add_reply_on_own_branch if event.aside else self._add_reply)(node)
            case ToolCallsEvent() | ToolResultsEvent():
                self._apply_tool_round_event(event)
            case PendingCommandsEvent() | AuxiliaryCallEvent() | StageEvent():
                self._store_event_for_later(event)
            case CompactionEvent():
                self.compactions.add_compaction(event, event_number=self.version)
                self.compacted_since_undo = True
                sent = event.before if event.before and event.before in self.nodes else None
                self.last_sent = (sent, self.version) if sent else self.last_sent
            case UndoEvent():
                self.compactions.undo_from(
                    event.receipt,
                    message_numbers=self._message_numbers(self.branch_records()),
                    event_number=self.version,
                )
                self.undone_since_last_question, self.compacted_since_undo = True, False
            case _:
                self._apply_conversation_change(event)

    def _apply_conversation_change(self, event: ConversationChange) -> None:
        match event:
            case DeleteEvent():
                self._rebuild_branch_without_message(event.target)
                self.history_rewrite = HistoryChangeReason.HISTORY_EDITED
            case ForkEvent() | SwitchEvent():
                self._apply_switch(event)
            case RenameEvent():
                self.title = event.title
            case ErasureEvent():
                self._mark_messages_as_erased(frozenset(event.contents))
                self.history_rewrite = HistoryChangeReason.HISTORY_EDITED
            case SettingsEvent():
                self.settings.update(event.values)
                self.is_model_chosen |= "model" in event.values
            case IgnoredEvent():
                pass
            case _:
                assert_never(event)

    def _store_event_for_later(self, event: PendingCommandsEvent | AuxiliaryCallEvent | StageEvent) -> None:
        """Store an event for the next question, for the reply to the open question, or for the workflow."""
        if isinstance(event, StageEvent):
            self.stage_entries = (*self.stage_entries, (self.version, event))
        elif isinstance(event, PendingCommandsEvent):
            self.pending_commands = (*self.pending_commands, event)
        elif event.parent and event.parent not in self.nodes:
            raise ValueError(f"a model was called after {event.parent}, which is not there")
        else:
            self.auxiliary_calls[event.parent] = (*self.auxiliary_calls.get(event.parent, ()), event)

    def _mark_messages_as_erased(self, hashes: frozenset[str]) -> None:
        """Mark the messages that refer to erased contents.

        If the same content is attached again later, it does not come back in these messages.
        """
        self.pending_commands = tuple(one.without_erased(hashes) for one in self.pending_commands)
        self.nodes.update(
            mark_nodes_with_erased_contents(
                self.nodes, hashes, question_versions=self.question_versions.values(), open_rounds=self.open_rounds
            )
        )

    def _add_question(self, message: MessageNode) -> None:
        asked, before = message.event, message.event.parent
        if asked.parent != self.head and is_same_question_resent(self.nodes.get(self.head), message):
            # The same question with what was found for it. Nothing was sent for the one that it replaces.
            before = self.head
        self._add_node(message, extends_head=asked.parent == self.head)
        # A question that is sent again starts from scratch, without earlier tool results.
        self.open_rounds.pop(asked.id, None)
        self.question_versions.pop(asked.id, None)
        if before != asked.parent:
            self._leaves.pop(before, None)
        if before in self.auxiliary_calls:
            self.auxiliary_calls[asked.id] = (
                *self.auxiliary_calls.get(asked.id, ()),
                *self.auxiliary_calls.pop(before),
            )
        # An edited question keeps the attachments of the original. Pending commands go with a new question only.
        self.pending_commands = self.pending_commands if isinstance(asked, EditEvent) else ()
        self._reset_after_question(asked.id)

    def _add_reply(self, reply: MessageNode) -> None:
        parent = reply.event.parent
        follows = parent != "" and parent == self.head == self.last_question
        if parent in self.open_rounds:
            reply = self._attach_rounds(reply, completed_rounds(self.open_rounds[parent]))
        reply = (
            replace(reply, auxiliary_calls=self.auxiliary_calls.pop(parent))
            if parent in self.auxiliary_calls
            else reply
        )
        self._inherit_question_version(reply.event.id, parent)
        same = self.nodes.get(reply.event.id)
        self._add_node(reply if same is None else merge_replies(same, reply), extends_head=follows)
        self.open_rounds.pop(parent, None)

    def find_rounds_hash(self, question: str, text: str) -> str:
        """Return the ``rounds_hash`` of a reply with this text to the open question; see ``ReplyEvent``.

        Empty replies need none: a question that is abandoned again keeps its empty reply.
        """
        same = self.nodes.get(compute_reply_id(self.conversation, parent=question, text=text))
        if not text or same is None or self.head != question:
            return ""
        now = hash_rounds(completed_rounds(self.open_rounds.get(question, ())))
        return "" if now == hash_rounds(same.rounds) else now

    def _add_reply_on_own_branch(self, reply: MessageNode) -> None:
        """Add a reply to a question that was left, or that is being answered again.

        The reply ends a branch of its own, and the active branch does not change.
        """
        name, parent = reply.event.id, reply.event.parent
        validate_position(reply, self.nodes)
        if name in self.nodes:
            self._store_message(merge_replies(self.nodes[name], reply))
            return
        # When the question was left, its rounds went to the empty reply. Open rounds belong to another run.
        left = self.nodes.get(compute_message_id(self.conversation, parent=parent, role=_REPLY, text=""))
        self._inherit_question_version(name, parent)
        self._store_message(reply if left is None else replace(reply, rounds=left.rounds, erased=left.erased))
        self._leaves.setdefault(name)

    def _inherit_question_version(self, message: str, source: str) -> None:
        """Record for ``message`` the version of the question that applies to ``source``.

        A new reply answers the version that is open now. A question that is opened again takes the version of its
        reply. A reply that is given again keeps its version if later messages follow it, because they were built on
        it.
        """
        if not self.question_versions or (message in self._children and self.nodes[message].role is _REPLY):
            return
        if source in self.question_versions:
            self.question_versions[message] = self.question_versions[source]
        else:
            self.question_versions.pop(message, None)

    def _attach_rounds(self, reply: MessageNode, rounds: tuple[StoredRound, ...]) -> MessageNode:
        """Return a reply with the tool rounds of its question, and with what was erased from them."""
        erased = set(round_content_hashes(rounds)).intersection(self.nodes[reply.parent].erased)
        return replace(reply, rounds=rounds, erased=tuple(sorted(erased)))

    def _apply_tool_round_event(self, event: ToolCallsEvent | ToolResultsEvent) -> None:
        """Start a tool round, or add the results of the last one.

        A round that never got its results is discarded when the next one starts.
        """
        if isinstance(event, ToolResultsEvent):
            self.open_rounds[event.parent] = add_results_to_last_round(self.open_rounds.get(event.parent, ()), event)
            self.last_sent = (event.parent, self.version)
            return
        head = self.nodes.get(self.head)
        if head is None or head.id != event.parent or head.role is not _USER:
            raise ValueError(f"calls are made for {event.parent}, which is not the question that waits")
        self.open_rounds[event.parent] = (
            *completed_rounds(self.open_rounds.get(event.parent, ())),
            make_waiting_round(event),
        )

    def _add_node(self, node: MessageNode, *, extends_head: bool) -> None:
        """Add a message and make it the head.

        Most messages follow the previous one under a new id and take the short path. All others are checked.
        """
        name = node.event.id
        if extends_head and name not in self.nodes:
            self._store_message(node)
            self.head = name
            return
        validate_position(node, self.nodes)
        self._save_question_version_for_replies(node)
        self._store_message(node)
        self._set_head(name)

    def _reset_after_question(self, question: str) -> None:
        """Reset what applied to the next request only, since this question is that request."""
        undone = self.undone_since_last_question and not self.compacted_since_undo
        (self.first_questions_after_undo.add if undone else self.first_questions_after_undo.discard)(question)
        self.history_rewrite, self.last_question, self.last_sent = None, question, (question, self.version)
        self.is_model_chosen, self.overrides, self.undone_since_last_question = False, NO_OVERRIDES, False

    def undo_changes_next_prefix(self) -> bool:
        """Return whether an undo changes the prefix of the next request.

        That is the case if the last request was sent with a compaction that was undone since.
        """
        return (
            self.undone_since_last_question
            and not self.compacted_since_undo
            and self.compactions.was_any_undone(self.last_sent[1])
        )

    def undo_changed_prefix(self, question: str) -> bool:
        """Return whether an undo changed the prefix of the request of this question."""
        if question not in self.first_questions_after_undo:
            return False
        asked = self.nodes[question].event_number
        sent = max((node.event_number for node in self.nodes.values() if node.event_number < asked), default=0)
        return self.compactions.was_any_undone(sent, to_event=asked)

    def _save_question_version_for_replies(self, question: MessageNode) -> None:
        """Before a question changes, record its current version for the replies that answer it."""
        before, now = (
            self.nodes[question.id].question_event if question.id in self.nodes else None,
            question.question_event,
        )
        # A different fingerprint alone does not make it another question: the request may differ between two sends.
        if before is not None and (now is None or replace(now, imprint=before.imprint) != before):
            for name in self._children.get(question.id, ()):
                if self.nodes[name].role is _REPLY:
                    self.question_versions.setdefault(name, before)

    def _store_message(self, node: MessageNode) -> None:
        stored_node, followed = node.event, vars(self).get("_children")
        # ``_children`` is needed only if the conversation branches. It is computed on first access and kept current
        # only after that, so that most conversations never build it for thousands of messages.
        if followed is not None and stored_node.id not in self.nodes:
            followed[stored_node.parent] = (*followed.get(stored_node.parent, ()), stored_node.id)
        self.nodes[stored_node.id] = node

    def _apply_switch(self, event: ForkEvent | SwitchEvent) -> None:
        if isinstance(event, ForkEvent) and event.overrides is not None:
            self.overrides = event.overrides
        else:
            self._switch_head(event.head)

    def _switch_head(self, head: str) -> None:
        if head and head not in self.nodes:
            raise ValueError(f"there is no message {head}")
        if head == self.head and head in self.open_rounds:
            # The open question is answered again from its start, so the calls made so far are discarded.
            del self.open_rounds[head]
            return
        if not self._is_question_just_answered(head):
            self.history_rewrite, self.overrides = HistoryChangeReason.BRANCH, NO_OVERRIDES
        if self.question_versions and head and self.nodes[head].role is _USER:
            here = (record.reply or record.message for record in self.branch_records() if record.message.id == head)
            self._inherit_question_version(head, next((node.id for node in here), ""))
        self._set_head(head)

    def _is_question_just_answered(self, head: str) -> bool:
        """Return whether ``head`` is the question just answered; sending it again rewrites nothing."""
        return self.head in self.nodes and self.nodes[self.head].parent == head and bool(head)

    def _set_head(self, head: str) -> None:
        """Make a message the head; the previous head ends a branch if no message follows it."""
        if self.head and self.head not in self._children:
            self._leaves.setdefault(self.head)
        elif self.head != head:
            # A question that was being answered again keeps its earlier reply; the open rounds are discarded.
            self.open_rounds.pop(self.head, None)
        self._leaves.pop(head, None)
        self.head = head

    def _rebuild_branch_without_message(self, target: str) -> None:
        """Rebuild the active branch without one message.

        A question is deleted with its reply. Deleting a reply leaves the question open. Settings that a deleted
        question had changed (system prompt, tools, model) stay in effect.
        """
        parent, overrides, names = "", NO_OVERRIDES, dict[str, str]()
        before = self._message_numbers(records := self.branch_records())
        for turn in records:
            if turn.message.id == target:
                overrides = (
                    turn.message.event.overrides if isinstance(turn.message.event, QuestionEvent) else NO_OVERRIDES
                )
                continue
            parent = self._copy_under_parent(turn.message, parent, overrides, new_ids=names)
            overrides = NO_OVERRIDES
            if turn.reply is not None and turn.reply.id != target:
                parent = self._copy_under_parent(turn.reply, parent, new_ids=names)
            elif turn.reply is not None:
                self._inherit_question_version(parent, turn.reply.id)
        self.overrides = self.overrides.merged_over(overrides)
        self._set_head(parent)
        self.stage_entries = reassign_stage_events_after_deletion(
            self.stage_entries,
            before,
            branch_message_ids(self.branch_records()),
            new_ids=names,
            event_number=self.version,
        )

    def _copy_under_parent(
        self, node: MessageNode, parent: str, overrides: TurnOverrides = NO_OVERRIDES, *, new_ids: dict[str, str]
    ) -> str:
        """Copy a message under another parent and return its new id, which depends on the parent.

        ``new_ids`` collects the new ids, and pinned messages are renamed by it.
        """
        if node.parent == parent:
            return node.id
        event = copy_event_under_parent(node.event, parent, overrides, new_ids=new_ids)
        name = new_ids[node.id] = derive_message_id(self.conversation, event)
        self.question_versions.pop(name, None)
        grafted = replace(node, event=replace(event, id=name), event_number=self.version)
        self._save_question_version_for_replies(grafted)
        self._store_message(grafted)
        self._leaves.pop(parent, None)  # if the same deletion was made before, that branch continues now
        if node.id in self.open_rounds:
            self.open_rounds[name] = self.open_rounds[node.id]
        if node.id in self.auxiliary_calls:
            self.auxiliary_calls[name] = self.auxiliary_calls[node.id]
        return name
