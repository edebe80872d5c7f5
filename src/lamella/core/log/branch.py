"""A branch read back: its turns with their contents, what was compacted before each, and the calls of its replies."""

from collections.abc import Iterable
from datetime import datetime

from lamella.core.artifacts.model import Artifact
from lamella.core.log.call import Call
from lamella.core.log.calls import read_call
from lamella.core.log.compactions import NONE_COMMITTED, Committed
from lamella.core.log.events import Body, Contents, named_hashes, read_attached, read_turn
from lamella.core.log.ids import Voice
from lamella.core.log.nodes import UNREADABLE, Node, Told, damaged
from lamella.core.log.receipt import Receipt
from lamella.core.log.receipts import read_receipt, receipt_hashes
from lamella.core.log.terms import History
from lamella.core.log.turn import PastTurn, TurnInput

# Members by name of their own: see docs/decisions/msgspec.md.
_WHOLE, _REPLY = History.FULL, Voice.REPLY
_ATTACHING = frozenset({"attached", "results"})
_NOTHING_ATTACHED: tuple[tuple[Artifact, ...], tuple[Artifact, ...], tuple[str, ...]] = ((), (), ())


def path_hashes(told: Iterable[Told]) -> tuple[str, ...]:
    """Every content that a branch names."""
    hashes: dict[str, None] = {}
    for turn in told:
        if turn.message.rest is None:
            continue
        try:
            hashes.update(dict.fromkeys(named_hashes(turn.message.rest)))
        except UNREADABLE as error:
            raise damaged(f"The message {turn.message.id}", error) from error
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
    except UNREADABLE as error:
        raise damaged(f"The reply {reply.id}", error) from error


def committed_hashes(committed: Committed) -> tuple[str, ...]:
    """The hashes of the texts that a branch's compactions put in place of messages."""
    try:
        return receipt_hashes(committed.bodies)
    except UNREADABLE as error:
        raise damaged("A compaction", error) from error


def read_receipts(bodies: Iterable[Body], contents: Contents) -> tuple[Receipt, ...]:
    """Receipts with the texts that stand in for what they took out."""
    try:
        return tuple(read_receipt(body, contents) for body in bodies)
    except UNREADABLE as error:
        raise damaged("A compaction", error) from error


def read_message(node: Node, contents: Contents) -> TurnInput:
    """The turn a message was asked with."""
    rest = node.rest
    if node.erased:
        contents = {name: data for name, data in contents.items() if name not in node.erased}
    try:
        if rest is not None and not _ATTACHING.issuperset(rest):
            return read_turn(node.body, contents, message_id=node.id)
        attached, results, erased = read_attached(rest, contents) if rest is not None else _NOTHING_ATTACHED
        # Most turns set nothing; reading them is much of what opening a long conversation takes.
        return TurnInput(
            text=node.text,
            typed=node.text,
            id=node.id,
            attached=attached,
            results=results,
            layout=node.layout,
            carry_forward=node.carry_forward,
            history=_WHOLE,
            image_notes=False,
            warnings=erased,
        )
    except UNREADABLE as error:
        raise damaged(f"The message {node.id}", error) from error


def check_node(node: Node) -> None:
    """Read everything that a message says but for its contents; raises for what nobody could go on from."""
    if node.role is _REPLY:
        read_calls(node)
    else:
        path_hashes([Told(message=node, reply=None)])
        read_message(node, {})
    read_time(node)


def read_time(node: Node) -> datetime | None:
    """When a message was said, if that was written down."""
    try:
        return datetime.fromisoformat(node.at) if node.at else None
    except ValueError as error:
        raise damaged(f"The time of the message {node.id}", error) from error
