"""Why one text became another: a time, an id, white space, the order of JSON keys, or something else."""

import json
import re
from enum import StrEnum

# Whole names only: a word such as "friend" or "Monica" is no time.
_MONTH = (
    r"(?:jan(?:uary?|uari|vier)?|feb(?:ruary?|ruari)?|mar(?:ch|et|s|zo)?|apr(?:il)?|mayo?|june?|junio?|july?|julio?"
    r"|aug(?:ust(?:us)?)?|sep(?:t|tember|tembre|tiembre)?|oct(?:ober|obre|ubre)?|nov(?:ember|embre|iembre)?"
    r"|dec(?:ember|embre)?)"
)
_DAY = r"(?:mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
TIME_PATTERN = re.compile(
    rf"""\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}
        (?:[t ,]+\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?)?(?:\s?(?:z|utc|gmt|[+-]\d{{2}}:?\d{{2}})\b)?
    |\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{4}}
    |\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?
    |\b(?:{_DAY},?\s+)?\d{{1,2}}(?:st|nd|rd|th)?\.?\s+{_MONTH},?\s+\d{{4}}
    |\b(?:{_DAY},?\s+)?{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?
    |\b{_DAY}\b
    |\b1[4-9]\d{{8}}(?:\d{{3}}|\d{{6}}|\d{{9}}|\.\d+)?\b
    |\b\d+\s+(?:second|minute|hour|day)s?\s+ago\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ID = re.compile(
    r"""[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}
    |\b(?=[\w-]{0,64}\d)(?=[\w-]{0,64}[a-z])[\w-]{6,}
    |\b\d{6,}\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NUMBER = re.compile(r"\d+")
_TIME_MASK, _ID_MASK, _NUMBER_MASK = "\x00t", "\x00i", "\x00n"
# How many enclosing JSON objects are compared.
_MAX_ENCLOSING = 40
_SPACE = re.compile(r"\s+")
# How far around the first difference the masks look for the time or the id that it is part of.
_NEIGHBOURHOOD = 80
# The characters of either side that an example shows before and after the first difference.
_EXAMPLE_BEFORE, _EXAMPLE_AFTER = 32, 48
# Texts longer than this are masked only around the difference.
_MAX_MASKED = 400_000


class TextChange(StrEnum):
    """What changed between two texts."""

    TIME = "time"
    ID = "id"
    NUMBER = "number"
    WHITESPACE = "whitespace"
    KEY_ORDER = "key_order"
    OTHER = "other"


def classify_change(before: str, after: str) -> TextChange:
    """Return what changed first between two texts that differ."""
    if _SPACE.sub("", before) == _SPACE.sub("", after):
        return TextChange.WHITESPACE
    if _has_other_key_order(before, after):
        return TextChange.KEY_ORDER
    at = count_common_characters(before, after)
    is_time = _covers(TIME_PATTERN, before, at) and _covers(TIME_PATTERN, after, at)
    if is_time:
        return TextChange.TIME
    if len(before) + len(after) > _MAX_MASKED:
        return TextChange.OTHER
    masked, masked_after = _mask(before), _mask(after)
    if masked == masked_after:
        return TextChange.ID
    if _NUMBER.sub(_NUMBER_MASK, masked) == _NUMBER.sub(_NUMBER_MASK, masked_after):
        return TextChange.NUMBER
    return TextChange.OTHER


def count_common_characters(before: str, after: str) -> int:
    """Return how many characters two texts share at their start."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def cut_example(before: str, after: str) -> tuple[str, str]:
    """Return both texts around their first difference."""
    at = count_common_characters(before, after)
    start = max(0, at - _EXAMPLE_BEFORE)
    return tuple(  # type: ignore[return-value]
        ("…" if start else "") + text[start : at + _EXAMPLE_AFTER] + ("…" if len(text) > at + _EXAMPLE_AFTER else "")
        for text in (before, after)
    )


def is_similar(before: str, after: str) -> bool:
    """Return whether one text is a small change of the other: they share half of the longer one at both ends."""
    if not before or not after:
        return False
    head = count_common_characters(before, after)
    tail = count_common_characters(before[head:][::-1], after[head:][::-1])
    return 2 * (head + tail) >= max(len(before), len(after)) or before in after or after in before


def _covers(pattern: re.Pattern[str], text: str, at: int) -> bool:
    """Return whether a match of the pattern contains the character at a position, or ends there."""
    start = max(0, at - _NEIGHBOURHOOD)
    return any(
        start + found.start() <= at <= start + found.end()
        for found in pattern.finditer(text[start : at + _NEIGHBOURHOOD])
    )


def _mask(text: str) -> str:
    return _ID.sub(_ID_MASK, TIME_PATTERN.sub(_TIME_MASK, text))


def _has_other_key_order(before: str, after: str) -> bool:
    """Return whether both texts have the same JSON, with its keys in another order."""
    if len(before) != len(after) or "{" not in before or sorted(before) != sorted(after):
        return False
    start = _last_object_start(before, after)
    decoder = json.JSONDecoder()
    for _ in range(_MAX_ENCLOSING):
        if start < 0:
            return False
        try:
            one, _ = decoder.raw_decode(before, start)
            other, _ = decoder.raw_decode(after, start)
        except (ValueError, RecursionError):
            start = before.rfind("{", 0, start)
            continue
        if one == other:
            return True
        start = before.rfind("{", 0, start)
    return False


def _last_object_start(before: str, after: str) -> int:
    return before.rfind("{", 0, count_common_characters(before, after) + 1)
