"""Store token counts with the events of a conversation, so that opening it counts nothing again.

Stored counts are derived data. No hash covers them, and copies may leave them out. Counts that cannot be trusted are
not used: a changed text has another hash, and each number is stored twice to detect damage.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from zlib import crc32

from lamella.core.budget import Tokenizer
from lamella.core.log.tree import PackedMessages
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.ports import TokenizerRegistry

# The SHA-256 of a text, the tokenizer, the number of tokens, and its complement to the largest number as a check.
_COUNT_ENTRY = Struct(">32sIII")
_MAX_TOKENS = 2**32 - 1
_HASH_PREFIX = "sha256:"
UNCOUNTED = -1
# How many texts are looked up one by one before all stored counts are decoded. A turn has a few new texts; replaying a
# whole history has hundreds.
_MAX_LINEAR_LOOKUPS = 32

# The SHA-256 of a text, the tokenizer, and the number of tokens.
CountEntry = tuple[bytes, int, int]
# Messages and the tokens of each by one tokenizer; ``UNCOUNTED`` if unknown.
CountedTexts = tuple[PackedMessages, Sequence[int]]


class _FamilyCounts(dict[str, int]):
    """The token counts of one tokenizer family, as a dict from text to tokens.

    A block is counted several times: when it is built, in its message, and when it is compared. From the second time on
    the dict answers without a Python call. ``new_counts`` are counts by content hash that the store does not have yet.
    ``message_counts`` are counts of messages, which are found by text without computing a hash.
    """

    def __init__(
        self, tokenizer: Tokenizer, stored_counts: Sequence[bytes], message_counts: Sequence[CountedTexts]
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.new_counts: dict[str, int] = {}
        self._message_counts = message_counts
        # Those message counts that were partly read into ``_counts_by_text``, because not all of their texts were
        # loaded yet.
        self._unloaded_messages: Sequence[CountedTexts] = ()
        self._counts_by_text: dict[str, int] = {}
        self._counts_by_hash: dict[str, int] = {}
        self._lookup_count = 0
        # Stored counts that are not decoded yet.
        self._undecoded = b""
        self.load_counts(stored_counts)

    def __missing__(self, text: str) -> int:
        self._lookup_count += 1
        if self._lookup_count > _MAX_LINEAR_LOOKUPS and (self._message_counts or self._unloaded_messages):
            # Replaying a whole history looks up every message once, so a dict pays off.
            self._load_message_counts()
        if text in self._counts_by_text:
            return self._counts_by_text[text]
        # Mostly the text is newer than the last snapshot: its count is then at the end of the stored counts.
        name = hash_text(text)
        tokens = self._counts_by_hash.get(name)
        if tokens is None and self._undecoded:
            tokens = self._find_stored_count(name)
        if tokens is None and self._message_counts:
            tokens = _lookup_message_count(self._message_counts, text)
        if tokens is None:
            tokens = self._counts_by_hash[name] = self.new_counts[name] = self.tokenizer.count(text)
        self[text] = tokens
        return tokens

    def _load_message_counts(self) -> None:
        """Read the counts of messages into a dict; texts that are not loaded yet follow once they are."""
        read = [*self._message_counts, *[one for one in self._unloaded_messages if one[0].are_texts_loaded]]
        if read:
            self._counts_by_text |= _counts_by_text(read)
            self._unloaded_messages = [
                one for one in (*self._message_counts, *self._unloaded_messages) if not one[0].are_texts_loaded
            ]
            self._message_counts = ()

    def load_counts(self, stored_counts: Sequence[bytes]) -> None:
        """Add stored counts; they are decoded only when needed."""
        self._undecoded += b"".join([some for some in stored_counts if len(some) % _COUNT_ENTRY.size == 0])

    def _find_stored_count(self, content_hash: str) -> int | None:
        """Return a count from those not decoded yet; after a few lookups all of them are decoded."""
        if self._lookup_count <= _MAX_LINEAR_LOOKUPS:
            return _lookup_count(self._undecoded, content_hash, self.tokenizer)
        self._counts_by_hash.update(decode_counts((self._undecoded,), self.tokenizer))
        self._undecoded = b""
        return self._counts_by_hash.get(content_hash)


class TokenCountCache:
    """A token counter for one conversation that reuses stored counts and collects new ones for storing."""

    def __init__(self, counter: TokenizerRegistry) -> None:
        self._counter = counter
        self._stored_counts: list[bytes] = []
        self._message_counts: Mapping[int, Sequence[CountedTexts]] = {}
        self._counts_by_family: dict[str, _FamilyCounts] = {}
        self._tokenizers: dict[str, Tokenizer] = {}
        self._by_model: dict[str | None, Tokenizer] = {}

    def start_from(self, encoded_counts: bytes, message_counts: Mapping[int, Sequence[CountedTexts]]) -> None:
        """Start from the counts of a snapshot: by content hash, and of messages by tokenizer."""
        self._stored_counts, self._message_counts = [encoded_counts], message_counts

    def mark_saved(self, encoded_counts: bytes) -> None:
        """Record that these encoded counts are stored."""
        self._stored_counts.append(encoded_counts)
        for page in self._counts_by_family.values():
            page.new_counts.clear()

    def load_counts(self, stored_counts: Iterable[bytes]) -> None:
        """Add counts from the store; new counts for events that were not written are discarded."""
        more = list(stored_counts)
        self._stored_counts += more
        for page in self._counts_by_family.values():
            page.load_counts(more)
            page.new_counts.clear()

    def get_tokenizer(self, model: str | None) -> Tokenizer:
        """Return the tokenizer of a model, with this cache."""
        known = self._by_model.get(model)
        if known is None:
            known = self._by_model[model] = self._with_cache(self._counter.get_tokenizer(model))
        return known

    def _with_cache(self, plain: Tokenizer) -> Tokenizer:
        if plain.name not in self._tokenizers:
            page = _FamilyCounts(plain, self._stored_counts, self._message_counts.get(_tokenizer_number(plain), ()))
            self._counts_by_family[plain.name] = page
            self._tokenizers[plain.name] = replace(plain, count=page.__getitem__)
        return self._tokenizers[plain.name]

    def add_counts(self, tokenizer: Tokenizer, counts_by_text: Mapping[str, int]) -> None:
        """Add counts that this tokenizer made earlier."""
        self._counts_by_family[tokenizer.name].update(counts_by_text)

    def discard_uncommitted(self) -> None:
        """Discard counts that were made for a turn that was never written."""
        for page in self._counts_by_family.values():
            page.new_counts.clear()
            page.clear()

    def encode_new_counts(self) -> bytes:
        """Return the new counts, encoded for the next event."""
        return b"".join(
            [
                encode_counts(page.new_counts, page.tokenizer)
                for page in self._counts_by_family.values()
                if page.new_counts
            ]
        )


def encode_counts(counts: Mapping[str, int], tokenizer: Tokenizer) -> bytes:
    """Encode counts by content hash."""
    who = _tokenizer_number(tokenizer)
    return b"".join(
        _COUNT_ENTRY.pack(bytes.fromhex(name.removeprefix(_HASH_PREFIX)), who, tokens, _MAX_TOKENS - tokens)
        for name, tokens in counts.items()
        if tokens <= _MAX_TOKENS
    )


def decode_counts(stored_counts: Iterable[bytes], tokenizer: Tokenizer) -> dict[str, int]:
    """Return a tokenizer's counts by content hash, without damaged ones."""
    who = _tokenizer_number(tokenizer)
    whole = b"".join([some for some in stored_counts if len(some) % _COUNT_ENTRY.size == 0])
    return {
        _HASH_PREFIX + digest.hex(): tokens
        for digest, counted_by, tokens, rest in _COUNT_ENTRY.iter_unpack(whole)
        if counted_by == who and tokens + rest == _MAX_TOKENS
    }


