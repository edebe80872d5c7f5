"""Deltas: an answer as it arrives, and the reply they add up to."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from lamella.core.messages.usage import UNKNOWN_USAGE, Usage
from lamella.core.values import describe

# Half of a character that takes two: parts of a text may come apart there.
_HALF = re.compile("[\ud800-\udfff]")


class StopReason(StrEnum):
    """Why an answer ended."""

    END = "end"
    LENGTH = "length"
    TOOLS = "tools"
    SEQUENCE = "sequence"
    REFUSED = "refused"
    WINDOW = "window"
    PAUSED = "paused"
    CIRCLES = "circles"
    OTHER = "other"


class TextDelta(Struct, frozen=True, kw_only=True):
    """More of the answer."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True):
    """More of what the model says it thought."""

    text: str


class ToolCall(Struct, frozen=True, kw_only=True, gc=False):
    """A call the model wants made; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What the provider says about its cache, compared with an earlier request. ``missed`` in tokens."""

    verdict: str
    reason: str | None = None
    missed: int | None = None


class NativeReply(Struct, frozen=True, kw_only=True, gc=False):
    """A reply in its wire format's own form, as JSON, to be handed back unchanged along with its tools' outputs."""

    format: str
    json: str

    def __repr__(self) -> str:
        return describe(self, without=("json",))


class Stop(Struct, frozen=True, kw_only=True, gc=False):
    """The end of an answer; nothing comes after it. ``id`` is the provider's name for the reply."""

    reason: StopReason
    id: str | None = None
    diagnosis: Diagnosis | None = None
    carried: NativeReply | None = None


Delta = TextDelta | ReasoningDelta | ToolCall | Usage | Stop


class Reply(Struct, frozen=True, kw_only=True, gc=False):
    """A finished answer."""

    text: str
    stop: StopReason
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = UNKNOWN_USAGE
    id: str | None = None
    diagnosis: Diagnosis | None = None
    carried: NativeReply | None = None


def join_text(parts: Iterable[str]) -> str:
    """Parts of a text; a character whose halves came apart is whole again, and a half that stays alone is marked."""
    text = "".join(parts)
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fold_deltas(deltas: Iterable[Delta]) -> Reply | None:
    """The reply that deltas add up to, or none while its end is missing. Of several usages the last counts."""
    known = tuple(deltas)
    stop = next((delta for delta in known if isinstance(delta, Stop)), None)
    if stop is None:
        return None
    return Reply(
        text=join_text(delta.text for delta in known if isinstance(delta, TextDelta)),
        stop=stop.reason,
        reasoning="".join(delta.text for delta in known if isinstance(delta, ReasoningDelta)),
        calls=tuple(delta for delta in known if isinstance(delta, ToolCall)),
        usage=next((delta for delta in reversed(known) if isinstance(delta, Usage)), UNKNOWN_USAGE),
        id=stop.id,
        diagnosis=stop.diagnosis,
        carried=stop.carried,
    )
