"""An entry of the cache: a text with where it came from, or why there is none."""

from msgspec import Struct

# Goes up when entries mean something else than before: older ones are then as if they were not there.
SCHEMA = 1
# What hints of a failure begin with that passes by itself; told once more, it says when instead.
TRY_AGAIN = "Try again in a few minutes, or attach its text."


class KeptFailure(Struct, frozen=True, kw_only=True):
    """What failed, when, until when that holds, and under which limits: under others it is tried again."""

    code: str
    message: str
    hint: str
    at: str
    until: str
    under: str = ""


class CacheEntry(Struct, frozen=True, kw_only=True):
    """What is known by one key: a text with its title, when it was read and checked; the failure since then, or both.

    ``etag`` and ``modified`` are what a server is asked by whether it has another text.
    """

    key: str
    schema: int = SCHEMA
    text: str | None = None
    title: str = ""
    read: str = ""
    checked: str = ""
    etag: str | None = None
    modified: str | None = None
    failure: KeptFailure | None = None


class PlaceEntry(Struct, frozen=True, kw_only=True):
    """What a file was like when its bytes had this hash, so that one that looks the same is not read through again."""

    key: str
    hash: str
    state: tuple[int, int, int, int]
    schema: int = SCHEMA
