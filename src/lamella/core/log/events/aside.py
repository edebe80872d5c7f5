"""Asides: model calls that gave no answer of the conversation, a plan for instance, or a summary."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lamella.core.log.call import Call
from lamella.core.log.events.call import StoredCall, read_call
from lamella.core.values import replace

_ANY_TIME = "2026-01-01"


class AsideEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A call on the way to an answer, and its ``purpose``; what it said stands in it nowhere.

    ``parent`` is the message that was the last when it was made, none before the first: it belongs to the question
    that waits there, or to the next one asked after it. ``started`` is when one was sent that keeps a cache.
    """

    parent: str
    purpose: str
    call: StoredCall
    started: str = ""


def read_asides(events: Sequence[AsideEvent]) -> tuple[Call, ...]:
    """The calls, each with its purpose; a ``ValueError`` for an amount of money or a time that is none."""
    for event in events:
        datetime.fromisoformat(event.started or _ANY_TIME)
    return tuple(replace(read_call(event.call), purpose=event.purpose) for event in events)
