"""Records: one event as it is stored, and the contents it refers to by hash."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.log.events.kinds import EventKind


class Record(Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """One event: what kind, when (RFC 3339, UTC), its body as canonical JSON, and the hashes its body refers to.

    ``counts`` are token counts of texts that came with it. They are derived: with others it is still the same event.
    """

    kind: EventKind
    at: str
    body: str
    contents: tuple[str, ...] = ()
    counts: bytes = b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._said == other._said

    @property
    def _said(self) -> tuple[object, ...]:
        return self.kind, self.at, self.body, self.contents


class Written(Struct, frozen=True, kw_only=True):
    """Records to append, and the bytes of the contents that they bring."""

    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = {}


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What the first ``version`` events of a conversation come to, as bytes that only their writer reads."""

    version: int
    data: bytes


class Listed(Struct, frozen=True, kw_only=True):
    """A conversation in a list: how many events it has, and when the first and the last of them happened."""

    conversation: str
    title: str
    created: str
    updated: str
    version: int
    erased: str | None = None


class Damage(Struct, frozen=True, kw_only=True):
    """Something in a store that is not what it was: where, and what is wrong with it."""

    conversation: str | None
    place: str
    what: str


class StoreStats(Struct, frozen=True, kw_only=True):
    """How much a store holds."""

    schema: int
    conversations: int
    erased: int
    events: int
    contents: int
    content_bytes: int


__all__ = ["Checkpoint", "Damage", "EventKind", "Listed", "Record", "StoreStats", "Written"]
