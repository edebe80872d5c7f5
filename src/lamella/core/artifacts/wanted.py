"""What somebody attaches that has to be read first."""

from msgspec import Struct

from lamella.core.artifacts.model import Kind, Policy
from lamella.core.values import describe


class Wanted(Struct, frozen=True, kw_only=True):
    """An attachment that must be read or expanded first: a file, a picture, a page, a folder, a tag or a query.

    ``query`` is asked in the note of that name, or of a codebase, whose files fit the ``budget``. ``data`` are the
    bytes of a picture that is given and only has to be understood; ``via`` says how it came in. What is to be ``fresh``
    is read anew at its source, whatever is kept or was attached as a snapshot.
    """

    kind: Kind
    name: str
    policy: Policy | None = None
    title: str = ""
    via: str | None = None
    query: str | None = None
    data: bytes | None = None
    media_type: str | None = None
    fresh: bool = False
    budget: int | None = None

    def __repr__(self) -> str:
        return describe(self, without=("data",))
