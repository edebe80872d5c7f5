"""Requests as clients of the documented endpoints send them: read strictly, but for what they may not say."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamella.engine.checks import check_switch, check_text
from lamella.errors import CallError
from lamella.runners.kinds.blocks import ChatKind, find_kind
from lamella.runners.kinds.messages import read_messages
from lamella.runners.kinds.solving import Problem
from lamella.runners.kinds.state import ChatState, parse_state

# Who asks, with which key and in which plan is not for the client to say. What these hold is never looked at.
IGNORED = ("apiKey", "isPremium", "userId")
_SOLVES = (
    "prompt", "messages", "codeSnippet", "useTemplate", "model", "isCodebaseAnalysis", "chatState",
    "kind", "conversation", "codebase", "filterMaxTokensCount", "maxTokens",
)  # fmt: skip
_FILTERS = ("codebase", "question", "prompt", "model", "filterType", "filterMaxTokensCount")
_FILTER_TYPE = "regularFilter"
_FILES = 'Send files with their contents: [{"path": "src/main.py", "content": "…"}], or {"src/main.py": "…"}.'
BUDGET_FIELD = "filterMaxTokensCount"


class FileRequest(NamedTuple):
    """Files with their contents, by path, and what they are to be chosen for, within how many tokens."""

    files: dict[str, str]
    question: str
    budget: int | None = None
    model: str | None = None


def read_problem(body: object) -> tuple[Problem, FileRequest | None, tuple[str, ...]]:
    """What is asked; the files to choose from, where some are sent; and the names of what was not looked at."""
    fields, ignored = _read_fields(body, _SOLVES)
    prompt = _read_text(fields, "prompt")
    kind = _read_kind(fields)
    problem = Problem(
        prompt=prompt,
        talk=read_messages(() if fields.get("messages") is None else fields["messages"]),
        code=_read_text(fields, "codeSnippet"),
        template=_read_switch(fields, "useTemplate", usual=True),
        model=_read_text(fields, "model") or None,
        kind=kind,
        state=parse_state(fields.get("chatState")),
        conversation=_read_text(fields, "conversation") or None,
        max_tokens=_read_number(fields, "maxTokens"),
    )
    if fields.get("codebase") in (None, {}, []):
        return problem, None, ignored
    if kind is not ChatKind.CODEBASE:
        raise CallError(f"codebase goes with no {kind}.", hint="Set isCodebaseAnalysis to true, or leave it out.")
    budget = _read_number(fields, BUDGET_FIELD)
    return problem, FileRequest(_read_files(fields["codebase"]), prompt, budget, problem.model), ignored


def make_problem(
    prompt: str,
    *,
    messages: object,
    code: str,
    kind: str,
    state: object,
    template: bool,
    model: str | None,
    conversation: str | None,
    max_tokens: int | None,
) -> Problem:
    """What a program asks, once its types are known to be right."""
    return Problem(
        prompt=check_text(prompt, "prompt"),
        talk=read_messages(messages),
        code=check_text(code, "code"),
        template=bool(check_switch(template, "template")),
        model=None if model is None else check_text(model, "model", may_be_empty=False),
        kind=find_kind(check_text(kind, "kind")),
        state=state if isinstance(state, ChatState) else parse_state(state),
        conversation=None if conversation is None else check_text(conversation, "conversation", may_be_empty=False),
        max_tokens=max_tokens,
    )


def read_filter(body: object) -> tuple[FileRequest, tuple[str, ...]]:
    """What is to be chosen from, and for which question; and the names of what was not looked at."""
    fields, ignored = _read_fields(body, _FILTERS)
    if fields.get("filterType", _FILTER_TYPE) != _FILTER_TYPE:
        raise CallError("filterType names no filter.", hint=f"There is one: {_FILTER_TYPE}.")
    question = _read_text(fields, "question") or _read_text(fields, "prompt")
    if not question.strip():
        raise CallError("There is no question.", hint="Say in `question` what the files are for.")
    files = _read_files(fields.get("codebase"))
    budget, model = _read_number(fields, BUDGET_FIELD), _read_text(fields, "model") or None
    return FileRequest(files, question, budget, model), ignored


def _read_fields(body: object, known: Sequence[str]) -> tuple[dict[str, object], tuple[str, ...]]:
    if not isinstance(body, Mapping):
        raise CallError("The request is not an object.", hint=f"It has: {', '.join(known)}.")
    ignored = tuple(name for name in IGNORED if name in body)
    fields = {str(name): value for name, value in body.items() if name not in IGNORED}
    unknown = sorted(name[:60] for name in fields if name not in known)
    if unknown:
        raise CallError(f"Nothing is called {', '.join(unknown)}.", hint=f"A request has: {', '.join(known)}.")
    return fields, ignored


def _read_kind(fields: Mapping[str, object]) -> ChatKind:
    named = _read_text(fields, "kind")
    analyses = _read_switch(fields, "isCodebaseAnalysis", usual=False)
    if not named:
        return ChatKind.CODEBASE if analyses else ChatKind.REGULAR
    kind = find_kind(named)
    if analyses and kind is not ChatKind.CODEBASE:
        raise CallError(f"isCodebaseAnalysis is true, and kind is {kind}.", hint="Leave one of the two out.")
    return kind


def _read_text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return "" if value is None else check_text(value, name)


def _read_switch(fields: Mapping[str, object], name: str, *, usual: bool) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise CallError(f"{name} is not true or false.", hint=f"Set {name} to true or false, or leave it out.")
    return usual if value is None else value


def _read_number(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise CallError(f"{name} is not a number of tokens.", hint="Give a whole number from 1 on.")
    return value


def _read_files(given: object) -> dict[str, str]:
    """Files by path. Paths alone are refused: nobody here has a client's files."""
    rows: list[tuple[object, object]]
    if isinstance(given, Mapping):
        rows = list(given.items())
    elif isinstance(given, list | tuple):
        rows = [(one.get("path"), one.get("content", one.get("text"))) if isinstance(one, Mapping) else (one, None)
                for one in given]  # fmt: skip
    else:
        raise CallError("codebase holds no files.", hint=_FILES)
    for number, (path, text) in enumerate(rows, start=1):
        if not isinstance(path, str) or not path.strip():
            raise CallError(f"File {number:,} of codebase has no path.", hint=_FILES)
        if not isinstance(text, str):
            raise CallError(f"File {number:,} of codebase has no content.", hint=_FILES)
        check_text(path, "a path")
        check_text(text, f"file {number:,} of codebase")
    return {str(path): str(text) for path, text in rows}
