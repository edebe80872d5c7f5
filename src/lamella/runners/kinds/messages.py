"""Messages as clients keep them: brought to three roles and their contents, and read as turns."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamella.engine.checks import check_text
from lamella.errors import CallError

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
# What other clients call them. A warning was shown by a program to its user: it is the program's word.
_ROLES = {
    SYSTEM: SYSTEM,
    USER: USER,
    ASSISTANT: ASSISTANT,
    "pro_user": USER,
    "system_warning": SYSTEM,
    "developer": SYSTEM,
    "ai": ASSISTANT,
    "bot": ASSISTANT,
    "model": ASSISTANT,
}
_HINT = 'A message is {"role": "user", "content": "…"}.'
_BETWEEN = "\n\n"
# What stands for a question before an answer that nobody asked for, such as a greeting: providers want one there.
_BEGINNING = "(The conversation begins.)"


class PlainMessage(NamedTuple):
    """A message: who says it, and what."""

    role: str
    content: str

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


class PlainTurn(NamedTuple):
    """What was asked, and what was answered; an empty answer is none."""

    asked: str
    answered: str = ""


class PlainTalk(NamedTuple):
    """Messages in order: what programs say, as one; the turns; and what is to be said of it."""

    system: str = ""
    turns: tuple[PlainTurn, ...] = ()
    warnings: tuple[str, ...] = ()


def even_lines(text: str) -> str:
    """A text with one kind of line end and no mark before it: doing that again changes nothing."""
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def read_messages(messages: object) -> PlainTalk:
    """Messages as a client sends them, in turns. Other fields are left out, and nothing is changed in place.

    What a role that nobody knows says counts as the user's, and that is said. Each text of a program counts once.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise CallError("messages is not a list.", hint=_HINT)
    read = [_read(one, number) for number, one in enumerate(messages, start=1)]
    system = dict.fromkeys(one.content for one, _ in read if one.role == SYSTEM and one.content.strip())
    odd = dict.fromkeys(role for _, role in read if role not in _ROLES)
    told = [f"Nobody knows the role {role[:40]!r}: what it says counts as the user's." for role in odd]
    return PlainTalk(_BETWEEN.join(system), tuple(_pair([one for one, _ in read])), tuple(told))


def _read(one: object, number: int) -> tuple[PlainMessage, str]:
    """A message, and the role as it was sent."""
    if not isinstance(one, Mapping):
        raise CallError(f"Message {number:,} is not an object.", hint=_HINT)
    role, content = one.get("role"), one.get("content")
    for name, value in (("role", role), ("content", content)):
        if not isinstance(value, str):
            raise CallError(f"Message {number:,} has no {name} that is a text.", hint=_HINT)
    assert isinstance(role, str)
    said = even_lines(check_text(content, f"message {number:,}"))
    return PlainMessage(_ROLES.get(role, USER), said), role


def _pair(messages: Sequence[PlainMessage]) -> list[PlainTurn]:
    """Turns of messages: answers that follow each other are one, and a question without one stands alone."""
    turns: list[PlainTurn] = []
    for role, content in messages:
        if role == USER:
            turns.append(PlainTurn(content))
        elif role == ASSISTANT and turns:
            before = turns[-1].answered
            turns[-1] = turns[-1]._replace(answered=before + _BETWEEN + content if before else content)
        elif role == ASSISTANT and content:
            turns.append(PlainTurn(_BEGINNING, content))
    return turns


def list_history(system: str, turns: Sequence[PlainTurn]) -> tuple[PlainMessage, ...]:
    """Turns as messages; reading them gives the same turns again."""
    said = [PlainMessage(SYSTEM, system)] if system else []
    for number, turn in enumerate(turns):
        greets = not number and turn.answered and turn.asked == _BEGINNING
        said += [] if greets else [PlainMessage(USER, turn.asked)]
        said += [PlainMessage(ASSISTANT, turn.answered)] if turn.answered else []
    return tuple(said)
