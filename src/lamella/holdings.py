"""Holdings: what a store gives of its conversations, and how one travels between stores, files and people."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.log.records import Record


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What the first ``version`` events of a conversation come to, as bytes that only their writer reads."""

    version: int
    data: bytes


class ChatListing(Struct, frozen=True, kw_only=True):
    """A conversation in a list: how many events it has, and when the first and the last of them happened.

    ``conversation`` is its key, which nobody chose and nobody gets again; ``name`` is what people call it here.
    """

    conversation: str
    name: str
    title: str
    created: str
    updated: str
    version: int
    erased: str | None = None


class Damage(Struct, frozen=True, kw_only=True):
    """Something in a store that is not what it was: where, and what is wrong with it.

    What is ``derived`` can be made again from the events.
    """

    conversation: str | None
    place: str
    what: str
    derived: bool = False


class StoreStats(Struct, frozen=True, kw_only=True):
    """How much a store holds."""

    schema: int
    conversations: int
    erased: int
    events: int
    contents: int
    content_bytes: int


class Chronicle(Struct, frozen=True, kw_only=True):
    """A conversation's events in order, and those of its contents that travel with it, by hash.

    ``conversation`` is its key; ``name`` is what it was called where it comes from, none where that was its key.
    ``warnings`` say what could not be brought along, each in one sentence.
    """

    conversation: str
    name: str | None = None
    title: str
    created: str
    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = {}
    warnings: tuple[str, ...] = ()
