"""The index of a branch: its originals and where each of their words stands, kept as the branch grows."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lamella.core.search.spelling import lower
from lamella.core.search.terms import find_tokens, is_wide, list_keys, split_token
from lamella.core.search.vocabulary import WordParts
from lamella.core.text.notation import settle

# In words. A long text is as good as its best stretch of twice this: as a whole, its length would bury what it says.
HALF = 50
# Where a word stands, in one number: which passage, and in which half of a stretch. The title comes before the first.
TITLE = 0
_BITS = 32
_HALF_MASK = (1 << _BITS) - 1
# What a word counts that is another form of the one that is looked for.
_OTHER_FORM = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An original: where it stands, who wrote it, what it is called, and its whole text.

    ``message`` is the id of the message that said it or that it came with, where there is one.
    """

    id: str
    place: str
    role: str
    title: str
    text: str
    message: str = ""


class IndexedPassage(NamedTuple):
    """A passage in the spelling in which spans are looked for, and how much it counts as long."""

    passage: Passage
    compared: str
    length: int


class _Postings(dict[str, "array[int]"]):
    """Where each word stands. Python asks ``__missing__`` for new ones: known ones cost no call."""

    def __init__(self) -> None:
        super().__init__()
        self.families: dict[str, list[str]] = {}
        self.held: dict[str, int] = {}
        self.fresh: list[str] = []

    def __missing__(self, word: str) -> "array[int]":
        for key in list_keys(word):
            self.families.setdefault(key, []).append(word)
        places = self[word] = array("Q")
        self.held[word] = 0
        self.fresh.append(word)
        return places

    def forget(self, word: str) -> None:
        """Take a word out that stands nowhere any more."""
        del self[word], self.held[word]
        for key in list_keys(word):
            family = self.families[key]
            family.remove(word)
            if not family:
                del self.families[key]


class _Tokens(dict[str, tuple[str, ...]]):
    """The words of each piece of text that was seen before."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        words = split_token(token)
        if not is_wide(token):
            self[token] = words
        return words


class Index:
    """Passages made ready for any number of searches, in their order. Each id is entered once."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self.passages: list[IndexedPassage] = []
        self._numbers: dict[str, int] = {}
        self._places = _Postings()
        self._tokens = _Tokens()
        self._length = 0
        # For words that hold a part of one; new ones are entered when it is asked for.
        self._vocabulary = WordParts()
        self.extend(passages)

    def __len__(self) -> int:
        return len(self.passages)

    def __contains__(self, name: object) -> bool:
        """Whether an original of this id is here."""
        return name in self._numbers

    @property
    def average(self) -> float:
        """How long a passage is on average."""
        return self._length / len(self.passages) if self.passages else 0.0

    def extend(self, passages: Iterable[Passage]) -> None:
        """Enter passages behind those that are here; one whose id is here stays where it is."""
        for passage in passages:
            if passage.id not in self._numbers:
                self._enter(passage)

    def renew(self, passages: Sequence[Passage], *, since: int = 0) -> None:
        """Have these passages behind the first ``since``; what stands there already in their order is kept."""
        # What was entered before those stays there: it came first.
        fresh = [one for one in passages if self._numbers.get(one.id, since) >= since]
        pairs = zip(self.passages[since:], fresh, strict=False)
        least = min(len(self.passages) - since, len(fresh))
        same = next((at for at, (old, new) in enumerate(pairs) if old.passage != new), least)
        self.cut(since + same)
        self.extend(fresh[same:])

    def cut(self, size: int) -> None:
        """Keep the first passages alone, as if the others had never been."""
        bound = size << _BITS
        for one in self.passages[size:]:
            for word in {*self._name(one.passage), *self._split(one.passage.text)}:
                places = self._places[word]
                del places[bisect_left(places, bound) :]
                self._places.held[word] -= 1
                if not self._places.held[word]:
                    self._places.forget(word)
            # What was taken out is not to be found in here either.
            for token in find_tokens(settle(f"{one.passage.title} {one.passage.text}")):
                self._tokens.pop(token, None)
            del self._numbers[one.passage.id]
            self._length -= one.length
        if size < len(self.passages):
            del self.passages[size:]
            self._vocabulary, self._places.fresh = WordParts(), list(self._places)

    def _enter(self, passage: Passage) -> None:
        number, places = len(self.passages), self._places
        first = number << _BITS
        named, said = self._name(passage), self._split(passage.text)
        for word in named:
            places[word].append(first + TITLE)
        for half, at in enumerate(range(0, len(said), HALF), start=TITLE + 1):
            place = first + half
            for word in said[at : at + HALF]:
                places[word].append(place)
        held = places.held
        for word in {*named, *said}:
            held[word] += 1
        length = min(len(said), 2 * HALF)
        compared = flatten(lower(settle(f"{passage.title}\n{passage.text}")))
        self.passages.append(IndexedPassage(passage, compared, length))
        self._numbers[passage.id] = number
        self._length += length

    def _name(self, passage: Passage) -> list[str]:
        """The words of a title; a message is called by its id alone, which is looked up as it is."""
        return [] if passage.title == passage.id else self._split(passage.title)

    def _split(self, text: str) -> list[str]:
        return [word for words in map(self._tokens.__getitem__, find_tokens(settle(text))) for word in words]

    def find_forms(self, word: str) -> dict[str, float]:
        """The words of this index that are a form of a word, each with how much it counts."""
        families = self._places.families
        found = dict.fromkeys((form for key in list_keys(word) for form in families.get(key, ())), _OTHER_FORM)
        if word in self._places:
            found[word] = 1.0
        return found

    def find_named(self, name: str) -> int | None:
        """The number of the passage of this id."""
        return self._numbers.get(name)

    def count_passages(self, words: Iterable[str]) -> int:
        """How many passages have one of these words, at most."""
        held = self._places.held
        return min(sum(held[word] for word in words), len(self.passages))

    def walk(self, word: str) -> Iterator[tuple[int, int]]:
        """Where a word stands: the number of each passage, and the half of a stretch."""
        return ((place >> _BITS, place & _HALF_MASK) for place in self._places[word])

    def walk_within(self, word: str, number: int) -> Iterator[int]:
        """In which halves of one passage a word stands."""
        places = self._places[word]
        for at in range(bisect_left(places, number << _BITS), len(places)):
            if places[at] >> _BITS != number:
                return
            yield places[at] & _HALF_MASK

    def list_holders(self, words: Iterable[str]) -> set[int]:
        """The numbers of the passages that have one of these words."""
        return {place >> _BITS for word in words for place in self._places[word]}

    def has_word(self, word: str) -> bool:
        return word in self._places

    def find_words(self, part: str, *, core: str) -> list[str]:
        """The words that hold ``part``; of those beyond ASCII, which may end otherwise, all that hold its ``core``."""
        fresh, self._places.fresh = self._places.fresh, []
        self._vocabulary.extend(fresh)
        return list(self._vocabulary.find(part, core=core))


def flatten(text: str) -> str:
    """A text with one space wherever there is any white space in it."""
    return " ".join(text.split())
