"""The inverted index of a branch: its originals as passages, and the positions of their words.

``PassageIndex`` grows with the branch and serves any number of searches. ``list_passages`` lists all messages and
attachments of a branch, and ``passage_ids_in_prompt`` those whose full text is still in the request.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.log.turn import ArtifactForm, MessageAuthor, SystemParts, Turn, round_result_id
from lamella.core.messages import ToolRound
from lamella.core.prompt.layers.history import parse_rules_in_preamble
from lamella.core.prompt.layers.model import LayerId, Segment, SegmentKind
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.rules import list_rules_in_system
from lamella.core.search.language import (
    SubstringIndex,
    casefold_text,
    is_unspaced_script,
    long_number_terms,
    split_token_into_words,
    split_tokens,
    word_form_keys,
)
from lamella.core.text.content import hash_text
from lamella.core.text.notation import normalize_characters

# In words. A long text is scored by its best stretch of two halves; as a whole, its length would hide the match.
HALF_WORDS = 50
# A position is one integer: the passage number in the high bits and the half in the low ones. Half 0 is the title.
TITLE_HALF = 0
_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1
# The weight of a word that is another form of the query word.
_OTHER_FORM_WEIGHT = 0.8
# The weight of a word that the query word may be a misspelling of.
_REPAIRED_WEIGHT = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An original text: its position, its author, its title and its full text.

    ``message`` is the id of the message that it is or came with, if there is one.
    """

    id: str
    place: str
    role: str
    title: str
    text: str
    message: str = ""


class IndexedPassage(NamedTuple):
    """A passage with its normalized text for phrase matching, and its length for scoring."""

    passage: Passage
    normalized_text: str
    length: int


class _WordPositions(dict[str, "array[int]"]):
    """Positions by word. Only new words call ``__missing__``, so adding a known word costs no Python call."""

    def __init__(self) -> None:
        super().__init__()
        self.words_by_key: dict[str, list[str]] = {}
        self.passage_counts: dict[str, int] = {}
        self.new_words: list[str] = []

    def __missing__(self, word: str) -> "array[int]":
        for key in word_form_keys(word):
            self.words_by_key.setdefault(key, []).append(word)
        positions = self[word] = array("Q")
        self.passage_counts[word] = 0
        self.new_words.append(word)
        return positions

    def remove_word(self, word: str) -> None:
        """Remove a word that no passage has any more."""
        del self[word], self.passage_counts[word]
        for key in word_form_keys(word):
            family = self.words_by_key[key]
            family.remove(word)
            if not family:
                del self.words_by_key[key]


