"""Counting once: what a conversation's texts weigh is kept beside its events, so that opening it counts nothing again.

Kept counts are derived. No hash covers them, copies may leave them out, and one that cannot be trusted is not used: a
text that changed finds nothing under its new hash, and each number stands there twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from zlib import crc32

from lamella.core.budget.counting import Measure
from lamella.core.log.snapshots.columns import PackedNodes
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.ports import TokenCounter

# The SHA-256 of a text, who counted, how many tokens, and what is missing from that number to the largest one.
_ENTRY = Struct(">32sIII")
_LARGEST = 2**32 - 1
_PREFIX = "sha256:"
UNCOUNTED = -1
# How many texts are looked for among kept counts before all of these are read: a turn has a few that are new, and who
# tells a whole past has hundreds.
_FEW = 32

# The SHA-256 of a text, who counted, and how many tokens.
Counted = tuple[bytes, int, int]
# Messages, and the tokens of what each says by one who counted, ``UNCOUNTED`` where that is not known.
CountedTexts = tuple[PackedNodes, Sequence[int]]


class _CountPage(dict[str, int]):
    """How one family counts, by text; ``known`` are counts by content hash, ``fresh`` what no store has yet of them.

    A block is counted where it is made, in its message, and in what it is compared with: from the second time on the
    dictionary answers by itself, without a call. ``said`` are counts of messages, for who has no hash of them at hand.
    """

    def __init__(self, measure: Measure, kept: Sequence[bytes], said: Sequence[CountedTexts]) -> None:
        super().__init__()
        self.measure = measure
        self.fresh: dict[str, int] = {}
        self._said = said
        # Those of them that were read into ``_texts`` as far as their texts were known then.
        self._apart: Sequence[CountedTexts] = ()
        self._texts: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._looked_for = 0
        # What was kept and was not read yet.
        self._unread = b""
        self.learn(kept)

    def __missing__(self, text: str) -> int:
        self._looked_for += 1
        if self._looked_for > _FEW and (self._said or self._apart):
            # Whoever tells a whole past looks up every message, once.
            self._join_said()
        if text in self._texts:
            return self._texts[text]
        # Mostly something said since the last snapshot is looked for: it is at the end of what was kept, and in none.
        name = hash_text(text)
        tokens = self._known.get(name)
        if tokens is None and self._unread:
            tokens = self._look_up(name)
        if tokens is None and self._said:
            tokens = _find_text(self._said, text)
        if tokens is None:
            tokens = self._known[name] = self.fresh[name] = self.measure.count(text)
        self[text] = tokens
        return tokens

    def _join_said(self) -> None:
        """Read the counts of messages into a dictionary; those of texts that nobody has read, once somebody has."""
        read = [*self._said, *[one for one in self._apart if one[0].are_read]]
        if read:
            self._texts |= _join_texts(read)
            self._apart = [one for one in (*self._said, *self._apart) if not one[0].are_read]
            self._said = ()

    def learn(self, kept: Sequence[bytes]) -> None:
        """Take in what was kept."""
        self._unread += b"".join([some for some in kept if len(some) % _ENTRY.size == 0])

    def _look_up(self, name: str) -> int | None:
        """The count among those not read yet; all of them are read once more than a few were looked for."""
        if self._looked_for <= _FEW:
            return _find_count(self._unread, name, self.measure)
        self._known.update(read_counts((self._unread,), self.measure))
        self._unread = b""
        return self._known.get(name)


class CountingBook:
    """A token counter for one conversation: looks up what was kept, counts the rest, and gives that to be kept."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._kept: list[bytes] = []
        self._said: Mapping[int, Sequence[CountedTexts]] = {}
        self._pages: dict[str, _CountPage] = {}
        self._measures: dict[str, Measure] = {}
        self._by_model: dict[str | None, Measure] = {}

    def begin_with(self, kept: bytes, said: Mapping[int, Sequence[CountedTexts]]) -> None:
        """Start from what was kept with a snapshot: counts by hash, and those of messages by who counted them."""
        self._kept, self._said = [kept], said

    def keep(self, written: bytes) -> None:
        """What ``write`` gave last is kept: every page knows it."""
        self._kept.append(written)
        for page in self._pages.values():
            page.fresh.clear()

    def learn(self, kept: Iterable[bytes]) -> None:
        """Take in what a store has kept. What was counted for events that it did not take is not kept."""
        more = list(kept)
        self._kept += more
        for page in self._pages.values():
            page.learn(more)
            page.fresh.clear()

    def measure(self, model: str | None) -> Measure:
        """How this model counts, by this book."""
        known = self._by_model.get(model)
        if known is None:
            known = self._by_model[model] = self._open(self._counter.measure(model))
        return known

    def _open(self, plain: Measure) -> Measure:
        if plain.name not in self._measures:
            page = _CountPage(plain, self._kept, self._said.get(_who(plain), ()))
            self._pages[plain.name] = page
            self._measures[plain.name] = replace(plain, count=page.__getitem__)
        return self._measures[plain.name]

    def know(self, measure: Measure, texts: Mapping[str, int]) -> None:
        """Take in counts of texts that this measure made before."""
        self._pages[measure.name].update(texts)

    def begin(self) -> None:
        """Begin something new: what was counted for a turn that came to nothing is not kept."""
        for page in self._pages.values():
            page.fresh.clear()
            page.clear()

    def write(self) -> bytes:
        """What was counted since, to be kept with the next event."""
        return b"".join([write_counts(page.fresh, page.measure) for page in self._pages.values() if page.fresh])


