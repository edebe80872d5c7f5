"""Compressed responses, and responses that a client already has.

``accepts_gzip`` and ``has_etag`` read what a client says about them.
"""

from starlette.datastructures import Headers


def accepts_gzip(headers: Headers) -> bool:
    """Return whether a client accepts a response that is compressed with gzip."""
    for one in headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = one.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def has_etag(headers: Headers, etag: str) -> bool:
    """Return whether a client has the response with this ETag; compressed and plain ones are the same."""
    given = [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]
    return "*" in given or etag.removeprefix("W/") in given
