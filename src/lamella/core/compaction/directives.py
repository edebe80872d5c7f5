"""The directives in a conversation: the words that remain in the digest when the rest of a message is removed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from lamella.core.prompt.layers.digest import DigestMessage, iter_digest_messages, question_message_number
from lamella.core.prompt.layers.history import ConversationHistory, HistoryTurn
from lamella.core.text.directives import find_directives
from lamella.core.text.word_lists import WordLists

# Between sentences of an excerpt that are not next to each other in their message.
_GAP = " … "


class Directives:
    """The sentences in which the user directs the model, by message, in the order of the conversation.

    Whether a sentence takes back an earlier directive depends on the directives before it, so all messages of the user
    that the state still has are read.
    """

    def __init__(self, history: ConversationHistory, words: WordLists, *, dismissed: Iterable[str] = ()) -> None:
        self._history = history
        self._words = words
        self._dismissed = frozenset(dismissed)

    @cached_property
    def by_message(self) -> Mapping[str, tuple[str, ...]]:
        """The directives of each message that has some, by message id."""
        found = find_directives(dict(self._iter_user_texts()), self._words)
        if not self._dismissed:
            return found
        left = {
            name: tuple([sentence for sentence in sentences if sentence not in self._dismissed])
            for name, sentences in found.items()
        }
        return {name: sentences for name, sentences in left.items() if sentences}

    def excerpts(self, messages: Iterable[DigestMessage]) -> dict[str, str]:
        """Return the words that remain of these messages of the digest, by id, leaving out those that keep nothing."""
        found = self.by_message
        return {one.id: join_excerpt(found[one.id]) for one in messages if one.id in found}

    def excerpts_of_turns(self, turns: Sequence[HistoryTurn]) -> dict[str, str]:
        """Return the words that remain of the questions of these turns, by id, leaving out those that keep nothing."""
        found = self.by_message
        return {one.question.id: join_excerpt(found[one.question.id]) for one in turns if one.question.id in found}

    def _iter_user_texts(self) -> Iterator[tuple[str, str]]:
        texts = {message.number: message for message in iter_digest_messages(self._history.digest)}
        yield from ((message.id, message.text) for number, message in sorted(texts.items()) if number % 2)
        yield from (
            (turn.question.id, turn.question.original)
            for turn in self._history.turns
            if question_message_number(turn.turn_index) not in texts
        )


def join_excerpt(sentences: Sequence[str]) -> str:
    """Join sentences of one message into an excerpt."""
    return _GAP.join(sentences)
