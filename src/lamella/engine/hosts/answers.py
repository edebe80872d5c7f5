"""Answers: which message each came to, by a name that a host is told before it is given."""

from datetime import timedelta
from secrets import token_hex

from lamella.engine.chat import Chat
from lamella.ports import Clock, Shelf

_NAME_BYTES = 8
# As long as hosts may expect: the provider whose API has such names keeps them for so long.
_LASTS = timedelta(days=30)


class HostAnswers:
    """Names of answers on the shelf of a store. The same question may have many, and what each says is known later."""

    def __init__(self, shelf: Shelf, *, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    def note(self, name: str, chat: Chat) -> None:
        """Note that the answer of this name is what a conversation ends with now."""
        at = self._clock.now()
        self._shelf.put(_tell(name), chat.head, at=at, ends=at + _LASTS, conversation=chat.id)

    def find(self, given: str, chat: Chat) -> str | None:
        """The message to go on from after an answer; none where the conversation never had it.

        What was stopped, or is older than what is noted, is known by its question.
        """
        question, _, name = given.partition(".")
        noted = self._shelf.find(_tell(name), at=self._clock.now()).get(_tell(name)) if name else question
        if noted is not None and chat.has_message(noted):
            return noted
        if not question or not chat.has_message(question):
            return None
        reply = chat.find_turn(question).reply
        return question if reply is None else reply.id


def name_answer() -> str:
    """A name that no other answer has."""
    return token_hex(_NAME_BYTES)


def _tell(name: str) -> str:
    return f"answer:{name}"