class _TokenWordCache(dict[str, tuple[str, ...]]):
    """Caches the words of each token seen before."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        words = split_token_into_words(token)
        # A token of a script without spaces is a whole run of characters and rarely repeats, so it is not cached.
        if not is_unspaced_script(token):
            self[token] = words
        return words


class PassageIndex:
    """Passages prepared for any number of searches, in order; each id is indexed once."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self.passages: list[IndexedPassage] = []
        self._numbers: dict[str, int] = {}
        self._positions = _WordPositions()
        self._tokens = _TokenWordCache()
        self._length = 0
        # For substring lookups of words. New words are added when such a lookup is made.
        self._vocabulary = SubstringIndex()
        self.extend(passages)

    def __len__(self) -> int:
        return len(self.passages)

    def __contains__(self, name: object) -> bool:
        """Return whether the index has a passage with this id."""
        return name in self._numbers

    @property
    def average_length(self) -> float:
        """The average length of a passage."""
        return self._length / len(self.passages) if self.passages else 0.0

    def extend(self, passages: Iterable[Passage]) -> None:
        """Add passages at the end; a passage whose id is already indexed is ignored."""
        for passage in passages:
            if passage.id not in self._numbers:
                self._index_passage(passage)

    def replace_from(self, passages: Sequence[Passage], *, start: int = 0) -> None:
        """Replace the passages from index ``start`` on with these; those already there in this order are kept."""
        # A passage that was indexed before ``since`` stays at its first position.
        fresh = [one for one in passages if self._numbers.get(one.id, start) >= start]
        pairs = zip(self.passages[start:], fresh, strict=False)
        least = min(len(self.passages) - start, len(fresh))
        same = next((at for at, (old, new) in enumerate(pairs) if old.passage != new), least)
        self.truncate_to(start + same)
        self.extend(fresh[same:])

    def truncate_to(self, size: int) -> None:
        """Remove all but the first ``size`` passages, without a trace of the others."""
        bound = size << _HALF_BITS
        for one in self.passages[size:]:
            for word in {*self._title_words(one.passage), *self._split_words(one.passage.text)}:
                positions = self._positions[word]
                del positions[bisect_left(positions, bound) :]
                self._positions.passage_counts[word] -= 1
                if not self._positions.passage_counts[word]:
                    self._positions.remove_word(word)
            # The cached tokens must go as well: removed text must not remain anywhere in the index.
            for token in split_tokens(normalize_characters(f"{one.passage.title} {one.passage.text}")):
                self._tokens.pop(token, None)
            del self._numbers[one.passage.id]
            self._length -= one.length
        if size < len(self.passages):
            del self.passages[size:]
            self._vocabulary, self._positions.new_words = SubstringIndex(), list(self._positions)

    def _index_passage(self, passage: Passage) -> None:
        number, positions = len(self.passages), self._positions
        first = number << _HALF_BITS
        named, words = self._title_words(passage), self._split_words(passage.text)
        for word in named:
            positions[word].append(first + TITLE_HALF)
        for half, at in enumerate(range(0, len(words), HALF_WORDS), start=TITLE_HALF + 1):
            position = first + half
            for word in words[at : at + HALF_WORDS]:
                positions[word].append(position)
        passage_counts = positions.passage_counts
        for word in {*named, *words}:
            passage_counts[word] += 1
        length = min(len(words), 2 * HALF_WORDS)
        compared = collapse_whitespace(casefold_text(normalize_characters(f"{passage.title}\n{passage.text}")))
        self.passages.append(IndexedPassage(passage, compared, length))
        self._numbers[passage.id] = number
        self._length += length

    def _title_words(self, passage: Passage) -> list[str]:
        """Return the words of the title; none for a message, whose title is its id and is looked up directly."""
        return [] if passage.title == passage.id else self._split_words(passage.title)

    def _split_words(self, text: str) -> list[str]:
        normalized = normalize_characters(text)
        words = [word for words in map(self._tokens.__getitem__, split_tokens(normalized)) for word in words]
        # Most texts have no long number, and a text without a digit cannot have one.
        return words + long_number_terms(normalized) if any(map(str.isdigit, normalized)) else words

    def word_forms(self, word: str) -> dict[str, float]:
        """Return the indexed words that are forms of a word, each with its weight."""
        families = self._positions.words_by_key
        found = dict.fromkeys(
            (form for key in word_form_keys(word) for form in families.get(key, ())), _OTHER_FORM_WEIGHT
        )
        if word in self._positions:
            found[word] = 1.0
        return found

    def repaired_forms(self, word: str) -> dict[str, float]:
        """Return indexed words that a word without a match may be a misspelling of, each with its weight."""
        self._index_new_words()
        similar = self._vocabulary.similar_words(word)
        return {form: weight * _REPAIRED_WEIGHT for one in similar for form, weight in self.word_forms(one).items()}

    def find_passage_number(self, passage_id: str) -> int | None:
        """Return the number of the passage with this id, or None."""
        return self._numbers.get(passage_id)

    def max_passage_count(self, words: Iterable[str]) -> int:
        """Return an upper bound for the number of passages with one of these words."""
        passage_counts = self._positions.passage_counts
        return min(sum(passage_counts[word] for word in words), len(self.passages))

    def iter_positions(self, word: str) -> Iterator[tuple[int, int]]:
        """Iterate over the positions of a word: passage number and half."""
        return ((position >> _HALF_BITS, position & _HALF_MASK) for position in self._positions[word])

    def iter_halves(self, word: str, number: int) -> Iterator[int]:
        """Iterate over the halves of one passage in which a word occurs."""
        positions = self._positions[word]
        for at in range(bisect_left(positions, number << _HALF_BITS), len(positions)):
            if positions[at] >> _HALF_BITS != number:
                return
            yield positions[at] & _HALF_MASK

    def passages_with_any(self, words: Iterable[str]) -> set[int]:
        """Return the numbers of the passages with one of these words."""
        return {position >> _HALF_BITS for word in words for position in self._positions[word]}

    def has_word(self, word: str) -> bool:
        return word in self._positions

    def words_containing(self, part: str, *, core: str) -> list[str]:
        """Return the words that contain ``part``; among non-ASCII words, all that contain ``core``.

        The ends of a non-ASCII part may be different characters inside a longer word.
        """
        self._index_new_words()
        return list(self._vocabulary.words_containing(part, core=core))

    def _index_new_words(self) -> None:
        fresh, self._positions.new_words = self._positions.new_words, []
        self._vocabulary.extend(fresh)


def collapse_whitespace(text: str) -> str:
    """Return a text with each run of white space replaced by one space."""
    return " ".join(text.split())


# Passages of a branch.

_HASH_DIGITS = 12
# The title of an image that the user did not name.
_UNNAMED_IMAGE_TITLE = "image"
# The title of a user rule that was added by hand and is in no message.
_RULE_TITLE = "rule"
_FULL_TEXT_FORMS = (ArtifactForm.FULL, ArtifactForm.UPDATE)
_MESSAGE_ROLES = frozenset({MessageAuthor.USER.value, MessageAuthor.REPLY.value})


