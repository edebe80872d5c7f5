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
    places = _find_places(texts, watch, model=model)
    if places and rule is SecretRule.REFUSE:
        raise SecretError(places, model=model or _NOBODY)
    said = [f"{place}, and goes to {model or _NOBODY}." for place in places]
    return replace(turn, warnings=(*turn.warnings, *(line for line in said if line not in turn.warnings)))


def refuse_secrets(texts: Sequence[Leaving], *, model: str, watch: SecretWatch | None, rule: SecretRule) -> None:
    """Raises where a text looks like a secret and would go to a model elsewhere, if settings refuse that."""
    if watch is None or rule is not SecretRule.REFUSE:
        return
    if any(anchor in text for _, text in texts for anchor in watch.anchors):
        places = _find_places(texts, watch, model=model)
        if places:
            raise SecretError(places, model=model)


def _find_places(texts: Iterable[Leaving], watch: SecretWatch, *, model: str | None) -> list[str]:
    """Where secrets stand that leave, in words that do not repeat them."""
    if model is not None and watch.stays_here(model):
        return []
    return [
        f"Line {line:,} of {name} looks like {what}"
        for name, text in texts
        for line, what in watch.find(text, hash_text(text))
    ]


def find_secrets(messages: Sequence[Message], model: str, *, watch: SecretWatch | None, rule: SecretRule) -> list[str]:
    """What looks like a secret in messages that go to a model elsewhere, in words that do not repeat it."""
    if watch is None or rule is SecretRule.OFF or watch.stays_here(model):
        return []
    texts = [message.text for message in messages]
    kinds = [kind for text in texts for _, kind in watch.find(text, hash_text(text))]
    return [f"looks like {kind}" for kind in dict.fromkeys(kinds)]
