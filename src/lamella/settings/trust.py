"""Trust: the places that the person has said yes to, in a private file of their own.

A place has the field that names it, as settings do, and is written in the one way that its adapter knows it by.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lamella.errors import SettingError
from lamella.settings.private import read_private, write_private

FILE = "trust.json"


class TrustedPlace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place that may be used whoever names it, and since when."""

    field: str
    place: str
    since: str

    def covers(self, field: str, place: str) -> bool:
        """Whether a place is this one, or a model of this provider."""
        if field != self.field:
            return False
        return place == self.place or (field == "model" and _provider(place) == self.place)


class _TrustFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lamella: int = 1
    trusted: tuple[TrustedPlace, ...] = ()


class TrustBook:
    """What stands in the file; it is read each time, so that a yes counts at once, also one said elsewhere."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Sequence[TrustedPlace]:
        """Every place, the oldest first."""
        if not self.path.is_absolute():
            # Without a home the file would be one of the project's.
            return ()
        return read_private(self.path, _TrustFile).trusted

    def covers(self, field: str, place: str) -> bool:
        """Whether somebody said yes to a place."""
        return any(one.covers(field, place) for one in self.read())

    def add(self, field: str, place: str, *, since: str) -> bool:
        """Say yes to a place; false if that was said before."""
        places = self.read()
        if any(one.field == field and one.place == place for one in places):
            return False
        self._write([*places, TrustedPlace(field=field, place=place, since=since)])
        return True

    def remove(self, field: str, place: str) -> bool:
        """Take a yes back; false if it was never said."""
        places = self.read()
        kept = [one for one in places if (one.field, one.place) != (field, place)]
        if len(kept) == len(places):
            return False
        self._write(kept)
        return True

    def _write(self, places: Sequence[TrustedPlace]) -> None:
        if not self.path.is_absolute():
            raise SettingError(
                "There is no home to write trusted places down in.", hint="Set HOME to a folder of yours."
            )
        write_private(self.path, _TrustFile(trusted=tuple(places)))


def _provider(place: str) -> str:
    return place.partition(":")[0]
