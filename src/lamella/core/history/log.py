"""The log: events folded into a tree of messages, its branches, and the one that is active.

Editing, regenerating, deleting and forking never change what was written: each makes a branch, and the old one stays
readable. A branch is named by its last message.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from lamella.core.compaction.receipt import Receipt
from lamella.core.envelope.model import Rewrite
from lamella.core.history.calls import read_call
from lamella.core.history.compactions import NONE_COMMITTED, Committed, Compactions
from lamella.core.history.events import Body, Contents, named_hashes, parse_body, read_turn
from lamella.core.history.fields import as_list
from lamella.core.history.ids import message_id
from lamella.core.history.receipts import read_receipt, receipt_hashes
from lamella.core.history.records import EventKind, Record
from lamella.core.history.resume import PastTurn
from lamella.core.history.state import TurnInput
from lamella.core.layers.model import CarryForward, History, Layout, Role
from lamella.core.ledger.call import Call
from lamella.core.values import replace
from lamella.errors import StoreDamagedError

_UNREADABLE = (LookupError, TypeError, ValueError)
_LASTING = ("system", "tools", "model")
_SAYING = (EventKind.MESSAGE, EventKind.REPLY, EventKind.EDIT)
_SAID = frozenset({"id", "parent", "text"})
_OWN = _SAID | {"layout", "carry_forward"}
_LAYOUTS: Mapping[object, Layout | None] = {None: None, **{layout.value: layout for layout in Layout}}
_CARRIES: Mapping[object, CarryForward | None] = {None: None, **{carry.value: carry for carry in CarryForward}}
# Looking a member up in its enumeration takes longer than making a struct, and thousands are made at an opening.
_USER, _REPLY, _WHOLE = Role.USER, Role.REPLY, History.FULL


class Node(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One message of the tree: typed text with its turn's body, or a reply.

    ``number`` is how many events were before the one that said it last: asking the same again after a compaction is
    asking after it. ``rest`` is what its event says besides, none for most.
    """

    id: str
    parent: str
    role: Role
    text: str
    at: str = ""
    number: int = 0
    layout: Layout | None = None
    carry_forward: CarryForward | None = None
    rest: Body | None = None

    @property
    def body(self) -> Body:
        """What its event says."""
        own = {"layout": self.layout, "carry_forward": self.carry_forward}
        set_by = {name: value.value for name, value in own.items() if value is not None}
        return {"id": self.id, "parent": self.parent, "text": self.text, **set_by, **(self.rest or {})}


class Told(Struct, frozen=True, kw_only=True, gc=False):
    """One turn of a branch: what was asked, and the reply if there is one."""

    message: Node
    reply: Node | None


def _make_node(body: Body, role: Role, at: str, *, number: int) -> Node:
    """The message that an event's body describes."""
    # What is no such word is read with the rest, where it is found to be damaged.
    layout, carry_forward = body.get("layout"), body.get("carry_forward")
    own = _OWN if layout in tuple(_LAYOUTS) and carry_forward in tuple(_CARRIES) else _SAID
    return Node(
        id=_name(body, "id"),
        parent=_name(body, "parent"),
        role=role,
        text=_name(body, "text"),
        at=at,
        number=number,
        layout=_LAYOUTS[layout] if own is _OWN else None,
        carry_forward=_CARRIES[carry_forward] if own is _OWN else None,
        rest={name: value for name, value in body.items() if name not in own} or None,
    )


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
            except _UNREADABLE as error:
                raise _damaged(f"Event {self.version + 1} of {self.conversation}", error) from error
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
        self.compactions.undo(body["receipt"], path=self._said_at(self.path()), at=self.version)
        self.undone, self.compacted_since = True, False

    def _say(self, record: Record, body: Body) -> None:
        if record.kind is EventKind.REPLY:
            reply = _make_node(body, _REPLY, record.at, number=self.version)
            parent = reply.parent
            follows = parent != "" and parent == self.head == self.last_asked
            self._add(self._with_calls(reply) if reply.rest or reply.id in self.nodes else reply, follows=follows)
            return
        message = _make_node(body, _USER, record.at, number=self.version)
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
        if node.role is Role.REPLY and (parent is None or parent.role is not Role.USER):
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


def name_messages(told: Iterable[Told]) -> tuple[str, ...]:
    """The ids of a branch's questions and replies, in their order."""
    pairs = ((turn.message, turn.reply) for turn in told)
    return tuple(node.id for pair in pairs for node in pair if node is not None)


def derive_id(conversation: str, parent: str, node: Node) -> str:
    """A message's id from what it says and what it follows."""
    rest = node.rest or {}
    refs = [*_refs(rest, "results"), *_refs(rest, "attached")]
    return message_id(conversation, parent=parent, role=node.role, text=node.text, attached=refs)


def path_hashes(told: Iterable[Told]) -> tuple[str, ...]:
    """Every content that a branch names."""
    hashes: dict[str, None] = {}
    for turn in told:
        if turn.message.rest is None:
            continue
        try:
            hashes.update(dict.fromkeys(named_hashes(turn.message.rest)))
        except _UNREADABLE as error:
            raise _damaged(f"The message {turn.message.id}", error) from error
    return tuple(hashes)


def read_turns(told: Iterable[Told], contents: Contents, committed: Committed = NONE_COMMITTED) -> list[PastTurn]:
    """A branch's turns with their contents, each with its reply and with what was compacted before it."""
    before = committed.before
    return [
        PastTurn(
            turn=read_message(turn.message, contents),
            reply=turn.reply.text if turn.reply else None,
            reply_id=turn.reply.id if turn.reply else None,
            receipts=read_receipts(before[turn.message.id], contents) if turn.message.id in before else (),
        )
        for turn in told
    ]


def read_calls(reply: Node) -> tuple[Call, ...]:
    """The model calls that gave a reply, as far as they are known."""
    calls = reply.rest.get("calls", []) if reply.rest is not None else []
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
    if node.rest is None:
        # Most turns only say something; reading them is much of what opening a long conversation takes.
        return TurnInput(
            text=node.text,
            typed=node.text,
            id=node.id,
            layout=node.layout,
            carry_forward=node.carry_forward,
            history=_WHOLE,
            image_notes=False,
        )
    try:
        return read_turn(node.body, contents, message_id=node.id)
    except _UNREADABLE as error:
        raise _damaged(f"The message {node.id}", error) from error


def _damaged(place: str, error: Exception) -> StoreDamagedError:
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return StoreDamagedError(
        f"{place} cannot be read: {why}.", hint="Run `lamella store verify` to see what is damaged."
    )


def _name(body: Body, field_name: str) -> str:
    value = body[field_name]
    if not isinstance(value, str):
        raise ValueError(f"{field_name} is not a text")
    return value


def _refs(body: Mapping[str, object], field_name: str) -> list[tuple[str, str]]:
    refs = body.get(field_name, [])
    return [(ref["id"], ref["hash"]) for ref in refs] if isinstance(refs, list) else []
