"""JSON bodies of code selections, and responses of the code endpoints.

``selection_to_json`` returns selected files. The responses of the code endpoints have the field names of existing
clients and Lamella's own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import asdict

from lamella.ports import CodeFile, CodeForm, CodeSelection
from lamella.schemas.answers import ChatState
from lamella.schemas.body import ConversationJsonBase, Count, JsonBody, VersionedBody

if TYPE_CHECKING:
    from lamella.runners.code_questions import CodeAnswer


class RankedFileJson(JsonBody, frozen=True, kw_only=True):
    """A selected file, and how well it matches the question."""

    path: str
    form: Annotated[str, Meta(description="`full`, `skeleton` or `name`.")]
    tokens: Count
    score: float
    text: str
    parts: Annotated[dict[str, float], Meta(description="Parts of the score, if they were asked for.")] | UnsetType = (
        UNSET
    )


class OmittedFileJson(JsonBody, frozen=True, kw_only=True):
    """A file that was left out, and why."""

    path: str
    reason: str


class CodeSelectionJson(VersionedBody, frozen=True, kw_only=True):
    """The files of a folder that were selected within a budget."""

    root: str
    question: str
    budget: Count
    tokens: Count
    files: Sequence[RankedFileJson]
    left_out: Sequence[OmittedFileJson]
    text: Annotated[str, Meta(description="The files as a model reads them.")]
    told: Annotated[Sequence[str], Meta(description="Warnings.")]


class ChosenFileJson(JsonBody, frozen=True, kw_only=True):
    """A selected file with its content."""

    path: str
    content: str
    form: str
    tokens: Count


_Ignored = Annotated[Sequence[str], Meta(description="Fields of the request that were ignored.")]
_IgnoredReason = Annotated[str, Meta(description="Why fields were ignored, if there are any.")]


class FilterResponseJson(CodeSelectionJson, frozen=True, kw_only=True):
    """The files that were selected for a request, with their contents."""

    data: Annotated[Sequence[ChosenFileJson], Meta(description="Without files of which only the name is included.")]
    tokens_used: Count = field(name="tokensUsed")
    ignored: _Ignored
    ignored_because: _IgnoredReason | UnsetType = field(default=UNSET, name="ignoredBecause")


class HistoryMessageJson(JsonBody, frozen=True, kw_only=True):
    """A message in the format of the client's history."""

    role: str
    content: str


class SolutionJson(VersionedBody, frozen=True, kw_only=True):
    """An answer with the whole history and the new state."""

    data: Annotated[str, Meta(description="The answer.")]
    tokens_used: Count = field(name="tokensUsed")
    chat_history: Sequence[HistoryMessageJson] = field(name="chatHistory")
    chat_state: ChatState = field(name="chatState")
    conversation: str | None
    model: str
    warnings: Sequence[str]
    ignored: _Ignored
    ignored_because: _IgnoredReason | UnsetType = field(default=UNSET, name="ignoredBecause")


class CodeStateJson(ConversationJsonBase, frozen=True, kw_only=True):
    """The task state of a conversation."""

    chat_state: ChatState = field(name="chatState")


def selection_to_json(selection: CodeSelection, *, explain: bool = False) -> CodeSelectionJson:
    """Return the selected files with their text, and what was left out; ``explain`` adds the parts of each score."""
    return CodeSelectionJson(
        root=selection.root,
        question=selection.question,
        budget=selection.budget,
        tokens=selection.tokens,
        files=[_file_to_json(one, explain=explain) for one in selection.files],
        left_out=[OmittedFileJson(path=path, reason=why) for path, why in selection.left_out],
        text=selection.text,
        told=selection.warnings,
    )


def _file_to_json(file: CodeFile, *, explain: bool) -> RankedFileJson:
    return RankedFileJson(
        path=file.path,
        form=file.form.value,
        tokens=file.tokens,
        score=file.score,
        text=file.text,
        parts=dict(file.score_parts) if explain else UNSET,
    )


def filter_to_json(selection: CodeSelection, ignored: Sequence[str] = ()) -> FilterResponseJson:
    """Return the selected files with their content; files that are included by name only are left out of ``data``."""
    chosen = [
        ChosenFileJson(path=one.path, content=one.text, form=one.form.value, tokens=one.tokens)
        for one in selection.files
        if one.form is not CodeForm.NAME
    ]
    return FilterResponseJson(
        **asdict(selection_to_json(selection)),
        data=chosen,
        tokens_used=selection.tokens,
        ignored=ignored,
        ignored_because=_explain_ignored_identity_fields(ignored),
    )


def solution_to_json(answer: "CodeAnswer") -> SolutionJson:
    """Return an answer with the whole history."""
    return SolutionJson(
        data=answer.reply,
        tokens_used=answer.tokens_used,
        chat_history=[HistoryMessageJson(role=one.role, content=one.content) for one in answer.history],
        chat_state=answer.state.to_dict(),
        conversation=answer.conversation,
        model=answer.model,
        warnings=answer.warnings,
        ignored=answer.ignored,
        ignored_because=_explain_ignored_identity_fields(answer.ignored),
    )


def _explain_ignored_identity_fields(names: Sequence[str]) -> str | UnsetType:
    """Return a sentence that explains why fields of a request were ignored, if there are any."""
    if not names:
        return UNSET
    are = "is" if len(names) == 1 else "are"
    why = "who asks, and with which key, is not for a request to say"
    return f"{', '.join(names)} {are} ignored, and neither stored nor logged: {why}."
