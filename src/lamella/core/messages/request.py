"""A request to a model, belonging to no provider: messages, tools, and what is known of their stability."""

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages.headings import LIBRARY_HEADING
from lamella.core.messages.model import Message, Role
from lamella.core.values import describe, replace


class Seams(Struct, frozen=True, kw_only=True):
    """Where stable stretches of a request end.

    ``fixed`` and ``system`` are places in the system message's text, in characters: where its most stable part ends,
    and every place where a later request may go on differently. ``messages`` is how many of the messages, the system
    message included, the next request will begin with; none for all of them.
    """

    fixed: int | None = None
    system: tuple[int, ...] = ()
    messages: int | None = None


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One request. ``pause`` is how many seconds are expected until the next; ``answer`` bounds the reply in tokens.

    ``conversation`` names the conversation to caches that ask for a name; ``compare`` is the id of the reply before,
    for providers that say why a cache was missed. ``marks`` are messages after which the caller wants a breakpoint;
    those up to ``lasting`` are to be kept for a longer lifetime, where there is one. ``temperature``, ``effort`` and
    ``caching``, which is who places breakpoints, are the provider's own where there are none. Where the model may not
    ``call``, it is told of its tools and has to answer in words. ``extras`` is a JSON object of further fields of the
    wire format.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    answer: int = 4_096
    conversation: str | None = None
    seams: Seams | None = None
    pause: float | None = None
    compare: str | None = None
    marks: tuple[int, ...] = ()
    lasting: int | None = None
    temperature: float | None = None
    effort: str | None = None
    caching: str | None = None
    call: bool = True
    extras: str = "{}"

    def __repr__(self) -> str:
        return describe(self, without=("messages", "tools"))

    @property
    def settled(self) -> Seams:
        """The seams that were given, else those that the messages show."""
        seams = self.seams or find_seams(self.messages)
        # While tools are answered the next request begins with this one, whatever becomes of it in the next turn.
        return replace(seams, messages=None) if self.in_round else seams

    @property
    def in_round(self) -> bool:
        """Whether the model is told what its tools gave back, and may call more of them."""
        return bool(self.messages) and self.messages[-1].role is Role.TOOL


def find_seams(messages: Sequence[Message]) -> Seams:
    """Seams as far as messages show them: L1 ends where the library begins, and each piece of the library ends."""
    system = messages[0] if messages and messages[0].role is Role.SYSTEM else None
    if system is None:
        return Seams()
    ends = tuple(accumulate(len(piece) for piece in system.pieces))
    opened = (end for end, piece in zip(ends, system.pieces, strict=True) if piece.endswith(LIBRARY_HEADING))
    return Seams(fixed=next(opened, None), system=ends)
