"""A redacted log has no word of the original and gives the same findings."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from tests.planted_logs import CAUSES, WIRES, fits, make_log

from lamella.doctor.analysis import Diagnosis, Examination, normalize_model
from lamella.doctor.log_files import LogReader
from lamella.doctor.redaction import Redactor
from lamella.wiring import read_services
from lamella.wiring.doctor import build_knowledge

SERVICES = read_services()
KNOWLEDGE = build_knowledge(SERVICES)
CASES = [(cause, wire) for wire in WIRES for cause in CAUSES if fits(cause, wire, usage=True)]


def examine(lines: Iterable[str]) -> Diagnosis:
    examination = Examination(KNOWLEDGE)
    for call in LogReader().read_stream(io.BytesIO("\n".join(lines).encode()), name="a log"):
        examination.add(call)
    return examination.finish()


def redact(lines: Iterable[str]) -> list[str]:
    redactor = Redactor(b"secret" * 5)
    calls = LogReader().read_stream(io.BytesIO("\n".join(lines).encode()), name="a log")
    return [
        msgspec.json.encode(
            redactor.redact(call, SERVICES.counter.get_tokenizer(normalize_model(call) or None))
        ).decode()
        for call in calls
    ]


@pytest.mark.parametrize(("cause", "wire"), CASES)
def test_redacted_log_keeps_every_finding_with_its_price(cause: str, wire: str) -> None:
    for usage in (True, False):
        if not fits(cause, wire, usage=usage):
            continue
        lines = make_log(21, cause, wire, usage=usage, conversations=2, interleaved=True)
        before, after = examine(lines), examine(redact(lines))
        expected = [(one.cause, one.requests, one.tokens, one.cost) for one in before.findings]
        assert [(one.cause, one.requests, one.tokens, one.cost) for one in after.findings] == expected
        assert (after.input, after.reached, after.spent) == (before.input, before.reached, before.spent)


def test_redacted_log_has_no_long_word_of_the_original() -> None:
    for wire in WIRES:
        lines = make_log(21, "document_repeated", wire)
        texts = " ".join(json.dumps(json.loads(line)["request"]) for line in lines)
        made = " ".join(redact(lines)).lower()
        long_words = set(re.findall(r"[a-z]{9,}", texts.lower())) - {"properties", "ephemeral", "cache_control"}
        known = {
            "description",
            "parameters",
            "function_call_output",
            "tool_use_id",
            "instructions",
            "assistant",
            "arguments",
        }
        assert [word for word in long_words if re.search(rf"\b{word}\b", made) and word not in known] == []


def test_numbers_and_short_words_stay_different() -> None:
    redactor = Redactor(b"secret" * 5)
    made = [redactor.redact_text(str(number)) for number in range(10, 100)]
    assert len(set(made)) == 90
    assert redactor.redact_text("At 2026-11-02 09:03 it was calm.").startswith(redactor.redact_text("At"))
    assert "2026-11-02 09:03" in redactor.redact_text("At 2026-11-02 09:03 it was calm.")


_DATA = {"user": {"status": "fired for theft", "detail": "John Smith", "mode": {"x": "secret"}, "Jane Doe": "x"}}
_SCHEMA = {
    "type": "object",
    "properties": {"status": {"type": "string", "enum": ["fired"]}, "person": {"$ref": "#/$defs/person"}},
    "$defs": {"person": {"type": "object", "title": "Person", "mode": {"detail": "tall"}}},
    "required": ["status"],
}
_REQUESTS: list[dict[str, Any]] = [
    {
        "model": "claude-sonnet-4-5", "metadata": {"user_id": "jane", "status": ["ill"]},
        "tools": [{"name": "find", "description": "Finds.", "input_schema": _SCHEMA}],
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a1", "name": "find", "input": _DATA}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a1", "content": [_DATA]}]},
        ],
    },
    {
        "model": "gpt-5", "tool_choice": {"type": "function", "function": {"name": "find"}},
        "tools": [{"type": "function", "function": {"name": "find", "parameters": _SCHEMA}}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "assistant", "tool_calls": [
                {"id": "a1", "type": "function", "function": {"name": "find", "arguments": json.dumps(_DATA)}}
            ]},
            {"role": "tool", "tool_call_id": "a1", "content": json.dumps(_DATA)},
        ],
    },
    {
        "model": "gpt-5.4", "instructions": "Be kind.", "reasoning": {"effort": "low"},
        "tools": [{"type": "function", "name": "find", "parameters": _SCHEMA}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "function_call", "call_id": "a1", "name": "find", "arguments": json.dumps(_DATA)},
            {"type": "function_call_output", "call_id": "a1", "output": [{"type": "input_text", "text": "no"}, _DATA]},
        ],
    },
]  # fmt: skip
_API_FIELDS = ("type", "role", "model", "effort", "status", "detail", "mode", "cache_control", "tool_choice")
_USER_DATA = {"input", "arguments", "properties", "$defs", "metadata", "user"}


def iter_positions(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any JSON
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in items:
        yield from iter_positions(one, (*path, name))


def plant(record: Any, path: tuple[Any, ...], planted: Any, *, as_name: bool) -> str:  # noqa: ANN401 - any JSON
    copy = deepcopy(record)
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    if as_name and isinstance(holder, dict):
        holder[planted] = {"status": planted}
    else:
        holder[path[-1]] = planted
    return json.dumps(copy)


@pytest.mark.parametrize("request_body", _REQUESTS, ids=WIRES)
def test_planted_word_is_redacted_at_every_position(request_body: dict[str, Any]) -> None:
    response = {"usage": {"prompt_tokens": 9}, "content": [{"type": "text", "text": "Yes."}]}
    record = {
        "timestamp": "2026-11-02T09:00:00Z", "conversation": "c1", "request": request_body, "response": response
    }  # fmt: skip
    random = Random(37)
    lines: list[str] = []
    made: list[str] = []
    for path in iter_positions(record):
        word = "".join(random.choices("bcdfghjklmnpqrstvwxz", k=12))
        within = {*path[2:-1], *(path[1:2] if path[1:2] == ("metadata",) else ())}
        # Outside of a user's data, the value of an API's own field stays if it is a single word.
        is_kept = path[-1] in _API_FIELDS and not _USER_DATA & within
        for planted in (f"{word} was here" if is_kept else word, {"status": f"{word} {word}"}):
            lines.append(plant(record, path, planted, as_name=False))
        lines.append(plant(record, path, word, as_name=True) if isinstance(path[-1], str) else lines[-1])
        made += [word] * 3
    for word, line in zip(made, lines, strict=True):
        assert [one for one in redact([line]) if word in one.lower()] == [], line
    assert len(redact(lines)) > len(lines) / 2


@pytest.mark.parametrize("request_body", _REQUESTS, ids=WIRES)
def test_names_and_values_of_user_data_are_redacted(request_body: dict[str, Any]) -> None:
    text = redact([json.dumps({"request": request_body, "response": {}})])[0].lower()
    for word in ("fired", "theft", "john", "smith", "secret", "jane", "person", "tall"):
        assert word not in text


def test_equal_user_data_stays_equal_and_single_words_of_an_api_stay() -> None:
    body = {
        "model": "gpt-5", "messages": [{"role": "user", "content": "Hi", "metadata": {"status": "Hello", "n": 4711}}],
        "metadata": {"status": "Hello", "n": 4711, "Friedrich": "Monica was sad"},
    }  # fmt: skip
    made = json.loads(redact([json.dumps({"request": body})])[0])["request"]
    inner = made["messages"][0]["metadata"]
    assert list(made["metadata"].items())[:2] == list(inner.items())
    assert len(json.dumps(inner)) == len(json.dumps(body["messages"][0]["metadata"]))  # type: ignore[index]
    assert (made["model"], made["messages"][0]["role"]) == ("gpt-5", "user")
    assert not {"hello", "friedrich", "monica", "4711"} & set(re.findall(r"\w+", json.dumps(made).lower()))
