"""The log: events folded into a tree of messages, its branches, and the one that is active.

Editing, regenerating, deleting and forking never change what was written: each makes a branch, and the old one stays
readable. A branch is named by its last message.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct, field

from lamella.core.log.compactions import NONE_COMMITTED, Committed, Compactions
from lamella.core.log.events import Body, named_hashes, parse_body
from lamella.core.log.fields import as_list
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.nodes import UNREADABLE, Node, Told, damaged, derive_id, make_node, name_messages, read_name
from lamella.core.log.records import EventKind, Record
from lamella.core.log.terms import Rewrite
from lamella.core.values import replace

_LASTING = ("system", "tools", "model")
_SAYING = (EventKind.MESSAGE, EventKind.REPLY, EventKind.EDIT)
# Members by name of their own: see docs/decisions/msgspec.md.
_USER, _REPLY = Voice.USER, Voice.REPLY


class Log(Struct, dict=True):
    """A fold in progress: a conversation's events, taken in one by one.

    ``chose_model`` and ``left`` are what holds although no turn of the branch says so: a model chosen since the last
    turn, and what the last question had set when it was deleted. ``undone_before`` are questions that were the first
    to be asked after an undo.
    """

    conversation: str
    version: int = 0
    head: str = ""
    title: str = ""
    created: str = ""
    settings: dict[str, object] = {}
    nodes: dict[str, Node] = {}
    rewritten: Rewrite | None = None
    last_asked: str = ""
    chose_model: bool = False
    left: Body = {}
    compactions: Compactions = field(default_factory=Compactions)
    undone: bool = False
    compacted_since: bool = False
    undone_before: set[str] = set()
    _leaves: dict[str, None] = {}

    @cached_property
    def _followed(self) -> set[str]:
        """The messages that another one follows."""
        return {node.parent for node in self.nodes.values()}

    def extend(self, records: Iterable[Record]) -> None:
        """Fold more events, in order."""
        for record in records:
            fold = self._say if record.kind in _SAYING else self._fold
            try:
                fold(record, parse_body(record))
            except UNREADABLE as error:
                raise damaged(f"Event {self.version + 1} of {self.conversation}", error) from error
            self.created = self.created or record.at
            self.version += 1

    def path(self, head: str | None = None) -> list[Told]:
        """The turns from the beginning to a message, by default the active one."""
        told: list[Told] = []
        name = self.head if head is None else head
        while name:
            node, reply = self.nodes[name], None
            if node.role is _REPLY:
                node, reply = self.nodes[node.parent], node
            told.append(Told(message=node, reply=reply))
            name = node.parent
        told.reverse()
        return told

    def committed(self, told: Sequence[Told], *, until: str | None = None) -> Committed:
        """The compactions in force on a branch, now or when a message was asked."""
        if not self.compactions:
            return NONE_COMMITTED
        until_event = None if until is None else self.nodes[until].number
        return self.compactions.on(self._said_at(told), until=until_event)

    def _said_at(self, told: Sequence[Told]) -> dict[str, int]:
        """The messages of a branch in their order, each with when it was said last."""
        return {name: self.nodes[name].number for name in name_messages(told)}

    def said(self) -> frozenset[str]:
        """The ids of all messages; a question whose answer was deleted stands with an empty one, which has its own."""
        asked = (name for name, node in self.nodes.items() if node.role is _USER)
        empty = (message_id(self.conversation, parent=name, role=_REPLY, text="") for name in asked)
        return frozenset((*self.nodes, *empty))

    def branches(self) -> tuple[str, ...]:
        """The last message of every branch, in the order in which the branches ended; the active one among them."""
        return tuple(dict.fromkeys((*self._leaves, self.head))) if self.head else tuple(self._leaves)

    def _fold(self, record: Record, body: Body) -> None:
        match record.kind:
            case EventKind.DELETE:
                self._delete(read_name(body, "target"))
                self.rewritten = Rewrite.HISTORY_EDITED
            case EventKind.FORK | EventKind.SWITCH:
                self._switch(read_name(body, "head"))
            case EventKind.RENAME:
                self.title = read_name(body, "title")
            case EventKind.ERASURE:
                self._erase(frozenset(record.contents))
                self.rewritten = Rewrite.HISTORY_EDITED
            case EventKind.SETTINGS:
                self.settings.update(body)
                self.chose_model |= "model" in body
            case EventKind.COMPACTION | EventKind.UNDO:
                self._compact(record.kind, body)
            case _:
                # Folds and stages shape what is sent, not what was said.
                pass

    def _erase(self, hashes: frozenset[str]) -> None:
        """Mark the messages that hold what is erased: the same content attached again is theirs no more."""
        for name, node in self.nodes.items():
            gone = hashes.intersection(_names_in(node))
            if gone:
                self.nodes[name] = replace(node, erased=tuple(sorted(gone.union(node.erased))))

    def _compact(self, kind: EventKind, body: Body) -> None:
        if kind is EventKind.COMPACTION:
            self.compactions.commit(body, at=self.version)
            self.compacted_since = True
            return
        self.compactions.undo(body["receipt"], path=self._said_at(self.path()), at=self.version)
        self.undone, self.compacted_since = True, False

    def _say(self, record: Record, body: Body) -> None:
        if record.kind is EventKind.REPLY:
            reply = make_node(body, _REPLY, record.at, number=self.version)
            parent = reply.parent
            follows = parent != "" and parent == self.head == self.last_asked
            self._add(self._with_calls(reply) if reply.rest or reply.id in self.nodes else reply, follows=follows)
            return
        message = make_node(body, _USER, record.at, number=self.version)
        self._add(message, follows=message.parent == self.head)
        self._begin_turn(message.id)

    def _with_calls(self, reply: Node) -> Node:
        """A reply with its calls; the same answer given once more was called for once more."""
        same = self.nodes.get(reply.id)
        calls = [call for node in (same, reply) if node is not None for call in as_list((node.rest or {}).get("calls"))]
        return replace(reply, rest={"calls": calls} if calls else None)

    def _add(self, node: Node, *, follows: bool) -> None:
        """Most of a log follows the message before it, under a new id; the rest is looked at."""
        if follows and node.id not in self.nodes:
            self._place(node)
            self.head = node.id
            return
        self._check(node)
        self._place(node)
        self._arrive(node.id)

    def _begin_turn(self, question: str) -> None:
        """What was to be told of the next request was told of this one."""
        (self.undone_before.add if self.moves_by_undo() else self.undone_before.discard)(question)
        self.rewritten, self.last_asked = None, question
        self.chose_model, self.left, self.undone = False, {}, False

    def moves_by_undo(self) -> bool:
        """Whether the next request differs from the one before it because a compaction was undone."""
        return self.undone and not self.compacted_since

    def _check(self, node: Node) -> None:
        """Refuse a message that does not fit where it says it stands."""
        parent, same = self.nodes.get(node.parent), self.nodes.get(node.id, node)
        if node.parent and parent is None:
            raise ValueError(f"message {node.id} follows {node.parent}, which is not there")
        if node.role is _REPLY and (parent is None or parent.role is not _USER):
            raise ValueError(f"reply {node.id} answers no message")
        if (same.parent, same.role, same.text) != (node.parent, node.role, node.text):
            raise ValueError(f"message {node.id} is there already, and says something else")

    def _place(self, node: Node) -> None:
        self.nodes[node.id] = node
        self._followed.add(node.parent)

    def _switch(self, head: str) -> None:
        if head and head not in self.nodes:
            raise ValueError(f"there is no message {head}")
        if not self._answers_again(head):
            self.rewritten, self.left = Rewrite.BRANCH, {}
        self._arrive(head)

    def _answers_again(self, head: str) -> bool:
        """Going back to the question just answered sends the same request again: nothing is rewritten."""
        return self.head in self.nodes and self.nodes[self.head].parent == head and bool(head)

    def _arrive(self, head: str) -> None:
        """Make a message the active one; the one left behind ends a branch if nothing follows it."""
        if self.head and self.head not in self._followed:
            self._leaves.setdefault(self.head)
        self._leaves.pop(head, None)
        self.head = head

    def _delete(self, target: str) -> None:
        """A branch without one message: a question goes with its answer, an answer alone leaves the question open.

        What a question had set from then on (system prompt, tools, model) was no part of what it said: it stays.
        """
        parent, left = "", {}
        for turn in self.path():
            if turn.message.id == target:
                rest = turn.message.rest or {}
                left = {name: rest[name] for name in _LASTING if name in rest}
                continue
            parent = self._graft(turn.message, parent, left)
            left = {}
            if turn.reply is not None and turn.reply.id != target:
                parent = self._graft(turn.reply, parent)
        self.left = {**left, **self.left}
        self._arrive(parent)

    def _graft(self, node: Node, parent: str, left: Body | None = None) -> str:
        """The same message under another parent; its id follows from both."""
        if node.parent == parent:
            return node.id
        name = derive_id(self.conversation, parent, node)
        rest = {**left, **(node.rest or {})} if left else node.rest
        self._place(replace(node, id=name, parent=parent, number=self.version, rest=rest))
        return name


def _names_in(node: Node) -> tuple[str, ...]:
    """The contents that a message names; one that cannot be read is found where it is read."""
    try:
        return named_hashes(node.rest) if node.rest is not None else ()
    except UNREADABLE:
        return ()
