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

    def __ne__(self, other: object) -> bool:
        # A struct does not derive this from ``==``: it would take two equal events for different ones.
        return not self == other

    @property
    def _said(self) -> tuple[object, ...]:
        return self.kind, self.at, self.body, self.contents


class Written(Struct, frozen=True, kw_only=True, gc=False):
    """Records to append, and the bytes of the contents that they bring."""

    records: tuple[Record, ...]
    contents: Mapping[str, bytes] = {}


__all__ = ["EventKind", "Record", "Written"]
