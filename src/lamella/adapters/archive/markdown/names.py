"""Names of files: a title as every system can have it, in at most 100 bytes."""

import re
import unicodedata
from pathlib import Path

from lamella.errors import BadInputError

MAX_BYTES = 100
UNTITLED = "Untitled chat"

_ENDING = ".md"
# Refused by Windows, or read by wiki links and shells as something else.
_RESERVED = re.compile(r'[<>:"/\\|?*#^\[\]]')
_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_LOST_CATEGORIES = ("Cc", "Cn", "Co", "Cs", "Zl", "Zp")
_DEVICES = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])\s*(?:\.|$)", re.IGNORECASE)
_JOINERS = "\u200d\ufe0f"


def name_file(title: str, number: int = 1) -> str:
    """The file name for a title; ``number`` tells apart conversations of the same title."""
    suffix = (f" {number}" if number > 1 else "") + _ENDING
    stem = _clean(title)
    if _DEVICES.match(stem):
        stem = f"Chat {stem}"
    return (_cut(stem, MAX_BYTES - len(suffix)) or UNTITLED) + suffix


def refuse_file(path: Path) -> BadInputError:
    """A file that was named to be written to, and has what the conversation does not know."""
    return BadInputError(f"{path} is there and holds something else.", hint="Name another file, or move this one away.")


def same_file(name: str) -> str:
    """A name as systems compare it that do not tell case or composed letters apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _clean(title: str) -> str:
    composed = unicodedata.normalize("NFC", title)
    kept = "".join(" " if _is_lost(character) else character for character in composed)
    return _trim(" ".join(_RESERVED.sub(" ", kept).split()))


def _is_lost(character: str) -> bool:
    return character in _BIDI or unicodedata.category(character) in _LOST_CATEGORIES


def _cut(stem: str, size: int) -> str:
    encoded = stem.encode()
    if len(encoded) <= size:
        return stem
    return _trim(encoded[:size].decode(errors="ignore").rstrip(_JOINERS))


def _trim(stem: str) -> str:
    """Windows drops dots and spaces at the end; a dot at the start hides the file."""
    return stem.strip(". ")
