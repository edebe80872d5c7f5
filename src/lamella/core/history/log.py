"""The log: events folded into a tree of messages, its branches, and the one that is active.

Editing, regenerating, deleting and forking never change what was written: each makes a branch, and the old one stays
readable. A branch is named by its last message.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lamella.core.compaction.receipt import Receipt
from lamella.core.envelope.model import Rewrite
from lamella.core.history.calls import read_call
from lamella.core.history.compactions import NONE_COMMITTED, Committed, Compactions
from lamella.core.history.events import Body, Contents, named_hashes, parse_bodies, parse_body, read_turn
from lamella.core.history.fields import as_list
from lamella.core.history.ids import message_id
from lamella.core.history.receipts import read_receipt, receipt_hashes
from lamella.core.history.records import EventKind, Record
from lamella.core.history.resume import PastTurn
from lamella.core.history.state import TurnInput
from lamella.core.layers.model import Role
from lamella.core.ledger.call import Call
from lamella.errors import StoreDamagedError

_UNREADABLE = (LookupError, TypeError, ValueError)
_LASTING = ("system", "tools", "model")
_SAYING = (EventKind.MESSAGE, EventKind.REPLY, EventKind.EDIT)
_NOTHING: Body = {}
# Bodies are parsed so many at a time: all at once would take as much memory again.
_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One message of the tree: typed text with its turn's body, or a reply."""

    id: str
    parent: str
    role: Role
    text: str
    at: str
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One turn of a branch: what was asked, and the reply if there is one."""

    message: Node
    reply: Node | None


class Log:
    """A fold in progress: a conversation's events, taken in one by one."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.version = 0
        self.head = ""
        self.title = ""
        self.created = ""
        self.settings: dict[str, object] = {}
        self.nodes: dict[str, Node] = {}
        self.rewritten: Rewrite | None = None
        self.last_asked = ""
        # What holds although no turn of the branch says so: a model chosen since the last turn, and what the last
        # question had set when it was deleted.
        self.chose_model = False
        self.left: Body = {}
        self.compactions = Compactions()
        self.undone = False
        self.compacted_since = False
        # Questions that were the first to be asked after an undo.
        self.undone_before: set[str] = set()
        # By the number of the event that said it last: asking the same again after a compaction is asking after it.
        self._said_at: dict[str, int] = {}
        self._leaves: dict[str, None] = {}
        self._followed: set[str] = set()

    def extend(self, records: Iterable[Record]) -> None:
        """Fold more events, in order."""
        given = list(records)
        if given and not self.created:
            self.created = given[0].at
        for start in range(0, len(given), _BATCH):
            batch = given[start : start + _BATCH]
            for record, body in zip(batch, parse_bodies(batch), strict=True):
                fold = self._say if record.kind in _SAYING else self._fold
                try:
                    fold(record, parse_body(record) if body is None else body)
                except _UNREADABLE as error:
                    raise _damaged(f"Event {self.version + 1} of {self.conversation}", error) from error
                self.version += 1

    def path(self, head: str | None = None) -> list[Told]:
        """The turns from the beginning to a message, by default the active one."""
        told: list[Told] = []
        name = self.head if head is None else head
        while name:
            node, reply = self.nodes[name], None
            if node.role is Role.REPLY:
                node, reply = self.nodes[node.parent], node
            told.append(Told(message=node, reply=reply))
            name = node.parent
        told.reverse()
        return told

    def committed(self, told: Sequence[Told], *, until: str | None = None) -> Committed:
        """The compactions in force on a branch, now or when a message was asked."""
        if not self.compactions:
            return NONE_COMMITTED
        until_event = None if until is None else self._said_at[until]
        return self.compactions.on(name_messages(told), said_at=self._said_at, until=until_event)

    def branches(self) -> tuple[str, ...]:
        """The last message of every branch, in the order in which the branches ended; the active one among them."""
        return tuple(dict.fromkeys((*self._leaves, self.head))) if self.head else tuple(self._leaves)

    def _fold(self, record: Record, body: Body) -> None:
        match record.kind:
            case EventKind.DELETE:
                self._delete(_name(body, "target"))
                self.rewritten = Rewrite.HISTORY_EDITED
            case EventKind.FORK | EventKind.SWITCH:
                self._switch(_name(body, "head"))
            case EventKind.RENAME:
                self.title = _name(body, "title")
            case EventKind.ERASURE:
                self.rewritten = Rewrite.HISTORY_EDITED
            case EventKind.SETTINGS:
                self.settings.update(body)
                self.chose_model |= "model" in body
            case EventKind.COMPACTION | EventKind.UNDO:
                self._compact(record.kind, body)
            case _:
                # Folds and stages shape what is sent, not what was said.
                pass

    def _compact(self, kind: EventKind, body: Body) -> None:
        if kind is EventKind.COMPACTION:
            self.compactions.commit(body, at=self.version)
            self.compacted_since = True
            return
        path = name_messages(self.path())
        self.compactions.undo(body["receipt"], path=path, said_at=self._said_at, at=self.version)
        self.undone, self.compacted_since = True, False

    def _say(self, record: Record, body: Body) -> None:
        name, parent, text = _names(body)
        if record.kind is EventKind.REPLY:
            kept = self._calls_of(name, body)
            reply = Node(id=name, parent=parent, role=Role.REPLY, text=text, at=record.at, body=kept)
            self._add(reply, fits=bool(parent) and parent == self.last_asked)
            return
        message = Node(id=name, parent=parent, role=Role.USER, text=text, at=record.at, body=body)
        self._add(message, fits=parent == self.head)
        (self.undone_before.add if self.moves_by_undo() else self.undone_before.discard)(name)
        self.rewritten, self.last_asked = None, name
        self.chose_model, self.left, self.undone = False, {}, False

    def moves_by_undo(self) -> bool:
        """Whether the next request differs from the one before it because a compaction was undone."""
        return self.undone and not self.compacted_since

    def _calls_of(self, name: str, body: Body) -> Body:
        """The calls of a reply; the same answer given once more was called for once more."""
        same = self.nodes.get(name)
        if "calls" not in body or same is None or "calls" not in same.body:
            return body if "calls" in body else same.body if same is not None else _NOTHING
        return {"calls": [*as_list(same.body["calls"]), *as_list(body["calls"])]}

    def _add(self, node: Node, *, fits: bool) -> None:
        """Most of a log follows the message before it, which ``fits``; the rest is looked at."""
        if not fits or node.id in self.nodes:
            self._check(node)
        self._place(node)
        self._arrive(node.id)

    def _check(self, node: Node) -> None:
        """Refuse a message that does not fit where it says it stands."""
        parent, same = self.nodes.get(node.parent), self.nodes.get(node.id, node)
        if node.parent and parent is None:
            raise ValueError(f"message {node.id} follows {node.parent}, which is not there")
        if node.role is Role.REPLY and (parent is None or parent.role is not Role.USER):
            raise ValueError(f"reply {node.id} answers no message")
        if (same.parent, same.role, same.text) != (node.parent, node.role, node.text):
            raise ValueError(f"message {node.id} is there already, and says something else")

    def _place(self, node: Node) -> None:
        self.nodes[node.id] = node
        self._said_at[node.id] = self.version
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
                left = {name: turn.message.body[name] for name in _LASTING if name in turn.message.body}
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
        body = {**left, **node.body} if left else node.body
        self._place(Node(id=name, parent=parent, role=node.role, text=node.text, at=node.at, body=body))
        return name


