"""Compressed responses, and responses that a client already has.

``accepts_gzip`` and ``has_etag`` read what a client says about them. ``add_etag_and_compress`` does both for a whole body.
"""

import asyncio
import gzip
from hashlib import blake2b

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message

# Bodies that may be compressed; an event stream never is, because its events must leave at once.
_TEXT_TYPES = ("application/json", "text/markdown", "text/plain")
# Below this, a compressed body and its headers save nothing.
MIN_COMPRESSED_BYTES = 1_000
# A larger body is compressed in a thread, so that it does not hold up streams.
_MAX_INLINE_BYTES = 50_000
# Half the time of the default level for nearly the same size.
_COMPRESSION_LEVEL = 5
_ETAG_BYTES = 16


def may_compress(start: Message) -> bool:
    """Return whether the body of a response may be compressed and get an ETag, by the message that starts it."""
    headers = Headers(raw=start["headers"])
    kind = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and kind in _TEXT_TYPES and "content-encoding" not in headers


async def add_etag_and_compress(sent: Headers, start: Message, body: bytes) -> tuple[Message, bytes]:
    """Return the start and the body of a response: without a body if the client has it, else compressed if it may be.

    ``sent`` are the headers of the request.
    """
    if len(body) < MIN_COMPRESSED_BYTES:
        return start, body
    headers = MutableHeaders(raw=list(start["headers"]))
    etag = headers.setdefault("ETag", f'W/"{blake2b(body, digest_size=_ETAG_BYTES).hexdigest()}"')
    headers.add_vary_header("Accept-Encoding")
    if has_etag(sent, etag):
        del headers["content-type"], headers["content-length"]
        return {**start, "status": 304, "headers": headers.raw}, b""
    if accepts_gzip(sent):
        if len(body) > _MAX_INLINE_BYTES:
            body = await asyncio.to_thread(gzip.compress, body, _COMPRESSION_LEVEL, mtime=0)
        else:
            body = gzip.compress(body, _COMPRESSION_LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
    return {**start, "headers": headers.raw}, body


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
