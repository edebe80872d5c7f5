"""Lines: text of any origin as it may stand on one line of a terminal."""

import re
from datetime import UTC, datetime

_LONGEST = 2_000
_KEPT = _LONGEST // 2
# What moves a cursor, ends a line, turns the writing direction round, or is half of a character.
_BUT_LINES = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSEEN = re.compile(rf"[\t\n{_BUT_LINES}]")
_UNSEEN_BUT_LINES = re.compile(rf"[{_BUT_LINES}]")


def show_line(text: str) -> str:
    """A text on one line: what cannot be seen is written as an escape, and what is endless is cut in the middle."""
    if len(text) > _LONGEST:
        text = f"{text[:_KEPT]} … {len(text) - 2 * _KEPT:,} characters … {text[-_KEPT:]}"
    return _UNSEEN.sub(_escape, text)


def show_lines(text: str) -> str:
    """A text that keeps its lines and tabs and can do nothing else to a terminal."""
    return _UNSEEN_BUT_LINES.sub(_escape, text)


def show_json(text: str) -> str:
    """JSON that means the same, with what cannot be seen as JSON's own escapes."""
    return _UNSEEN_BUT_LINES.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def tell_count(number: int, noun: str) -> str:
    """So many of something: 1 turn, 2 turns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tell_time(at: str, *, utc: bool = False) -> str:
    """A time as it was written down, as clocks here show it, or in UTC; what is no time is told as it stands."""
    try:
        moment = datetime.fromisoformat(at)
        # What has no zone was written in UTC.
        known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return f"{known.astimezone(UTC if utc else None):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return show_line(at)


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()