def name_messages(told: Iterable[Told]) -> tuple[str, ...]:
    """The ids of a branch's questions and replies, in their order."""
    pairs = ((turn.message, turn.reply) for turn in told)
    return tuple(node.id for pair in pairs for node in pair if node is not None)


def derive_id(conversation: str, parent: str, node: Node) -> str:
    """A message's id from what it says and what it follows."""
    refs = [*_refs(node.body, "results"), *_refs(node.body, "attached")]
    return message_id(conversation, parent=parent, role=node.role, text=node.text, attached=refs)


def path_hashes(told: Iterable[Told]) -> tuple[str, ...]:
    """Every content that a branch names."""
    hashes: dict[str, None] = {}
    for turn in told:
        try:
            hashes.update(dict.fromkeys(named_hashes(turn.message.body)))
        except _UNREADABLE as error:
            raise _damaged(f"The message {turn.message.id}", error) from error
    return tuple(hashes)


def read_turns(told: Iterable[Told], contents: Contents, committed: Committed = NONE_COMMITTED) -> list[PastTurn]:
    """A branch's turns with their contents, each with its reply and with what was compacted before it."""
    return [
        PastTurn(
            turn=read_message(turn.message, contents),
            reply=turn.reply.text if turn.reply else None,
            reply_id=turn.reply.id if turn.reply else None,
            receipts=read_receipts(committed.before.get(turn.message.id, ()), contents),
        )
        for turn in told
    ]


def read_calls(reply: Node) -> tuple[Call, ...]:
    """The model calls that gave a reply, as far as they are known."""
    calls = reply.body.get("calls", [])
    try:
        return tuple(read_call(call) for call in calls) if isinstance(calls, list) else ()
    except _UNREADABLE as error:
        raise _damaged(f"The reply {reply.id}", error) from error


def committed_hashes(committed: Committed) -> tuple[str, ...]:
    """The hashes of the texts that a branch's compactions put in place of messages."""
    try:
        return receipt_hashes(committed.bodies)
    except _UNREADABLE as error:
        raise _damaged("A compaction", error) from error


def read_receipts(bodies: Iterable[Body], contents: Contents) -> tuple[Receipt, ...]:
    """Receipts with the texts that stand in for what they took out."""
    try:
        return tuple(read_receipt(body, contents) for body in bodies)
    except _UNREADABLE as error:
        raise _damaged("A compaction", error) from error


def read_message(node: Node, contents: Contents) -> TurnInput:
    """The turn a message was asked with."""
    try:
        return read_turn(node.body, contents, message_id=node.id)
    except _UNREADABLE as error:
        raise _damaged(f"The message {node.id}", error) from error


def _damaged(place: str, error: Exception) -> StoreDamagedError:
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return StoreDamagedError(
        f"{place} cannot be read: {why}.", hint="Run `lamella store verify` to see what is damaged."
    )


def _names(body: Body) -> tuple[str, str, str]:
    """A message's id, its parent and its text."""
    name, parent, text = body["id"], body["parent"], body["text"]
    if isinstance(name, str) and isinstance(parent, str) and isinstance(text, str):
        return name, parent, text
    return _name(body, "id"), _name(body, "parent"), _name(body, "text")


def _name(body: Body, field_name: str) -> str:
    value = body[field_name]
    if not isinstance(value, str):
        raise ValueError(f"{field_name} is not a text")
    return value


def _refs(body: Mapping[str, object], field_name: str) -> list[tuple[str, str]]:
    refs = body.get(field_name, [])
    return [(ref["id"], ref["hash"]) for ref in refs] if isinstance(refs, list) else []
