"""The log: events folded into a tree of messages, its branches, and the one that is active.

Editing, regenerating, deleting and forking never change what was written: each makes a branch, and the old one stays
readable. A branch is named by its last message.
"""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from lamella.core.log.compactions import NONE_IN_FORCE, Compactions, CompactionsInForce
from lamella.core.log.events.aside import AsideEvent
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.changes import (
    DeleteEvent,
    ErasureEvent,
    ForkEvent,
    RenameEvent,
    SettingsEvent,
    SilentEvent,
    SwitchEvent,
)
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.compaction import CompactionEvent, UndoEvent
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import NOTHING_SET, EditEvent, MessageEvent, TurnSetup
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import CallsEvent, ResultsEvent, StoredRound, begin_round, end_round, list_hashes
from lamella.core.log.events.stage import StageEvent
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.nodes import (
    UNREADABLE,
    Node,
    Told,
    asks_on,
    check_place,
    damaged,
    derive_id,
    join_replies,
    list_whole,
    mark_erased,
    name_messages,
    put_under,
)
from lamella.core.log.records import Record
from lamella.core.log.stages import StageEntry, carry_stages, stages_on
from lamella.core.log.terms import Rewrite
from lamella.core.log.tree import MessageNumbers, find_path, list_parents
from lamella.core.values import FoundOnce, replace

# Members by name of their own: see docs/decisions/msgspec.md.
_USER, _REPLY = Voice.USER, Voice.REPLY

# What a log folds to, and how snapshots of it are written. Whoever changes either raises the number, so that older
# snapshots are not used; a golden file of each number holds this one to what it was.
FORMAT = 14
Change = DeleteEvent | ForkEvent | SwitchEvent | RenameEvent | ErasureEvent | SettingsEvent | SilentEvent