def list_passages(
    turns: Sequence[Turn], message_ids: Sequence[str], *, first_turn_number: int = 1
) -> tuple[Passage, ...]:
    """Return every message and every version of each attachment, in order; those without text are left out.

    ``message_ids`` has the ids of the messages, and ``first_turn_number`` is the number of the first turn. A version
    that came with several turns is one passage, at the first of them.
    """
    names = iter(message_ids)
    passages: dict[str, Passage] = {}
    for number, turn in enumerate(turns, start=first_turn_number):
        for passage in _iter_turn_passages(turn, names, position=f"turn {number}"):
            passages.setdefault(passage.id, passage)
    return tuple(passage for passage in passages.values() if passage.text)


def passage_ids_in_prompt(prompt: Prompt) -> frozenset[str]:
    """Return the ids of the passages whose full text is in the request."""
    segments = [segment for layer in LayerId for segment in prompt.segments(layer)]
    segments += [placed.segment for placed in prompt.unlayered_artifacts]
    drawn_in = [make_version_passage_id(name, content) for segment in segments for name, content in segment.inlines]
    texts = [*list_rules_in_system(prompt.system), *(text for _, text in parse_rules_in_preamble(prompt.preamble)[0])]
    rules = [make_version_passage_id(_RULE_TITLE, hash_text(text)) for text in texts]
    return frozenset(
        [*(_passage_id(segment) for segment in segments if segment.form in _FULL_TEXT_FORMS), *drawn_in, *rules]
    )


def make_version_passage_id(artifact_id: str, content_hash: str) -> str:
    """Return the passage id of an artifact; each version of the artifact has its own."""
    return f"{artifact_id}@{content_hash.removeprefix('sha256:')[:_HASH_DIGITS]}"


def _iter_turn_passages(turn: Turn, message_ids: Iterator[str], *, position: str) -> Iterator[Passage]:
    question = next(message_ids)
    if turn.system is not None:
        yield from _iter_system_passages(turn.system, position=position, message=question)
    drawn_in = turn.system.inlined if turn.system is not None else ()
    for artifact in (*turn.tool_results, *turn.attached, *drawn_in):
        yield Passage(
            id=make_version_passage_id(artifact.id, artifact.hash),
            place=position,
            role=artifact.kind.value,
            title=_searchable_artifact_name(artifact),
            text=artifact.text or _describe_image(artifact),
            message=question,
        )
    for _, text in () if turn.rules is None else turn.rules.added:
        name = make_version_passage_id(_RULE_TITLE, hash_text(text))
        yield Passage(
            id=name, place=position, role=MessageAuthor.USER.value, title=_RULE_TITLE, text=text, message=question
        )
    yield _make_message_passage(question, MessageAuthor.USER, turn.text, position=position)
    yield from _iter_tool_result_passages(question, turn.rounds, position=position)
    if turn.reply is not None:
        yield _make_message_passage(next(message_ids), MessageAuthor.REPLY, turn.reply, position=position)


def _iter_system_passages(parts: SystemParts, *, position: str, message: str) -> Iterator[Passage]:
    """Iterate over the parts of a system prompt; a later turn may have replaced them."""
    for name, text in parts.non_empty_parts():
        name_of_version = make_version_passage_id(name, hash_text(text))
        role = SegmentKind.SYSTEM.value
        yield Passage(id=name_of_version, place=position, role=role, title=name, text=text, message=message)


def _describe_image(artifact: Artifact) -> str:
    """Describe a named image in words, so that it can be found; empty for an image without a name."""
    if not artifact.images or artifact.title == _UNNAMED_IMAGE_TITLE:
        return ""
    sizes = [f"{image.width:,} by {image.height:,} pixels, {image.media_type}" for image in artifact.images]
    return f"A picture: {artifact.title} ({'; '.join(sizes)})"


def _iter_tool_result_passages(question: str, rounds: Sequence[ToolRound], *, position: str) -> Iterator[Passage]:
    """Iterate over the tool results of a turn, with the ids that their lines and stubs in the prompt name."""
    for number, one in enumerate(rounds):
        calls = {call.id: call for call in one.calls}
        for at, output in enumerate(one.outputs):
            call = calls[output.call]
            name = round_result_id(question, position=(number, at), call=call, output=output)
            yield Passage(
                id=make_version_passage_id(name, hash_text(output.output)),
                place=position,
                role=ArtifactKind.TOOL.value,
                title=f"{name} {call.arguments}",
                text=output.output,
                message=question,
            )


def _make_message_passage(message_id: str, role: MessageAuthor, text: str, *, position: str) -> Passage:
    # The title is the id: receipts name messages by id, so a search must find them by it.
    return Passage(id=message_id, place=position, role=role.value, title=message_id, text=text, message=message_id)


def _searchable_artifact_name(artifact: Artifact) -> str:
    """Return the id with another name to find it by: the title, or the arguments of a tool call."""
    more = artifact.source.arguments or "" if artifact.kind is ArtifactKind.TOOL else artifact.title
    return artifact.id if more in artifact.id else f"{artifact.id} {more}"


def _passage_id(segment: Segment) -> str:
    return segment.id if segment.kind in _MESSAGE_ROLES else make_version_passage_id(segment.id, segment.hash)
