"""Terms: what a text can be found by. Words of any script, and paths and numbers both whole and in parts."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lamella.core.text.scripts import WIDE

_JOINED = re.compile(rf"(?P<wide>[{WIDE}]++)|[^\W{WIDE}]++(?:[./,:;@+~%#&=?!|*\\-]++[^\W{WIDE}]++)*+")
_WORD = re.compile(r"[^\W_]+")
_NUMBER_AND_UNIT = re.compile(r"(\d+)([^\W\d_]+)")


def find_terms(text: str) -> Iterator[str]:
    """Every term of a text that is already in the spelling in which texts are compared."""
    for match in _JOINED.finditer(text):
        joined = match[0]
        if match["wide"]:
            yield from joined
            yield from map("".join, pairwise(joined))
        elif joined.isalpha():
            yield joined
        else:
            yield from _split(joined)


def _split(joined: str) -> Iterator[str]:
    words = _WORD.findall(joined)
    if words != [joined]:
        yield joined
    for word in words:
        yield word
        measured = _NUMBER_AND_UNIT.fullmatch(word)
        if measured:
            yield from measured.groups()
