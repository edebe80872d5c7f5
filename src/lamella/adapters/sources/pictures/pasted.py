"""Pasted pictures: what stands in a text as letters, ``data:image/png;base64,…``."""

import re
from base64 import b64decode
from binascii import Error
from urllib.parse import unquote_to_bytes

from lamella.adapters.sources.pictures.content import MAX_PICTURE_BYTES
from lamella.errors import SourceTooLargeError, SourceUnreadableError

PASTED = "The pasted picture"
_PASTE_AGAIN = "Paste it once more, or attach the file itself."
_HEAD = re.compile(r"data:([^,;]{0,100})((?:;[^,;]{0,100}){0,8}),", re.IGNORECASE)
_BLANK = re.compile(rb"\s+")


def is_pasted(name: str) -> bool:
    """Whether a name is no name but a picture as letters."""
    return name[:5].lower() == "data:"


def read_pasted(uri: str) -> bytes:
    """The bytes behind the letters; what type they are is told by themselves."""
    head = _HEAD.match(uri)
    if head is None:
        raise SourceUnreadableError(f"{PASTED} has no comma between its type and its bytes.", hint=_PASTE_AGAIN)
    if len(uri) > 3 * MAX_PICTURE_BYTES:
        raise SourceTooLargeError(
            f"{PASTED} has {len(uri):,} letters; a picture may have {MAX_PICTURE_BYTES:,} bytes.",
            hint="Make it smaller.",
        )
    if not head[2].lower().endswith(";base64"):
        return unquote_to_bytes(uri[head.end() :])
    letters = _BLANK.sub(b"", unquote_to_bytes(uri[head.end() :])).rstrip(b"=")
    try:
        return b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
    except (Error, ValueError) as error:
        raise SourceUnreadableError(f"{PASTED} is not base64: {error}.", hint=_PASTE_AGAIN) from error
