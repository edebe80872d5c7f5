"""Replies: what was answered to a question, and the model calls that gave it."""

from msgspec import Struct

from lamella.core.log.events.call import StoredCall


class ReplyEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="reply"):
    """An answer. It takes the tool rounds of its question with it, which were written down before.

    One that comes ``aside`` ends a branch of its own: the conversation had gone on, and goes on where it was.
    """

    id: str
    parent: str
    text: str
    calls: tuple[StoredCall, ...] = ()
    aside: bool = False
