"""OpenAI's o200k_base, from the vocabulary that the ``splintr-rs`` package carries; no file, no network."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b

from splintr import AnyTokenizer, Tokenizer

# A list of token ids takes 36 bytes a token; counting a chunk at a time keeps a 200 MB text from taking gigabytes.
_CHUNK = 1_000_000
_SLACK = 1_000_000
# Where no token can reach across: after a line break before what is neither white space nor a slash, and after a letter
# before an ASCII character that is neither a letter nor an apostrophe, or before a full-width stop.
_CLEAN = re.compile(
    r"\n(?=[^\s/])|[^\W\d_](?=[\x00-\x26\x28-\x40\x5b-\x60\x7b-\x7f\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"
)
_MEMO_ENTRIES = 100_000
_SHORT = 512


@cache
def load_tokenizer() -> AnyTokenizer:
    """The tokenizer, loaded on first use: 50 ms."""
    return Tokenizer.from_pretrained("o200k_base")


def encode(text: str) -> list[int]:
    """Token ids of a text in which ``<|endoftext|>`` and the like are plain characters."""
    return load_tokenizer().encode_ordinary(text)


def count(text: str) -> int:
    """How many tokens a text has."""
    tokenizer = load_tokenizer()
    if len(text) <= _CHUNK:
        return len(tokenizer.encode_ordinary(text))
    return sum(len(tokenizer.encode_ordinary(chunk)) for chunk in split_cleanly(text, _CHUNK))


def split_cleanly(text: str, size: int) -> Iterator[str]:
    """A text in chunks of about ``size`` that tokenise apart.

    Where a million characters in a row offer no such place, as in one endless word, the cut is made anyway and may
    count a token more; left whole, 200 MB of it took 14 GB (2026-11-15).
    """
    start = 0
    while len(text) - start > size:
        cut = _find_cut(text, start + size)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _find_cut(text: str, at: int) -> int:
    end = min(len(text), at + _SLACK)
    for place in _CLEAN.finditer(text, at, end):
        if text[place.start()] == "\n" or text[place.start()].isalpha():
            return place.end()
    return end


class CountMemo:
    """Counts by content hash, the least recently used forgotten first.

    A short text is its own key: Python keeps the hash of a string, so looking it up costs no hashing at all.
    """

    def __init__(self, entries: int = _MEMO_ENTRIES, *, count: Callable[[str], int] = count) -> None:
        self._counts: OrderedDict[bytes | str, int] = OrderedDict()
        self._entries = entries
        self._count = count

    def count(self, text: str) -> int:
        key = text if len(text) <= _SHORT else blake2b(text.encode(), digest_size=16).digest()
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = self._count(text)
            if len(self._counts) > self._entries:
                self._counts.popitem(last=False)
        else:
            # Conversations in other threads count here too: it may be forgotten by now.
            with suppress(KeyError):
                self._counts.move_to_end(key)
        return known
