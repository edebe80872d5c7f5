"""Trusted locations: models, stores and servers that the user has allowed, in a private file.

A location is stored with the setting that names it, in the normalised form that its adapter uses.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lamella.errors import SettingError
from lamella.settings.loading import read_private_file, write_private_file

TRUST_FILE_NAME = "trust.json"


class TrustedLocation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A location that may be used no matter who names it, and since when."""

    field: str
    place: str
    since: str

    def matches(self, field: str, location: str) -> bool:
        """Return whether a location is this one, or a model of this provider."""
        if field != self.field:
            return False
        return location == self.place or (field == "model" and _get_provider_prefix(location) == self.place)


class _TrustFileBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lamella: int = 1
    trusted: tuple[TrustedLocation, ...] = ()


class TrustFile:
    """The file with the trusted locations.

    It is read on every call, so that a location allowed by another process counts at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Sequence[TrustedLocation]:
        """Return all trusted locations, oldest first."""
        if not self.path.is_absolute():
            # Without a home folder the path would be relative, and a file of the project would grant trust.
            return ()
        return read_private_file(self.path, _TrustFileBody).trusted

    def is_trusted(self, field: str, location: str) -> bool:
        """Return whether the user has allowed a location."""
        return any(one.matches(field, location) for one in self.read())

    def add(self, field: str, location: str, *, since: str) -> bool:
        """Allow a location; return False if it was allowed before."""
        locations = self.read()
        if any(one.field == field and one.place == location for one in locations):
            return False
        self._write([*locations, TrustedLocation(field=field, place=location, since=since)])
        return True

    def remove(self, field: str, location: str) -> bool:
        """Withdraw the permission for a location; return False if there was none."""
        locations = self.read()
        kept = [one for one in locations if (one.field, one.place) != (field, location)]
        if len(kept) == len(locations):
            return False
        self._write(kept)
        return True

    def _write(self, locations: Sequence[TrustedLocation]) -> None:
        if not self.path.is_absolute():
            raise SettingError(
                "There is no home to write trusted places down in.", hint="Set HOME to a folder of yours."
            )
        write_private_file(self.path, _TrustFileBody(trusted=tuple(locations)))


def _get_provider_prefix(location: str) -> str:
    return location.partition(":")[0]
