"""JSON bodies of code selections, and responses of the code endpoints.

``selection_to_json`` returns selected files. The responses of the code endpoints have the field names of existing
clients and Lamella's own.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lamella.ports import CodeFile, CodeForm, CodeSelection


def selection_to_json(selection: CodeSelection, *, explain: bool = False) -> dict[str, object]:
    """Return the selected files with their text, and what was left out; ``explain`` adds the parts of each score."""
    return {
        "lamella": 1,
        "root": selection.root,
        "question": selection.question,
        "budget": selection.budget,
        "tokens": selection.tokens,
        "files": [_file_to_json(one, explain=explain) for one in selection.files],
        "left_out": [{"path": path, "reason": why} for path, why in selection.left_out],
        "text": selection.text,
        "told": list(selection.warnings),
    }


def _file_to_json(file: CodeFile, *, explain: bool) -> dict[str, object]:
    body: dict[str, object] = {
        "path": file.path,
        "form": file.form.value,
        "tokens": file.tokens,
        "score": file.score,
        "text": file.text,
    }
    return {**body, "parts": dict(file.score_parts)} if explain else body


# Responses of the code endpoints.


class MessageShape(Protocol):
    """A message that can be converted to a dict."""

    def to_dict(self) -> dict[str, str]: ...


class StateShape(Protocol):
    """The state of a code task: which instruction blocks are in the prompt."""

    def to_dict(self) -> dict[str, object]: ...


class SolutionShape(Protocol):
    """The properties of an answer that the response needs."""

    @property
    def reply(self) -> str: ...
    @property
    def history(self) -> Sequence[MessageShape]: ...
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


def state_to_json(conversation_key: str | None, state: StateShape) -> dict[str, object]:
    """Return the task state of a conversation."""
    return {"lamella": 1, "conversation": conversation_key, "chatState": state.to_dict()}


def solution_to_json(solution: SolutionShape) -> dict[str, object]:
    """Return an answer with the whole history."""
    return {
        "lamella": 1,
        "data": solution.reply,
        "tokensUsed": solution.tokens_used,
        "chatHistory": [one.to_dict() for one in solution.history],
        "chatState": solution.state.to_dict(),
        "conversation": solution.conversation,
        "model": solution.model,
        "warnings": list(solution.warnings),
        **ignored_to_json(solution.ignored),
    }


def filter_to_json(selection: CodeSelection, ignored: Sequence[str] = ()) -> dict[str, object]:
    """Return the selected files with their content; files that are included by name only are left out of ``data``."""
    chosen = [
        {"path": one.path, "content": one.text, "form": one.form.value, "tokens": one.tokens}
        for one in selection.files
        if one.form is not CodeForm.NAME
    ]
    return {"data": chosen, "tokensUsed": selection.tokens, **selection_to_json(selection), **ignored_to_json(ignored)}


def ignored_to_json(names: Sequence[str]) -> Mapping[str, object]:
    """Return the request fields that were ignored, and a sentence that explains why."""
    if not names:
        return {"ignored": []}
    are = "is" if len(names) == 1 else "are"
    why = "who asks, and with which key, is not for a request to say"
    told = f"{', '.join(names)} {are} ignored, and neither stored nor logged: {why}."
    return {"ignored": list(names), "ignoredBecause": told}
