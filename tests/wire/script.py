"""Scripted responses of a loopback server: answer, fail, fall silent, break off."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A tool call the model makes."""

    id: str
    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer. ``usage`` replaces fields of what the server would report; ``diagnosis`` is in its wire format."""

    text: str = "Certainly."
    reasoning: str = ""
    calls: tuple[Wanted, ...] = ()
    usage: Mapping[str, object] = field(default_factory=dict)
    stop: str | None = None
    diagnosis: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """An error in the provider's own form; with ``inside``, after a stream began."""

    status: int = 500
    kind: str = "api_error"
    words: str = "Internal server error"
    headers: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A web page where an API was expected."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing at all; with ``late``, nothing more after the stream began."""

    late: bool = False


@dataclass(frozen=True, slots=True)
class Garbage:
    """Bytes that are no events."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection closed in the middle of the answer; with ``clean``, the stream ends as if it were complete."""

    clean: bool = False


@dataclass(frozen=True, slots=True)
class Endless:
    """An answer that goes on until the client leaves; with ``text``, of words, else of nothing that is an answer."""

    text: bool = False


Act = Say | Fail | Page | Silence | Garbage | Cut | Endless
