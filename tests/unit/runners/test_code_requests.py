"""Requests of the documented endpoints: parsed strictly, except for fields that are ignored."""

import pytest

from lamella.errors import LamellaError
from lamella.runners.code_questions import CodeTask
from lamella.runners.code_requests import IGNORED_FIELDS, FileRequest, parse_code_question, parse_filter_request

WHOLE = {
    "prompt": "Why?",
    "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "codeSnippet": "x = 1",
    "useTemplate": False,
    "model": "scripted:m",
    "apiKey": "sk-very-secret",
    "userId": 7,
    "isPremium": True,
    "isCodebaseAnalysis": False,
    "chatState": {"hasRegularChatInteractionInstructionsBeenGives": True},
}
FILES = {"a.py": "x = 1", "b.py": ""}


def test_request_of_the_documented_shape_is_read_whole() -> None:
    problem, files, ignored = parse_code_question(WHOLE)
    assert (problem.prompt, problem.code, problem.use_template, problem.model) == ("Why?", "x = 1", False, "scripted:m")
    assert (problem.task, problem.task_state.task_names) == (CodeTask.REGULAR, ("regular",))
    assert [turn.question for turn in problem.history.turns] == ["a"]
    assert files is None
    assert ignored == IGNORED_FIELDS


def test_ignored_client_fields_are_not_parsed() -> None:
    assert "secret" not in repr(parse_code_question(WHOLE))
    odd = {**WHOLE, "apiKey": {"any": ["shape"]}, "userId": None, "isPremium": "perhaps"}
    assert parse_code_question(odd)[0] == parse_code_question(WHOLE)[0]


def test_null_equals_missing_field() -> None:
    nothing = dict.fromkeys(("messages", "codeSnippet", "useTemplate", "model", "chatState", "kind", "conversation"))
    assert parse_code_question({"prompt": "x", **nothing})[0] == parse_code_question({"prompt": "x"})[0]


def test_request_may_name_its_task() -> None:
    assert parse_code_question({"prompt": "x", "kind": "fix"})[0].task is CodeTask.FIX
    assert parse_code_question({"prompt": "x", "isCodebaseAnalysis": True})[0].task is CodeTask.CODEBASE
    assert (
        parse_code_question({"prompt": "x", "isCodebaseAnalysis": True, "kind": "codebase"})[0].task
        is CodeTask.CODEBASE
    )


@pytest.mark.parametrize(
    "sent",
    [
        FILES,
        [{"path": "a.py", "content": "x = 1"}, {"path": "b.py", "text": ""}],
        [{"path": "a.py", "content": "x = 1"}, {"path": "b.py", "content": ""}],
    ],
)
def test_files_are_accepted_in_both_shapes(sent: object) -> None:
    body = {"prompt": "Who?", "isCodebaseAnalysis": True, "codebase": sent, "filterMaxTokensCount": 500}
    assert parse_code_question(body)[1] == FileRequest(FILES, "Who?", 500, None)
    asked = {"codebase": sent, "question": "Who?", "filterType": "regularFilter", "model": "m", "userId": 7}
    assert parse_filter_request(asked) == (FileRequest(FILES, "Who?", None, "m"), ("userId",))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"promt": "x"}, "Nothing is called promt"),
        ({"prompt": 7}, "prompt is"),
        ({"messages": "x"}, "messages is not a list"),
        ({"codeSnippet": ["x"]}, "codeSnippet is"),
        ({"useTemplate": "yes"}, "useTemplate is not true or false"),
        ({"isCodebaseAnalysis": 1}, "isCodebaseAnalysis is not true or false"),
        ({"kind": "dance"}, "no kind 'dance'"),
        ({"kind": "fix", "isCodebaseAnalysis": True}, "isCodebaseAnalysis is true, and kind is fix"),
        ({"chatState": 7}, "chatState is not an object"),
        ({"maxTokens": 0}, "maxTokens is not a number"),
        ({"maxTokens": True}, "maxTokens is not a number"),
        ({"codebase": FILES}, "codebase goes with no regular"),
        ({"conversation": 7}, "conversation is"),
    ],
)
def test_invalid_solution_request_is_refused_without_content(more: dict[str, object], what: str) -> None:
    with pytest.raises(LamellaError, match=what) as caught:
        parse_code_question({**WHOLE, **more})
    assert caught.value.hint
    assert "secret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ([], "The request is not an object"),
        ({"codebase": FILES}, "There is no question"),
        ({"question": "x"}, "codebase holds no files"),
        ({"question": "x", "codebase": ["src/a.py"]}, "File 1 of codebase has no content"),
        ({"question": "x", "codebase": [{"path": " ", "content": ""}]}, "File 1 of codebase has no path"),
        ({"question": "x", "codebase": {"a.py": 7}}, "File 1 of codebase has no content"),
        ({"question": "x", "codebase": {"a.py": "\ud800"}}, "half of a pair"),
        ({"question": "x", "codebase": FILES, "filterType": "other"}, "filterType names no filter"),
        ({"question": "x", "codebase": FILES, "filterMaxTokensCount": -1}, "filterMaxTokensCount is not a number"),
        ({"question": "x", "codebase": FILES, "files": {}}, "Nothing is called files"),
    ],
)
def test_invalid_filter_request_is_refused(body: object, what: str) -> None:
    with pytest.raises(LamellaError, match=what) as caught:
        parse_filter_request(body)
    assert caught.value.hint
