"""Parse requests of the documented code endpoints.

Unknown fields are errors. A few fields are accepted and ignored, because clients may not decide them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamella.conversation.validation import check_bool, check_text
from lamella.errors import InvalidOperationError
from lamella.runners.code_questions import (
    CodeQuestion,
    CodeTask,
    InstructionsInPrompt,
    parse_messages,
    parse_task,
    parse_task_state,
)

# The server decides the user, the API key and the plan. The values of these fields are never read.
IGNORED_FIELDS = ("apiKey", "isPremium", "userId")
_SOLVE_FIELDS = (
    "prompt", "messages", "codeSnippet", "useTemplate", "model", "isCodebaseAnalysis", "chatState",
    "kind", "conversation", "codebase", "filterMaxTokensCount", "maxTokens",
)  # fmt: skip
_FILTER_FIELDS = ("codebase", "question", "prompt", "model", "filterType", "filterMaxTokensCount")
_FILTER_TYPE = "regularFilter"
_FILES_HINT = 'Send files with their contents: [{"path": "src/main.py", "content": "…"}], or {"src/main.py": "…"}.'
BUDGET_FIELD = "filterMaxTokensCount"


class FileRequest(NamedTuple):
    """Files with their contents by path, the question to select them for, and the token budget."""

    files: dict[str, str]
    question: str
    budget: int | None = None
    model: str | None = None


def parse_code_question(body: object) -> tuple[CodeQuestion, FileRequest | None, tuple[str, ...]]:
    """Parse a request to ``solve``.

    Returns the question, the files to select from (None if none were sent), and the names of the ignored fields.
    """
    fields, ignored = _split_fields(body, _SOLVE_FIELDS)
    prompt = _get_text(fields, "prompt")
    kind = _parse_task(fields)
    problem = CodeQuestion(
        prompt=prompt,
        history=parse_messages(() if fields.get("messages") is None else fields["messages"]),
        code=_get_text(fields, "codeSnippet"),
        use_template=_get_bool(fields, "useTemplate", default=True),
        model=_get_text(fields, "model") or None,
        task=kind,
        task_state=parse_task_state(fields.get("chatState")),
        conversation=_get_text(fields, "conversation") or None,
        max_tokens=_get_int(fields, "maxTokens"),
    )
    if fields.get("codebase") in (None, {}, []):
        return problem, None, ignored
    if kind is not CodeTask.CODEBASE:
        raise InvalidOperationError(
            f"codebase goes with no {kind}.", hint="Set isCodebaseAnalysis to true, or leave it out."
        )
    budget = _get_int(fields, BUDGET_FIELD)
    return problem, FileRequest(_parse_files(fields["codebase"]), prompt, budget, problem.model), ignored


def build_code_question(
    prompt: str,
    *,
    messages: object,
    code: str,
    kind: str,
    state: object,
    template: bool,
    model: str | None,
    conversation_key: str | None,
    max_tokens: int | None,
) -> CodeQuestion:
    """Build a question from the arguments of a Python caller, after checking their types."""
    return CodeQuestion(
        prompt=check_text(prompt, "prompt"),
        history=parse_messages(messages),
        code=check_text(code, "code"),
        use_template=bool(check_bool(template, "template")),
        model=None if model is None else check_text(model, "model", may_be_empty=False),
        task=parse_task(check_text(kind, "kind")),
        task_state=state if isinstance(state, InstructionsInPrompt) else parse_task_state(state),
        conversation=None
        if conversation_key is None
        else check_text(conversation_key, "conversation", may_be_empty=False),
        max_tokens=max_tokens,
    )


def parse_filter_request(body: object) -> tuple[FileRequest, tuple[str, ...]]:
    """Parse a request to ``filter``: the files with their question and budget, and the names of the ignored fields."""
    fields, ignored = _split_fields(body, _FILTER_FIELDS)
    if fields.get("filterType", _FILTER_TYPE) != _FILTER_TYPE:
        raise InvalidOperationError("filterType names no filter.", hint=f"There is one: {_FILTER_TYPE}.")
    question = _get_text(fields, "question") or _get_text(fields, "prompt")
    if not question.strip():
        raise InvalidOperationError("There is no question.", hint="Say in `question` what the files are for.")
    files = _parse_files(fields.get("codebase"))
    budget, model = _get_int(fields, BUDGET_FIELD), _get_text(fields, "model") or None
    return FileRequest(files, question, budget, model), ignored


def _split_fields(body: object, known: Sequence[str]) -> tuple[dict[str, object], tuple[str, ...]]:
    if not isinstance(body, Mapping):
        raise InvalidOperationError("The request is not an object.", hint=f"It has: {', '.join(known)}.")
    ignored = tuple(name for name in IGNORED_FIELDS if name in body)
    fields = {str(name): value for name, value in body.items() if name not in IGNORED_FIELDS}
    unknown = sorted(name[:60] for name in fields if name not in known)
    if unknown:
        raise InvalidOperationError(
            f"Nothing is called {', '.join(unknown)}.", hint=f"A request has: {', '.join(known)}."
        )
    return fields, ignored


def _parse_task(fields: Mapping[str, object]) -> CodeTask:
    named = _get_text(fields, "kind")
    analyses = _get_bool(fields, "isCodebaseAnalysis", default=False)
    if not named:
        return CodeTask.CODEBASE if analyses else CodeTask.REGULAR
    kind = parse_task(named)
    if analyses and kind is not CodeTask.CODEBASE:
        raise InvalidOperationError(
            f"isCodebaseAnalysis is true, and kind is {kind}.", hint="Leave one of the two out."
        )
    return kind


def _get_text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return "" if value is None else check_text(value, name)


def _get_bool(fields: Mapping[str, object], name: str, *, default: bool) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidOperationError(
            f"{name} is not true or false.", hint=f"Set {name} to true or false, or leave it out."
        )
    return default if value is None else value


def _get_int(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InvalidOperationError(f"{name} is not a number of tokens.", hint="Give a whole number from 1 on.")
    return value


def _parse_files(files: object) -> dict[str, str]:
    """Return file contents by path.

    Accepts a mapping or a list of objects. A list of bare paths is an error, because Lamella cannot read the client's
    files.
    """
    rows: list[tuple[object, object]]
    if isinstance(files, Mapping):
        rows = list(files.items())
    elif isinstance(files, list | tuple):
        rows = [(one.get("path"), one.get("content", one.get("text"))) if isinstance(one, Mapping) else (one, None)
                for one in files]  # fmt: skip
    else:
        raise InvalidOperationError("codebase holds no files.", hint=_FILES_HINT)
    for number, (path, text) in enumerate(rows, start=1):
        if not isinstance(path, str) or not path.strip():
            raise InvalidOperationError(f"File {number:,} of codebase has no path.", hint=_FILES_HINT)
        if not isinstance(text, str):
            raise InvalidOperationError(f"File {number:,} of codebase has no content.", hint=_FILES_HINT)
        check_text(path, "a path")
        check_text(text, f"file {number:,} of codebase")
    return {str(path): str(text) for path, text in rows}