def _lookup_count(encoded_counts: bytes, content_hash: str, tokenizer: Tokenizer) -> int | None:
    """Return the newest undamaged count of one text, without decoding all counts."""
    who, digest, end = (
        _tokenizer_number(tokenizer),
        bytes.fromhex(content_hash.removeprefix(_HASH_PREFIX)),
        len(encoded_counts),
    )
    while (at := encoded_counts.rfind(digest, 0, end)) >= 0:
        if at % _COUNT_ENTRY.size == 0:
            _, counted_by, tokens, rest = _COUNT_ENTRY.unpack_from(encoded_counts, at)
            if counted_by == who and tokens + rest == _MAX_TOKENS:
                return int(tokens)
        # The match was at another position than the start of an entry, or damaged: search on before it.
        end = at + len(digest) - 1
    return None


def _lookup_message_count(message_counts: Sequence[CountedTexts], text: str) -> int | None:
    """Return the count of the newest message with this text, without building a dict of all messages."""
    for nodes, tokens in reversed(message_counts):
        texts = nodes.loaded_texts
        at = texts.index(text) if text in texts else len(tokens)
        if at < len(tokens) and tokens[at] != UNCOUNTED:
            return tokens[at]
    return None


def _counts_by_text(message_counts: Sequence[CountedTexts]) -> dict[str, int]:
    """Return the counts of all loaded messages by their text."""
    joined: dict[str, int] = {}
    for nodes, tokens in message_counts:
        counted = zip(nodes.loaded_texts, tokens, strict=False)
        joined.update([(text, count) for text, count in counted if text is not None and count != UNCOUNTED])
    return joined


