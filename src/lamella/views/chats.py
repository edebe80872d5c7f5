"""A conversation as it is read: what was said, and the branches on which it was."""

from collections.abc import Sequence
from typing import TypedDict

from lamella.core.log.nodes import Node, Told, name_attached


class ReplyBody(TypedDict):
    """A reply, by the id of its message."""

    message: str
    at: str
    text: str


class SaidBody(ReplyBody):
    """A turn as it was said: the question, the ids of what came with it, and the reply if there is one."""

    attached: list[str]
    reply: ReplyBody | None


class BranchBody(TypedDict):
    """A branch by its last message: how many turns it has, and the last of them."""

    branch: str
    active: bool
    turns: int
    last: SaidBody | None


def view_said(told: Told) -> SaidBody:
    """One turn as it was said."""
    message = told.message
    return SaidBody(
        message=message.id,
        at=message.at,
        text=message.text,
        attached=list(name_attached(message)),
        reply=None if told.reply is None else _view_reply(told.reply),
    )


def view_branch(head: str, turns: Sequence[Told], *, active: bool) -> BranchBody:
    """Enough of a branch to tell it from the others."""
    return BranchBody(branch=head, active=active, turns=len(turns), last=view_said(turns[-1]) if turns else None)


def _view_reply(node: Node) -> ReplyBody:
    return ReplyBody(message=node.id, at=node.at, text=node.text)
