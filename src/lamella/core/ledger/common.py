"""The common prefix of two requests, in tokens."""

from collections.abc import Sequence

from lamella.core.budget.counting import Measure, count_images, count_pieces, meets_cleanly
from lamella.core.messages.model import Message

_STRIDE = 4_096
# Longer than any token of the vocabularies in use, so a token cut by the window's end is never compared.
_LOOKAHEAD = 512


# Where two requests part: after so many equal messages, so many equal pieces of the next one, so many characters.
Fork = tuple[int, int, int]
NO_FORK: Fork = (0, 0, 0)


def find_fork(before: Sequence[Message], now: Sequence[Message]) -> Fork:
    """Where the newer request parts from the earlier; the later fork of two shares more tokens."""
    for index, (old, new) in enumerate(zip(before, now, strict=False)):
        if old is not new and not old.extends_to(new):
            if old.role != new.role:
                return (index, 0, 0)
            shared = _shared_pieces(old.pieces, new.pieces)
            rest = _common_characters(
                "".join(old.pieces[shared : shared + 1]), "".join(new.pieces[shared : shared + 1])
            )
            return (index, shared, rest)
    return (min(len(before), len(now)), 0, 0)


def common_tokens(before: Sequence[Message], now: Sequence[Message], measure: Measure) -> int:
    """How many tokens the two requests share from the start."""
    total = 0
    for old, new in zip(before, now, strict=False):
        if old is not new and not old.extends_to(new):
            return total + (_common_in_message(old, new, measure) if old.role == new.role else 0)
        total += old.tokens + measure.per_message + (count_images(old.images, measure) if old.images else 0)
    return total


def _common_in_message(old: Message, new: Message, measure: Measure) -> int:
    shared = _shared_pieces(old.pieces, new.pieces)
    while shared and not (_ends_apart(old.pieces, shared) and _ends_apart(new.pieces, shared)):
        shared -= 1
    weighed = len(old.weights) == len(old.pieces)
    known = sum(old.weights[:shared]) if weighed else count_pieces(old.pieces[:shared], measure.count)
    return known + _common_in_text("".join(old.pieces[shared:]), "".join(new.pieces[shared:]), measure)


def _shared_pieces(old: Sequence[str], new: Sequence[str]) -> int:
    """How many leading pieces are equal, by halving: slices of shared objects compare at the speed of pointers."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _ends_apart(pieces: Sequence[str], at: int) -> bool:
    return at >= len(pieces) or meets_cleanly(pieces[at - 1], pieces[at])


def _common_in_text(old: str, new: str, measure: Measure) -> int:
    same = _common_characters(old, new)
    clean = _last_clean_break(old, same)
    sure = measure.count(old[:clean]) if clean else 0
    tail_old = measure.encode(old[clean : same + _LOOKAHEAD])
    tail_new = measure.encode(new[clean : same + _LOOKAHEAD])
    return sure + int(_common_start(tail_old, tail_new) * measure.factor)


def _common_start(old: Sequence[int], new: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))


def _common_characters(old: str, new: str) -> int:
    limit = min(len(old), len(new))
    at = 0
    while at < limit and old[at : at + _STRIDE] == new[at : at + _STRIDE]:
        at += _STRIDE
    at = min(at, limit)
    while at < limit and old[at] == new[at]:
        at += 1
    return at


def _last_clean_break(text: str, before: int) -> int:
    """The last place at or before which the text can be cut without changing how either side tokenises."""
    at = text.rfind("\n", 0, max(0, before - 1))
    while at > 0 and not meets_cleanly(text[at], text[at + 1 : at + 2]):
        at = text.rfind("\n", 0, at)
    return at + 1 if at > 0 else 0
