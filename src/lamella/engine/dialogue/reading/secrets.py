"""Secrets that would leave: what is said of them, or that they are refused. What they are is never repeated."""

from collections.abc import Iterable

from lamella.core.log.terms import SecretRule
from lamella.core.log.turn import Turn
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