def split_counts_by_tokenizer(encoded_counts: bytes, texts: Sequence[str]) -> tuple[dict[int, list[int]], bytes]:
    """Split counts into those of ``texts``, in their order by tokenizer, and all others still encoded.

    A text without a count gets ``UNCOUNTED``.
    """
    digests = [_hash_text_briefly(text) for text in texts]
    wanted = set(digests)
    found: dict[int, dict[bytes, int]] = {}
    rest: list[bytes] = []
    for digest, counted_by, tokens, missing in _COUNT_ENTRY.iter_unpack(encoded_counts):
        if digest in wanted:
            found.setdefault(counted_by, {})[digest] = tokens
        else:
            rest.append(_COUNT_ENTRY.pack(digest, counted_by, tokens, missing))
    return {who: [counts.get(name, UNCOUNTED) for name in digests] for who, counts in found.items()}, b"".join(rest)


def decode_count_entries(stored_counts: Iterable[bytes]) -> set[CountEntry]:
    """Return every undamaged count."""
    whole = b"".join([some for some in stored_counts if len(some) % _COUNT_ENTRY.size == 0])
    return {
        (digest, counted_by, tokens)
        for digest, counted_by, tokens, rest in _COUNT_ENTRY.iter_unpack(whole)
        if tokens + rest == _MAX_TOKENS
    }


def build_count_entries(tokens: Mapping[int, Sequence[int]], texts: Sequence[str]) -> set[CountEntry]:
    """Return the counts of texts that ``split_counts_by_tokenizer`` separated from the others."""
    digests = [_hash_text_briefly(text) for text in texts]
    return {
        (digest, who, count)
        for who, counts in tokens.items()
        for digest, count in zip(digests, counts, strict=False)
        if count != UNCOUNTED
    }


def encode_joined_counts(
    counts_by_tokenizer: Mapping[int, Sequence[int]], texts: Sequence[str], counts: bytes
) -> bytes:
    """Reverse ``split_counts_by_tokenizer``: encode the counts of texts and add the others."""
    entries = [
        _COUNT_ENTRY.pack(name, who, found, _MAX_TOKENS - found)
        for name, who, found in build_count_entries(counts_by_tokenizer, texts)
    ]
    return b"".join((*sorted(entries), counts))


def are_counts_intact(encoded_counts: bytes) -> bool:
    """Return whether all counts of one event can be read."""
    return len(encoded_counts) % _COUNT_ENTRY.size == 0 and all(
        tokens + rest == _MAX_TOKENS for _, _, tokens, rest in _COUNT_ENTRY.iter_unpack(encoded_counts)
    )


def _hash_text_briefly(text: str) -> bytes:
    return bytes.fromhex(hash_text(text).removeprefix(_HASH_PREFIX))


def _tokenizer_number(tokenizer: Tokenizer) -> int:
    """Return a number for a tokenizer; it includes the factor, so that a changed factor counts again."""
    return crc32(f"{tokenizer.name} * {tokenizer.count_factor}".encode())
