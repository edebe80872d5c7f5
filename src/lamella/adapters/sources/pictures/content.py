"""What bytes are: a picture of a kind that models take, whole, and of a size that can be true.

Names and types that are given prove nothing. No pixel is decoded: a picture that would fill the memory of whoever opens
it says so in its first bytes.
"""

import re
from collections.abc import Callable
from io import BytesIO

import imagesize

from lamella.core.artifacts.make import make_image_value
from lamella.core.artifacts.model import Image
from lamella.errors import SourceTooLargeError, SourceUnreadableError

MAX_PICTURE_BYTES = 50_000_000
# The largest sensors of cameras and phones have 200 million pixels; what claims more is made to fill a memory.
MAX_PIXELS = 250_000_000
MAX_SIDE = 65_000

_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
TYPES = tuple(_SIGNATURES)
# What people take for a picture, and models do not.
_OTHERS = {
    "an SVG drawing": re.compile(
        rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--|<!DOCTYPE svg|<svg)", re.IGNORECASE
    ),
    "a PDF": re.compile(rb"%PDF-"),
    "a TIFF picture": re.compile(rb"II\*\x00|MM\x00\*"),
    "an AVIF picture": re.compile(rb"....ftypavi", re.DOTALL),
    "a HEIC picture": re.compile(rb"....ftyp(?:hei|hev|mif|msf)", re.DOTALL),
    "a BMP picture": re.compile(rb"BM"),
    "an icon": re.compile(rb"\x00\x00\x01\x00"),
}
_SAVE = "Save it as PNG, JPEG, GIF or WebP."


def parse_image(data: bytes, *, media_type: str | None, name: str) -> Image:
    """A picture with its size; an error if its bytes are no whole picture that models take, or of another type."""
    if len(data) > MAX_PICTURE_BYTES:
        raise SourceTooLargeError(
            f"{name} has {len(data):,} bytes; a picture may have {MAX_PICTURE_BYTES:,}.", hint="Make it smaller."
        )
    found = next((kind for kind, signature in _SIGNATURES.items() if signature.match(data)), None)
    if found is None:
        raise _no_picture(data, name)
    width, height = _read_size(data)
    if width == 0 or height == 0:
        raise SourceUnreadableError(f"{name} is a picture of {width} by {height} pixels.", hint="Save it once more.")
    if width < 0 or height < 0 or not _IS_WHOLE[found](data):
        raise SourceUnreadableError(
            f"{name} is not a picture that models take: it begins as {found} and breaks off ({len(data):,} bytes).",
            hint="Save or download it once more.",
        )
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise SourceTooLargeError(
            f"{name} says that it has {width:,} by {height:,} pixels; a picture may have {MAX_PIXELS:,} in all.",
            hint="Make it smaller.",
        )
    if media_type not in (None, found):
        raise SourceUnreadableError(
            f"{name} is given as {media_type}, and its bytes are {found}.", hint=f"Give it the media type {found}."
        )
    return make_image_value(data, media_type=found, width=width, height=height)


def _read_size(data: bytes) -> tuple[int, int]:
    """Width and height as the bytes say; negative where they do not say it."""
    try:
        width, height = imagesize.get(BytesIO(data))
    except (ValueError, TypeError, OverflowError, IndexError, ArithmeticError):
        return -1, -1  # the package has an answer for most broken files, and an exception for the rest
    return int(width), int(height)


def _no_picture(data: bytes, name: str) -> SourceUnreadableError:
    other = next((what for what, signature in _OTHERS.items() if signature.match(data)), None)
    if other is not None:
        return SourceUnreadableError(f"{name} is {other}, which is not a picture that models take.", hint=_SAVE)
    return SourceUnreadableError(
        f"{name} is not a picture that models take ({len(data):,} bytes).", hint=f"Use one of: {', '.join(TYPES)}."
    )


def _ends_png(data: bytes) -> bool:
    at = 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        at += 12 + length
        if name == b"IEND":
            return at <= len(data)
    return False


def _ends_jpeg(data: bytes) -> bool:
    """Whether the scan begins and its end comes; a small picture inside the head has ends of its own."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        if data[at + 1] == 0xDA:
            return data.find(b"\xff\xd9", at) > 0
        # Fill bytes stand alone; every other part says how long it is.
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return False


def _ends_gif(data: bytes) -> bool:
    return data.rstrip(b"\0").endswith(b";")


def _ends_webp(data: bytes) -> bool:
    return int.from_bytes(data[4:8], "little") + 8 <= len(data)


_IS_WHOLE: dict[str, Callable[[bytes], bool]] = {
    "image/png": _ends_png,
    "image/jpeg": _ends_jpeg,
    "image/gif": _ends_gif,
    "image/webp": _ends_webp,
}
