"""OpenAI's o200k_base, from the vocabulary that the ``splintr-rs`` package carries; no file, no network."""

from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b

from splintr import AnyTokenizer, Tokenizer

from lamella.core.budget.counting import meets_cleanly

# A list of token ids takes 36 bytes a token; counting a chunk at a time keeps a 200 MB text from taking gigabytes.
_CHUNK = 1_000_000
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
    return sum(len(encode(chunk)) for chunk in split_cleanly(text, _CHUNK))


def split_cleanly(text: str, size: int) -> Iterator[str]:
    """A text in chunks of about ``size`` that tokenise apart; one that never breaks a line stays whole."""
    start = 0
    while len(text) - start > size:
        cut = text.find("\n", start + size)
        while cut != -1 and not meets_cleanly("\n", text[cut + 1 : cut + 2]):
            cut = text.find("\n", cut + 1)
        if cut == -1:
            break
        yield text[start : cut + 1]
        start = cut + 1
    yield text[start:]


class CountMemo:
    """Counts by content hash, the least recently used forgotten first.

    A short text is its own key: Python keeps the hash of a string, so looking it up costs no hashing at all.
    """

    def __init__(self, entries: int = _MEMO_ENTRIES) -> None:
        self._counts: OrderedDict[bytes | str, int] = OrderedDict()
        self._entries = entries

    def count(self, text: str) -> int:
        key = text if len(text) <= _SHORT else blake2b(text.encode(), digest_size=16).digest()
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = count(text)
            if len(self._counts) > self._entries:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(key)
        return known
