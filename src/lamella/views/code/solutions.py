"""What the documented endpoints answer, in their names and ours: a solution, and what was chosen of a codebase."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lamella.holdings import CodeForm, CodeSelection
from lamella.views.code.selections import view_selection


class SaidShape(Protocol):
    """A message."""

    def to_dict(self) -> dict[str, str]: ...


class StateShape(Protocol):
    """Which instruction blocks stand in the prompt."""

    def to_dict(self) -> dict[str, object]: ...


class SolutionShape(Protocol):
    """What has to be known of an answer, whoever found it."""

    @property
    def reply(self) -> str: ...
    @property
    def history(self) -> Sequence[SaidShape]: ...
    @property
    def state(self) -> StateShape: ...
    @property
    def tokens_used(self) -> int: ...
    @property
    def model(self) -> str: ...
    @property
    def conversation(self) -> str | None: ...
    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def ignored(self) -> Sequence[str]: ...


def view_state(conversation: str | None, state: StateShape) -> dict[str, object]:
    """The state of a conversation."""
    return {"lamella": 1, "conversation": conversation, "chatState": state.to_dict()}


def view_solution(solution: SolutionShape) -> dict[str, object]:
    """An answer with the whole history."""
    return {
        "lamella": 1,
        "data": solution.reply,
        "tokensUsed": solution.tokens_used,
        "chatHistory": [one.to_dict() for one in solution.history],
        "chatState": solution.state.to_dict(),
        "conversation": solution.conversation,
        "model": solution.model,
        "warnings": list(solution.warnings),
        **view_ignored(solution.ignored),
    }


def view_filter(selection: CodeSelection, ignored: Sequence[str] = ()) -> dict[str, object]:
    """What was chosen with its content, not only paths; what stands by its name alone has none."""
    chosen = [
        {"path": one.path, "content": one.text, "form": one.form.value, "tokens": one.tokens}
        for one in selection.files
        if one.form is not CodeForm.NAME
    ]
    return {"data": chosen, "tokensUsed": selection.tokens, **view_selection(selection), **view_ignored(ignored)}


def view_ignored(names: Sequence[str]) -> Mapping[str, object]:
    """What was sent and not looked at, in words as well."""
    if not names:
        return {"ignored": []}
    are = "is" if len(names) == 1 else "are"
    why = "who asks, and with which key, is not for a request to say"
    told = f"{', '.join(names)} {are} ignored, and neither stored nor logged: {why}."
    return {"ignored": list(names), "ignoredBecause": told}
