"""Placement: where things stand in a turn's prompt. A planner makes it; advancing a state follows it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Form(StrEnum):
    """How much of an artifact stands in the request."""

    FULL = "full"
    PREVIEW = "preview"
    HANDLE = "handle"
    REFERENCE = "reference"
    UPDATE = "update"
    SUMMARY = "summary"


class Lapse(StrEnum):
    """What the pause before a request did to the cache: nothing, or it outlasted it; for up to an hour, or longer.

    One that would have outlasted it, and was bridged by a request that kept it, is ``kept``.
    """

    UNKNOWN = "unknown"
    NONE = "none"
    SHORT = "short"
    LONG = "long"
    KEPT = "kept"


class Placement(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What of the prompt before stays as it was sent, and how the rest is laid behind it.

    ``keep`` is how many messages stay, none for all of them. At 0 everything folds into the library and the talk. From
    1 on the system message stays as well as every turn that begins before that message; of those behind only the talk
    stays where it was, and what they brought stands in the message that is asked now. Of the first of those ``within``
    is how many of its pieces stay as well; ``order`` is that of texts that such a message shows first, where it is not
    the one in which they were first seen. A request whose system prompt, tools or model change keeps nothing.
    ``forms`` are those of artifacts that stand as less than what is carried forward. ``promotes`` says that what a turn
    attached goes into the library as soon as it is over, not only when an epoch ends. ``priced`` says that prices
    decide: the system message holds no library, and questions state what is attached. ``why`` is a sentence for people.

    What follows is said where prices decide, and is written down with the turn, because it cannot be derived again.
    Of what changed, ``forms`` says what is shown whole. ``marks`` are messages after which a cache is told to keep what
    it has, beside the last one; those up to ``lasting`` are meant for the longer lifetime. ``served`` is the last
    message that the cache is expected to serve. ``at`` is when it was planned, ``lapse`` what the pause before did,
    ``kept`` when what was sent last before was last sent again, only to keep it in the cache.
    ``cost`` is what the plan is expected to cost, in tokens of plain input, and ``other`` what the next best would.
    """

    keep: int | None = None
    forms: Mapping[str, Form] = {}
    promotes: bool = False
    priced: bool = False
    why: str = ""
    within: int = 0
    order: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()
    lasting: int | None = None
    served: int | None = None
    at: datetime | None = None
    lapse: Lapse = Lapse.UNKNOWN
    kept: datetime | None = None
    cost: float | None = None
    other: float | None = None
