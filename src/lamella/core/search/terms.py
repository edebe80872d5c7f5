"""Terms: what a text can be found by. Words of any script, and paths and numbers both whole and in parts."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lamella.core.search.spelling import fold, list_stems, lower, split_name
from lamella.core.text.scripts import WIDE

_JOINED = re.compile(rf"[{WIDE}]++|[^\W{WIDE}]++(?:[./,:;@+~%#&=?!|*\\-]++[^\W{WIDE}]++)*+")
_WIDE = re.compile(rf"[{WIDE}]")
_WORD = re.compile(r"[^\W_]+")
_NUMBER_AND_UNIT = re.compile(r"(\d+)([^\W\d_]+)")
_DIGIT = re.compile(r"\d")
# Thousands: 1,234 and 12,34,567 and 1.234, with what stands behind the other mark.
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:\.\d{3})+))(?:[.,](\d+))?(?![\d.,]*\d)")
_DECIMAL = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d.,]*\d)")
# The same with spaces or marks between that are not inside of words.
_SPACED = re.compile(r"(?<![\w.,])\d{1,3}(?:[ '\u2019]\d{3})+(?![\w'\u2019])")
_NO_DIGIT = re.compile(r"\D+")
# What joins the parts of a name that others write as one word.
_JOINTS = re.compile("[_-]")
_NAME_WITH_JOINTS = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)+")


def find_terms(text: str) -> Iterator[str]:
    """Every term of a text that is already in the spelling in which texts are compared."""
    for joined in _JOINED.findall(text):
        if _WIDE.match(joined):
            yield from _split_wide(joined)
        elif joined.isalpha():
            yield joined
        else:
            yield from _split(joined)


def find_tokens(settled: str) -> list[str]:
    """What stands in a settled text, each piece as it stands; numbers with spaces in them once more without."""
    return _JOINED.findall(_SPACED.sub(_close_up, settled))


def split_token(token: str) -> tuple[str, ...]:
    """The words that a piece of a text is found by: itself in lower case, and its parts."""
    if _WIDE.match(token):
        return tuple(_split_wide(token))
    low = lower(token)
    if low == token and token.isalpha():
        return (token,)
    words = _WORD.findall(low)
    parts = [part for piece in _WORD.findall(token) for part in split_name(piece)]
    return (*(() if words == [low] else (low,)), *words, *parts)


def is_wide(token: str) -> bool:
    """Whether a piece of a text is of a script without spaces."""
    return _WIDE.match(token) is not None


def list_keys(word: str) -> frozenset[str]:
    """What a word shares with its other forms: accents, endings, notations of a number, ways to join a name."""
    folded = fold(word)
    if folded.isalpha():
        return frozenset((folded, *list_stems(folded)))
    return frozenset((folded, *_list_notations(_in_digits(folded))))


def _list_notations(word: str) -> Iterator[str]:
    yield word
    if measured := _NUMBER_AND_UNIT.fullmatch(word):
        yield from measured.groups()
    for whole, rest in _GROUPED.findall(word):
        digits = _NO_DIGIT.sub("", whole)
        yield digits
        if rest:
            yield f"{digits}.{rest}"
    for whole, rest in _DECIMAL.findall(word):
        yield f"{whole}.{rest}"
    if _NAME_WITH_JOINTS.fullmatch(word):
        yield from list_stems(name := _JOINTS.sub("", word))
        yield name


def _in_digits(word: str) -> str:
    """A word with the digits that everybody types, whichever script it has them in."""
    return word if word.isascii() else _DIGIT.sub(lambda match: str(int(match[0])), word)


def _close_up(match: re.Match[str]) -> str:
    return f"{match[0]} {_NO_DIGIT.sub('', match[0])}"


def _split_wide(joined: str) -> Iterator[str]:
    yield from joined
    yield from map("".join, pairwise(joined))


def _split(joined: str) -> Iterator[str]:
    words = _WORD.findall(joined)
    if words != [joined]:
        yield joined
    for word in words:
        yield word
        measured = _NUMBER_AND_UNIT.fullmatch(word)
        if measured:
            yield from measured.groups()
