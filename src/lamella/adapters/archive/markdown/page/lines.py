"""Escaping: any text as lines that cannot be taken for the structure of an archive, and back to the same characters.

Two rules, each the exact inverse of the other way. A line that would be read as structure gets one backslash more in
front. A character that editors and line-ending conversion would change, such as a carriage return or a NUL, becomes
``&#13;``; where a text itself says ``&#13;``, its ampersand becomes ``&amp;``.
"""

import re

_STRUCTURE = r"\*\*(?:user|ai)\*\*:|\[Context:|\[Timestamp:|<!-- lamella-context"
_ESCAPE = re.compile(rf"^(?=\\*(?:{_STRUCTURE}))", re.MULTILINE)
_UNESCAPE = re.compile(rf"^\\(?=\\*(?:{_STRUCTURE}))", re.MULTILINE)

_FRAGILE = "\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029"
_FRAGILE_NUMBERS = "|".join(str(n) for n in (*range(9), *range(11, 32), 0x7F, 0x85, 0x2028, 0x2029))
_CHARACTER = re.compile(f"[{_FRAGILE}]")
_REFERENCE = re.compile(f"&((?:amp;)*)#({_FRAGILE_NUMBERS});")


def escape_text(text: str) -> str:
    """A text as it stands after ``**user**: ``. Its first line follows that mark and is never taken for structure."""
    if "#" in text:
        text = _REFERENCE.sub(r"&amp;\1#\2;", text)
    text = _CHARACTER.sub(lambda match: f"&#{ord(match[0])};", text)
    first, mark, rest = text.partition("\n")
    return first + mark + _ESCAPE.sub(r"\\", rest)


def unescape_text(written: str) -> str:
    """The text that was escaped."""
    first, mark, rest = written.partition("\n")
    text = first + mark + _UNESCAPE.sub("", rest)
    return _REFERENCE.sub(_read_reference, text) if "#" in text else text


def _read_reference(match: re.Match[str]) -> str:
    ampersands, number = match.groups()
    return f"&{ampersands.removeprefix('amp;')}#{number};" if ampersands else chr(int(number))
