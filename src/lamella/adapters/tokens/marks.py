"""Marks of a model's chat format, where they stand in what people wrote: text, and no end of their turn."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from lamella.adapters.tokens.gguf import read_marks

# Nobody sees it, and no vocabulary has a mark with it inside.
_APART = "\u200b"


def make_breaker(marks: Sequence[str]) -> Callable[[str], str]:
    """A function that breaks every mark in a text behind its first character, and leaves the rest as it is."""
    # One character cannot be broken. The longest comes first, where one mark begins another.
    known = sorted((mark for mark in set(marks) if len(mark) > 1), key=len, reverse=True)
    if not known:
        return lambda text: text
    # A mark is broken by its first character, and what follows may begin one itself.
    found = re.compile("|".join(f"{re.escape(mark[0])}(?={re.escape(mark[1:])})" for mark in known))
    return lambda text: found.sub(lambda match: match[0] + _APART, text)


def find_breaker(path: Path | None) -> Callable[[str], str]:
    """What breaks the marks of a file's vocabulary; it changes nothing where there is no such file."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        found = None
    if path is None or found is None:
        return make_breaker(())
    return _find_version(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _find_version(path: Path, size: int, changed: int) -> Callable[[str], str]:
    del size, changed  # a file that was replaced is read again
    return make_breaker(read_marks(path))