def write_counts(counts: Mapping[str, int], measure: Measure) -> bytes:
    """Counts by content hash, as they are kept."""
    who = _who(measure)
    return b"".join(
        _ENTRY.pack(bytes.fromhex(name.removeprefix(_PREFIX)), who, tokens, _LARGEST - tokens)
        for name, tokens in counts.items()
        if tokens <= _LARGEST
    )


def read_counts(kept: Iterable[bytes], measure: Measure) -> dict[str, int]:
    """The counts of a measure by content hash, without those that are damaged."""
    who = _who(measure)
    whole = b"".join([some for some in kept if len(some) % _ENTRY.size == 0])
    return {
        _PREFIX + digest.hex(): tokens
        for digest, counted_by, tokens, rest in _ENTRY.iter_unpack(whole)
        if counted_by == who and tokens + rest == _LARGEST
    }


def _find_count(kept: bytes, name: str, measure: Measure) -> int | None:
    """The newest count of one text that is not damaged, as ``read_counts`` has it."""
    who, digest, end = _who(measure), bytes.fromhex(name.removeprefix(_PREFIX)), len(kept)
    while (at := kept.rfind(digest, 0, end)) >= 0:
        if at % _ENTRY.size == 0:
            _, counted_by, tokens, rest = _ENTRY.unpack_from(kept, at)
            if counted_by == who and tokens + rest == _LARGEST:
                return int(tokens)
        end = at + len(digest) - 1
    return None


def _find_text(said: Sequence[CountedTexts], text: str) -> int | None:
    """The count of one message, the newest that says this, without reading all of them into a dictionary."""
    for nodes, tokens in reversed(said):
        texts = nodes.known_texts
        at = texts.index(text) if text in texts else len(tokens)
        if at < len(tokens) and tokens[at] != UNCOUNTED:
            return tokens[at]
    return None


def _join_texts(said: Sequence[CountedTexts]) -> dict[str, int]:
    """The counts of all messages by what they say."""
    joined: dict[str, int] = {}
    for nodes, tokens in said:
        counted = zip(nodes.known_texts, tokens, strict=False)
        joined.update([(text, count) for text, count in counted if text is not None and count != UNCOUNTED])
    return joined


def split_counts(kept: bytes, texts: Sequence[str]) -> tuple[dict[int, list[int]], bytes]:
    """The counts of some texts in their order, by who counted, ``UNCOUNTED`` where there is none; and all others."""
    digests = [_digest(text) for text in texts]
    wanted = set(digests)
    found: dict[int, dict[bytes, int]] = {}
    rest: list[bytes] = []
    for digest, counted_by, tokens, missing in _ENTRY.iter_unpack(kept):
        if digest in wanted:
            found.setdefault(counted_by, {})[digest] = tokens
        else:
            rest.append(_ENTRY.pack(digest, counted_by, tokens, missing))
    return {who: [counts.get(name, UNCOUNTED) for name in digests] for who, counts in found.items()}, b"".join(rest)


def list_counts(kept: Iterable[bytes]) -> set[Counted]:
    """Every count that can be read."""
    whole = b"".join([some for some in kept if len(some) % _ENTRY.size == 0])
    return {
        (digest, counted_by, tokens)
        for digest, counted_by, tokens, rest in _ENTRY.iter_unpack(whole)
        if tokens + rest == _LARGEST
    }


def list_tokens(tokens: Mapping[int, Sequence[int]], texts: Sequence[str]) -> set[Counted]:
    """The counts of texts that ``split_counts`` has taken from the others."""
    digests = [_digest(text) for text in texts]
    return {
        (digest, who, count)
        for who, counts in tokens.items()
        for digest, count in zip(digests, counts, strict=False)
        if count != UNCOUNTED
    }


def join_counts(tokens: Mapping[int, Sequence[int]], texts: Sequence[str], counts: bytes) -> bytes:
    """The counts of texts and those beside them as they were before ``split_counts`` took them apart."""
    entries = [_ENTRY.pack(name, who, found, _LARGEST - found) for name, who, found in list_tokens(tokens, texts)]
    return b"".join((*sorted(entries), counts))


def are_whole(kept: bytes) -> bool:
    """Whether everything in one event's counts can be read."""
    return len(kept) % _ENTRY.size == 0 and all(
        tokens + rest == _LARGEST for _, _, tokens, rest in _ENTRY.iter_unpack(kept)
    )


def _digest(text: str) -> bytes:
    return bytes.fromhex(hash_text(text).removeprefix(_PREFIX))


def _who(measure: Measure) -> int:
    """A family that changes its factor counts anew."""
    return crc32(f"{measure.name} * {measure.factor}".encode())
