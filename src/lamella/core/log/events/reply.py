"""Replies: what was answered to a question, the model calls that gave it, and the sources that it cites."""

from msgspec import Struct

from lamella.core.log.events.call import StoredCall


class CitedSource(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a number in a reply points to: something that came with the question, by its id.

    ``place`` is where in its file the passage stands, and ``span`` from where to where in the text that came, where
    that holds more than the passage.
    """

    id: str
    place: str = ""
    span: tuple[int, int] | None = None


class ReplyEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="reply"):
    """An answer. It takes the tool rounds of its question with it, which were written down before.

    One that comes ``aside`` ends a branch of its own: the conversation had gone on, and goes on where it was. The first
    of its ``sources`` is what ``[^1]`` in it means, and so on.
    """

    id: str
    parent: str
    text: str
    calls: tuple[StoredCall, ...] = ()
    aside: bool = False
    sources: tuple[CitedSource, ...] = ()
