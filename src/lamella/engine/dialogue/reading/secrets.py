"""Secrets that would leave: what is said of them, or that they are refused. What they are is never repeated."""

from collections.abc import Iterable, Sequence

from lamella.core.log.terms import SecretRule
from lamella.core.log.turn import Turn
from lamella.core.messages.model import Message
from lamella.core.prompt.state import State
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import SecretError
from lamella.ports import SecretWatch

# Something that goes to a model, by the name that people know it by, and its text.
Leaving = tuple[str, str]
_NOBODY = "a model"


def warn_of_secrets(
    turn: Turn, state: State, texts: Iterable[Leaving], *, watch: SecretWatch, rule: SecretRule
) -> Turn:
    """The turn with words on what looks like a secret in texts that it is the first to send; raises if refused."""
    model = turn.model or state.model
    if model is not None and watch.stays_here(model):
        return turn
    places = [
        f"Line {line:,} of {name} looks like {what}"
        for name, text in texts
        for line, what in watch.find(text, hash_text(text))
    ]
    if places and rule is SecretRule.REFUSE:
        raise SecretError(places, model=model or _NOBODY)
    said = [f"{place}, and goes to {model or _NOBODY}." for place in places]
    return replace(turn, warnings=(*turn.warnings, *(line for line in said if line not in turn.warnings)))


def find_secrets(messages: Sequence[Message], model: str, *, watch: SecretWatch | None, rule: SecretRule) -> list[str]:
    """What looks like a secret in messages that go to a model elsewhere, in words that do not repeat it."""
    if watch is None or rule is SecretRule.OFF or watch.stays_here(model):
        return []
    texts = [message.text for message in messages]
    kinds = [kind for text in texts for _, kind in watch.find(text, hash_text(text))]
    return [f"looks like {kind}" for kind in dict.fromkeys(kinds)]
