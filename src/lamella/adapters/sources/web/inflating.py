"""Inflating: what a server compressed, a little at a time, so that a small answer cannot fill the memory."""

import zlib
from collections.abc import Iterator

from lamella.adapters.sources.cache.entry import TRY_AGAIN
from lamella.errors import SourceUnreadableError

# What is asked for, and all that is taken.
ACCEPTED = "gzip, deflate"
_STEP = 65_536
_GZIP, _ZLIB, _RAW = 31, 15, -15


def inflate(chunks: Iterator[bytes], encoding: str, *, name: str) -> Iterator[bytes]:
    """The body that chunks of an answer hold, in pieces that are small whatever they were compressed from."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise SourceUnreadableError(
            f"{name} is sent as {encoding[:40]!r}, which was not asked for.", hint="Save the page, and attach its text."
        )
    try:
        yield from _inflate(chunks, gzip=encoding != "deflate")
    except zlib.error as error:
        raise SourceUnreadableError(
            f"{name} is sent compressed, and that is broken: {error}.", hint=TRY_AGAIN
        ) from error


def _inflate(chunks: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    inflater = None
    for chunk in chunks:
        if not chunk:
            continue
        if inflater is None:
            # Some servers mean the bare format by deflate, others the one with a head.
            bare = not gzip and chunk[0] & 0x0F != 8
            inflater = zlib.decompressobj(_GZIP if gzip else _RAW if bare else _ZLIB)
        rest = chunk
        while rest and not inflater.eof:
            yield inflater.decompress(rest, _STEP)
            rest = inflater.unconsumed_tail
    if inflater is not None:
        yield inflater.flush()
