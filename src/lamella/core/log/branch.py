"""A branch read back: its turns with their contents, what was compacted before each, and the calls of its replies."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache

from lamella.core.artifacts.model import Artifact
from lamella.core.log.call import Call
from lamella.core.log.calls import read_call
from lamella.core.log.compactions import NONE_COMMITTED, Committed
from lamella.core.log.events import Body, Contents, named_hashes, read_attached, read_turn
from lamella.core.log.ids import Voice
from lamella.core.log.nodes import UNREADABLE, Node, Told, damaged
from lamella.core.log.receipt import Receipt
from lamella.core.log.receipts import read_receipt, receipt_hashes
from lamella.core.log.terms import CarryForward, Layout, Terms
from lamella.core.log.turn import Turn
from lamella.core.values import replace

_USUAL = Terms()
# Members by name of their own: see docs/decisions/msgspec.md.
_REPLY = Voice.REPLY
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


def read_turns(
    told: Iterable[Told], contents: Contents, committed: Committed = NONE_COMMITTED, *, usual: Terms
) -> list[Turn]:
    """A branch's turns with their contents, each with its reply and with what was compacted before it.

    ``usual`` are the terms of turns that were written down without any.
    """
    before = committed.before
    turns: list[Turn] = []
    for one in told:
        turn = read_message(one.message, contents, usual=usual)
        if one.message.id in before:
            turn = replace(turn, receipts=read_receipts(before[one.message.id], contents))
        if one.reply is not None:
            turn = replace(turn, reply=one.reply.text, reply_id=one.reply.id)
        turns.append(turn)
    return turns


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


def read_message(node: Node, contents: Contents, *, usual: Terms) -> Turn:
    """The turn a message was asked with."""
    rest = node.rest
    if node.erased:
        contents = {name: data for name, data in contents.items() if name not in node.erased}
    try:
        if rest is not None and not _ATTACHING.issuperset(rest):
            return read_turn(node.body, contents, usual=usual, message_id=node.id)
        attached, results, erased = read_attached(rest, contents) if rest is not None else _NOTHING_ATTACHED
        # Most turns set nothing; reading them is much of what opening a long conversation takes.
        return Turn(
            text=node.text,
            typed=node.text,
            id=node.id,
            attached=attached,
            results=results,
            terms=_find_terms(node.layout or usual.layout, node.carry_forward or usual.carry_forward),
            warnings=erased,
        )
    except UNREADABLE as error:
        raise damaged(f"The message {node.id}", error) from error


@cache
def _find_terms(layout: Layout, carry_forward: CarryForward) -> Terms:
    """The terms of a turn that sets nothing else; thousands of turns share a few of them."""
    return Terms(layout=layout, carry_forward=carry_forward)


def check_node(node: Node) -> None:
    """Read everything that a message says but for its contents; raises for what nobody could go on from."""
    if node.role is _REPLY:
        read_calls(node)
    else:
        path_hashes([Told(message=node, reply=None)])
        read_message(node, {}, usual=_USUAL)
    read_time(node)


def read_time(node: Node) -> datetime | None:
    """When a message was said, if that was written down."""
    try:
        return datetime.fromisoformat(node.at) if node.at else None
    except ValueError as error:
        raise damaged(f"The time of the message {node.id}", error) from error
