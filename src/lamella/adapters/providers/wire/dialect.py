"""A dialect: a wire format as one value."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lamella.adapters.providers.wire.body import Body
from lamella.adapters.providers.wire.fields import Fields
from lamella.core.messages.delta import Reply
from lamella.core.messages.request import Request
from lamella.profiles import ModelProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format: how a request is said in it, how its answers and streams are told from others, how they are read.

    ``maker`` is whose models speak it. ``build`` gives arguments for the SDK, ``write`` makes of them what the SDK puts
    on the wire.
    """

    name: str
    maker: str
    build: Callable[[Request, ModelProfile], Body]
    write: Callable[[Body], Body]
    is_answer: Callable[[Fields], bool]
    is_event: Callable[[Fields], bool]
    read_reply: Callable[[object], Reply | None]
    read_events: Callable[[Iterable[Fields]], Reply | None]