class Log(Struct, dict=True):
    """A fold in progress: a conversation's events, taken in one by one.

    ``chose_model`` and ``left`` are what holds although no turn of the branch says so: a model chosen since the
    last turn, and what the last question had set when it was deleted. ``last_sent`` is the question whose request
    was sent last, as far as events tell, and how many there were before the one that does. ``undone_before`` are
    questions that were the first to be asked after an undo. ``rounds`` are the tool rounds of questions that wait
    for their answer. ``asked`` are questions that were asked otherwise since, by another model for example, as they
    were for each reply. ``commands`` are what waits for the next question, whatever branch that is asked on.
    ``asides`` are those that no reply has yet, by the message that they were made after. ``stages`` are what was done
    about the stages of a workflow, each with how many events were before it.
    """

    conversation: str
    version: int = 0
    head: str = ""
    title: str = ""
    created: str = ""
    settings: dict[str, object] = {}
    nodes: MutableMapping[str, Node] = {}
    rewritten: Rewrite | None = None
    last_asked: str = ""
    last_sent: tuple[str, int] = ("", 0)
    chose_model: bool = False
    left: TurnSetup = NOTHING_SET
    compactions: Compactions = field(default_factory=Compactions)
    undone: bool = False
    compacted_since: bool = False
    undone_before: set[str] = set()
    rounds: dict[str, tuple[StoredRound, ...]] = {}
    asked: dict[str, MessageEvent | EditEvent] = {}
    commands: tuple[AttachmentEvent, ...] = ()
    asides: dict[str, tuple[AsideEvent, ...]] = {}
    stages: tuple[StageEntry, ...] = ()
    _leaves: dict[str, None] = {}

    @FoundOnce
    def _followed(self) -> dict[str, tuple[str, ...]]:
        """The messages that others follow, each with those."""
        followed: dict[str, tuple[str, ...]] = {}
        for name, parent in list_parents(self.nodes):
            followed[parent] = (*followed.get(parent, ()), name)
        return followed

    def extend(self, records: Iterable[Record]) -> None:
        """Fold more events, in order."""
        for record in records:
            try:
                self._fold(read_event(record), record.at)
            except UNREADABLE as error:
                raise damaged(f"Event {self.version + 1} of {self.conversation}", error) from error
            self.created = self.created or record.at
            self.version += 1

    def path(self, head: str | None = None) -> Sequence[Told]:
        """The turns from the beginning to a message, by default the active one."""
        return find_path(self.nodes, self.head if head is None else head, rounds=self.rounds, asked=self.asked)

    def find_question(self, message: str) -> Node | None:
        """A question as the active branch has it, else as it was asked last; none if there is none of that id."""
        node = self.nodes.get(message)
        if node is None or node.role is not _USER:
            return None
        return next((told.message for told in self.path() if told.message.id == message), node)

    def committed(self, told: Sequence[Told], *, until: int | None = None) -> CompactionsInForce:
        """The compactions in force on a branch, now or once there was the event ``until``."""
        return self.compactions.on(self._said_at(told), until=until) if self.compactions else NONE_IN_FORCE

    def staged(self, told: Sequence[Told]) -> list[tuple[int, StageEvent]]:
        """What was done about stages on a branch, each with how many of its messages came before it."""
        return stages_on(self.stages, self._said_at(told)) if self.stages else []

    def told_last(self) -> Sequence[Told]:
        """The turns up to the question whose request was sent last; with its answer, where that is the newest."""
        asked, at = self.last_sent
        head = self.nodes.get(self.head)
        answers = head is not None and head.parent == asked and head.number > at
        return self.path(self.head if answers else asked)

    def _said_at(self, told: Sequence[Told]) -> Mapping[str, int]:
        """The messages of a branch in their order, each with when it was said last."""
        return MessageNumbers(self.nodes, name_messages(told))

    def said(self) -> frozenset[str]:
        """The ids of all messages; a question whose answer was deleted stands with an empty one, which has its own."""
        asked = (name for name, node in self.nodes.items() if node.role is _USER)
        empty = (message_id(self.conversation, parent=name, role=_REPLY, text="") for name in asked)
        return frozenset((*self.nodes, *empty))

    def branches(self) -> tuple[str, ...]:
        """The last message of every branch, in the order in which the branches ended; the active one among them."""
        return tuple(dict.fromkeys((*self._leaves, self.head))) if self.head else tuple(self._leaves)

    def _fold(self, event: Event, at: str) -> None:
        match event:
            case MessageEvent():
                self._ask(Node(event=event, at=at, number=self.version))
            case ReplyEvent():
                said = Node(event=event, at=at, number=self.version)
                (self._stand_aside if event.aside else self._answer)(said)
            case CallsEvent() | ResultsEvent():
                self._go_round(event)
            case AttachmentEvent() | AsideEvent() | StageEvent():
                self._hold(event)
            case CompactionEvent():
                self.compactions.commit(event, at=self.version)
                self.compacted_since = True
                sent = event.before if event.before and event.before in self.nodes else None
                self.last_sent = (sent, self.version) if sent else self.last_sent
            case UndoEvent():
                self.compactions.undo(event.receipt, path=self._said_at(self.path()), at=self.version)
                self.undone, self.compacted_since = True, False
            case _:
                self._change(event)

    def _change(self, event: Change) -> None:
        match event:
            case DeleteEvent():
                self._delete(event.target)
                self.rewritten = Rewrite.HISTORY_EDITED
            case ForkEvent() | SwitchEvent():
                self._go(event)
            case RenameEvent():
                self.title = event.title
            case ErasureEvent():
                self._erase(frozenset(event.contents))
                self.rewritten = Rewrite.HISTORY_EDITED
            case SettingsEvent():
                self.settings.update(event.values)
                self.chose_model |= "model" in event.values
            case SilentEvent():
                pass
            case _:
                assert_never(event)

    def _hold(self, event: AttachmentEvent | AsideEvent | StageEvent) -> None:
        """What waits for the next question, or for the answer to the one that is open; and what was done beside it."""
        if isinstance(event, StageEvent):
            self.stages = (*self.stages, (self.version, event))
        elif isinstance(event, AttachmentEvent):
            self.commands = (*self.commands, event)
        elif event.parent and event.parent not in self.nodes:
            raise ValueError(f"a model was called after {event.parent}, which is not there")
        else:
            self.asides[event.parent] = (*self.asides.get(event.parent, ()), event)

    def _erase(self, hashes: frozenset[str]) -> None:
        """Mark the messages that hold what is erased: the same content attached again is theirs no more."""
        self.commands = tuple(one.without(hashes) for one in self.commands)
        self.nodes.update(mark_erased(self.nodes, hashes, asked=self.asked.values(), waits=self.rounds))

    def _ask(self, message: Node) -> None:
        asked, before = message.event, message.event.parent
        if asked.parent != self.head and asks_on(self.nodes.get(self.head), message):
            # The same question with what was found for it: nothing was sent of the one that it takes the place of.
            before = self.head
        self._add(message, follows=asked.parent == self.head)
        # Asked anew it starts anew, whatever tools gave back for it before.
        self.rounds.pop(asked.id, None)
        self.asked.pop(asked.id, None)
        if before != asked.parent:
            self._leaves.pop(before, None)
        if before in self.asides:
            self.asides[asked.id] = (*self.asides.get(asked.id, ()), *self.asides.pop(before))
        # A question in place of another has what that had; what waits goes with one that is new.
        self.commands = self.commands if isinstance(asked, EditEvent) else ()
        self._begin_turn(asked.id)

    def _answer(self, reply: Node) -> None:
        parent = reply.event.parent
        follows = parent != "" and parent == self.head == self.last_asked
        if parent in self.rounds:
            reply = self._take_rounds(reply, list_whole(self.rounds[parent]))
        reply = replace(reply, asides=self.asides.pop(parent)) if parent in self.asides else reply
        self._stand(reply.event.id, parent)
        same = self.nodes.get(reply.event.id)
        self._add(reply if same is None else join_replies(same, reply), follows=follows)
        self.rounds.pop(parent, None)

    def _stand_aside(self, reply: Node) -> None:
        """An answer to a question that was left or is being answered anew: it ends a branch, and nothing moves."""
        name, parent = reply.event.id, reply.event.parent
        check_place(reply, self.nodes)
        if name in self.nodes:
            self._place(join_replies(self.nodes[name], reply))
            return
        # Whoever left the question left its rounds to the empty reply; those that are open are somebody else's.
        left = self.nodes.get(message_id(self.conversation, parent=parent, role=_REPLY, text=""))
        self._stand(name, parent)
        self._place(reply if left is None else replace(reply, rounds=left.rounds, erased=left.erased))
        self._leaves.setdefault(name)

    def _stand(self, message: str, like: str) -> None:
        """A reply answers its question as that is open now, and a question is open again as it was for a reply.

        A reply given once more stays one to what it answered if something was asked after it: that was built on it.
        """
        if not self.asked or (message in self._followed and self.nodes[message].role is _REPLY):
            return
        if like in self.asked:
            self.asked[message] = self.asked[like]
        else:
            self.asked.pop(message, None)

    def _take_rounds(self, reply: Node, rounds: tuple[StoredRound, ...]) -> Node:
        """A reply with the rounds of its question; what was erased of them stays so."""
        erased = set(list_hashes(rounds)).intersection(self.nodes[reply.parent].erased)
        return replace(reply, rounds=rounds, erased=tuple(sorted(erased)))

    def _go_round(self, event: CallsEvent | ResultsEvent) -> None:
        """A round begins, or the last has its results. One before it that never got its own is over."""
        if isinstance(event, ResultsEvent):
            self.rounds[event.parent] = end_round(self.rounds.get(event.parent, ()), event)
            self.last_sent = (event.parent, self.version)
            return
        head = self.nodes.get(self.head)
        if head is None or head.id != event.parent or head.role is not _USER:
            raise ValueError(f"calls are made for {event.parent}, which is not the question that waits")
        self.rounds[event.parent] = (*list_whole(self.rounds.get(event.parent, ())), begin_round(event))

    def _add(self, node: Node, *, follows: bool) -> None:
        """Most of a log follows the message before it, under a new id; the rest is looked at."""
        name = node.event.id
        if follows and name not in self.nodes:
            self._place(node)
            self.head = name
            return
        check_place(node, self.nodes)
        self._keep_asked(node)
        self._place(node)
        self._arrive(name)

    def _begin_turn(self, question: str) -> None:
        """What was to be told of the next request was told of this one."""
        undone = self.undone and not self.compacted_since
        (self.undone_before.add if undone else self.undone_before.discard)(question)
        self.rewritten, self.last_asked, self.last_sent = None, question, (question, self.version)
        self.chose_model, self.left, self.undone = False, NOTHING_SET, False

    def moves_by_undo(self) -> bool:
        """Whether the next request differs from the one before it: a compaction that was sent under was undone."""
        return self.undone and not self.compacted_since and self.compactions.was_undone(self.last_sent[1])

    def moved_by_undo(self, question: str) -> bool:
        """Whether the request of a question differed from the one before it for the same reason."""
        if question not in self.undone_before:
            return False
        asked = self.nodes[question].number
        sent = max((node.number for node in self.nodes.values() if node.number < asked), default=0)
        return self.compactions.was_undone(sent, until=asked)

    def _keep_asked(self, question: Node) -> None:
        """Before a question is asked otherwise: its replies stay replies to what it was."""
        before, now = self.nodes[question.id].question if question.id in self.nodes else None, question.question
        # What was sent for it both times may differ: that is no other question.
        if before is not None and (now is None or replace(now, imprint=before.imprint) != before):
            for name in self._followed.get(question.id, ()):
                if self.nodes[name].role is _REPLY:
                    self.asked.setdefault(name, before)

    def _place(self, node: Node) -> None:
        said, followed = node.event, vars(self).get("_followed")
        # Who follows whom is asked only where branches part; until then nobody has to know it of thousands.
        if followed is not None and said.id not in self.nodes:
            followed[said.parent] = (*followed.get(said.parent, ()), said.id)
        self.nodes[said.id] = node

    def _go(self, event: ForkEvent | SwitchEvent) -> None:
        if isinstance(event, ForkEvent) and event.left is not None:
            self.left = event.left
        else:
            self._switch(event.head)

    def _switch(self, head: str) -> None:
        if head and head not in self.nodes:
            raise ValueError(f"there is no message {head}")
        if head == self.head and head in self.rounds:
            # The open question is asked once more from its start: what was called for in between is given up.
            del self.rounds[head]
            return
        if not self._answers_again(head):
            self.rewritten, self.left = Rewrite.BRANCH, NOTHING_SET
        if self.asked and head and self.nodes[head].role is _USER:
            here = (told.reply or told.message for told in self.path() if told.message.id == head)
            self._stand(head, next((node.id for node in here), ""))
        self._arrive(head)

    def _answers_again(self, head: str) -> bool:
        """Going back to the question just answered sends the same request again: nothing is rewritten."""
        return self.head in self.nodes and self.nodes[self.head].parent == head and bool(head)

    def _arrive(self, head: str) -> None:
        """Make a message the active one; the one left behind ends a branch if nothing follows it."""
        if self.head and self.head not in self._followed:
            self._leaves.setdefault(self.head)
        elif self.head != head:
            # A question that was being answered again is left as it was answered before.
            self.rounds.pop(self.head, None)
        self._leaves.pop(head, None)
        self.head = head

    def _delete(self, target: str) -> None:
        """A branch without one message: a question goes with its answer, an answer alone leaves the question open.

        What a question had set from then on (system prompt, tools, model) was no part of what it said: it stays.
        """
        parent, left, names = "", NOTHING_SET, dict[str, str]()
        before = self._said_at(told := self.path())
        for turn in told:
            if turn.message.id == target:
                left = turn.message.event.lasting if isinstance(turn.message.event, MessageEvent) else NOTHING_SET
                continue
            parent = self._graft(turn.message, parent, left, names=names)
            left = NOTHING_SET
            if turn.reply is not None and turn.reply.id != target:
                parent = self._graft(turn.reply, parent, names=names)
            elif turn.reply is not None:
                self._stand(parent, turn.reply.id)
        self.left = self.left.over(left)
        self._arrive(parent)
        self.stages = carry_stages(self.stages, before, name_messages(self.path()), names=names, at=self.version)

    def _graft(self, node: Node, parent: str, left: TurnSetup = NOTHING_SET, *, names: dict[str, str]) -> str:
        """The same message under another parent; its id follows from both, and pins go by ``names`` to the new ones."""
        if node.parent == parent:
            return node.id
        event = put_under(node.event, parent, left, names=names)
        name = names[node.id] = derive_id(self.conversation, event)
        self.asked.pop(name, None)
        grafted = replace(node, event=replace(event, id=name), number=self.version)
        self._keep_asked(grafted)
        self._place(grafted)
        self._leaves.pop(parent, None)  # where the same was deleted before, that branch goes on now
        if node.id in self.rounds:
            self.rounds[name] = self.rounds[node.id]
        if node.id in self.asides:
            self.asides[name] = self.asides[node.id]
        return name
