"""OpenAI's o200k_base, with the vocabulary in the ``splintr-rs`` package. Needs no file and no network."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b

from splintr import AnyTokenizer, Tokenizer

from lamella.clocks import measure_phase

# A list of token ids takes 36 bytes per token. Counting in chunks keeps a 200 MB text from taking gigabytes.
_CHUNK_CHARS = 1_000_000
_MAX_SEARCH_CHARS = 1_000_000
# Positions that no token crosses: after a line break that precedes neither white space nor a slash, and after a letter
# that precedes an ASCII character other than a letter or an apostrophe, or full-width punctuation.
_SPLIT_POINT = re.compile(
    r"\n(?=[^\s/])|[^\W\d_](?=[\x00-\x26\x28-\x40\x5b-\x60\x7b-\x7f\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"
)
_MEMO_ENTRIES = 100_000
_MAX_KEY_CHARS = 512


@cache
def load_tokenizer() -> AnyTokenizer:
    """Return the tokenizer. It is loaded on first use, which takes 50 ms."""
    return Tokenizer.from_pretrained("o200k_base")


def encode(text: str) -> list[int]:
    """Return the token ids of a text. Special tokens such as ``<|endoftext|>`` are treated as plain characters."""
    return load_tokenizer().encode_ordinary(text)


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text."""
    tokenizer = load_tokenizer()
    if len(text) <= _CHUNK_CHARS:
        return len(tokenizer.encode_ordinary(text))
    return sum(len(tokenizer.encode_ordinary(chunk)) for chunk in split_at_token_boundaries(text, _CHUNK_CHARS))


def split_at_token_boundaries(text: str, size: int) -> Iterator[str]:
    """Split a text into chunks of about ``size`` characters whose token counts add up.

    If a million characters in a row have no suitable position, as in one endless word, the text is split anyway and
    may count one token too many. Unsplit, 200 MB of such text took 14 GB of memory (2026-11-15).
    """
    start = 0
    while len(text) - start > size:
        cut = _find_split_position(text, start + size)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _find_split_position(text: str, at: int) -> int:
    end = min(len(text), at + _MAX_SEARCH_CHARS)
    for split in _SPLIT_POINT.finditer(text, at, end):
        if text[split.start()] == "\n" or text[split.start()].isalpha():
            return split.end()
    return end


class TokenCountMemo:
    """Caches token counts by content hash, and drops the least recently used.

    A short text is its own key: Python caches the hash of a string, so the lookup does no hashing.
    """

    def __init__(self, max_entries: int = _MEMO_ENTRIES, *, count: Callable[[str], int] = count_tokens) -> None:
        self._counts: OrderedDict[bytes | str, int] = OrderedDict()
        self._max_entries = max_entries
        self._count = count

    def count(self, text: str) -> int:
        key = text if len(text) <= _MAX_KEY_CHARS else blake2b(text.encode(), digest_size=16).digest()
        known = self._counts.get(key)
        if known is None:
            with measure_phase("count"):
                known = self._counts[key] = self._count(text)
            if len(self._counts) > self._max_entries:
                self._counts.popitem(last=False)
        else:
            # Conversations in other threads use this cache too, so the entry may be gone by now.
            with suppress(KeyError):
                self._counts.move_to_end(key)
        return known
