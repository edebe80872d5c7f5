"""An answer on its way into a conversation: what the model said, and how it came."""

from msgspec import Struct

from lamella.core.log.call import CacheUse, Timing
from lamella.core.log.events.reply import CitedSource
from lamella.core.messages.delta import Reply


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """A reply with how it came: how long that took, how often it was tried before, and whether it was cut short.

    ``message`` is the question it answers, where that is known. ``foreseen`` is what a provider that knows its own
    cache said it would serve, before it was sent. ``sources`` are what the numbers in it point to.
    """

    reply: Reply
    timing: Timing = Timing()
    retries: int = 0
    ended: str = ""
    foreseen: CacheUse | None = None
    message: str | None = None
    sources: tuple[CitedSource, ...] = ()
