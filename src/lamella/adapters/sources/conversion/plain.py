"""Plain text: what is left of characters that no text has, how long it may be, and how bytes are read as letters."""

import codecs
import re

# Soft hyphens as PDFium writes them, controls, and what Unicode calls no characters. Tabs and line breaks stay.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\x85]")
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_HEAD = 4_096
# What pages that name one of these are written in; browsers read them so.
_ALIASES = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "ascii": "cp1252", "us-ascii": "cp1252"}
_LAST_RESORT = "cp1252"
_LONGEST_TITLE = 300


def clean(text: str) -> str:
    """A text with one kind of line end, nothing that is no character, and no runs of blank lines."""
    text = _NO_TEXT.sub("", _LINE_ENDS.sub("\n", text))
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip("\n")


def clean_title(text: str) -> str:
    """A title in one line."""
    return " ".join(_NO_TEXT.sub("", text).split())[:_LONGEST_TITLE]


def cut(text: str, limit: int) -> str:
    """A text of at most so many characters; where something is left out, its last line says how much."""
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition("\n")[0] or text[:limit]
    return f"{kept}\n\n[Cut here: {len(text) - len(kept):,} of {len(text):,} characters are left out.]"


def decode(data: bytes, charset: str | None = None, *, is_markup: bool = False) -> str:
    """Bytes as letters: by their mark, as UTF-8 where they are that, by what is said of them, else as Windows letters.

    What is said is often a lie, and what is UTF-8 is hardly ever anything else by chance.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    meta = _META.search(data[:_HEAD]) if is_markup else None
    said = [name.lower() for name in (charset, meta[1].decode("ascii") if meta else None) if name]
    # These are written in the letters of ASCII alone, or in none of them.
    first = [name for name in said if name.startswith(("iso-2022", "utf-16"))]
    for encoding in (*first, "utf-8", *said):
        try:
            return data.decode(_ALIASES.get(encoding, encoding))
        except (LookupError, UnicodeError):
            continue  # a charset that nobody knows, or one that these bytes are not in
    loose = data.decode("utf-8", errors="replace")
    broken = loose.count("\ufffd")
    wide = len(loose) - len(loose.encode("ascii", errors="ignore")) - broken
    # One byte that is none of a letter must not garble all the others: in Windows letters there is hardly such a pair.
    return loose if wide > broken else data.decode(_LAST_RESORT, errors="replace")
