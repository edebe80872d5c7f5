"""Every field of every row with other values: a wrong type is refused by name, and nothing is accepted and ignored.

The requests are parsed, translated and checked as the server does it, without a connection.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from tests.server.test_compat_fields import HI, ROWS
from tests.server.upstreams import PATHS, body_for

from lamella.server.compat import anthropic, openai_chat, openai_responses
from lamella.server.compat.identity import find_conversation_label, find_signatures, hash_each_prefix
from lamella.server.compat.json_spans import encode_json
from lamella.server.compat.model_calls import ModelAbilities, build_model_request
from lamella.server.compat.neutral import NeutralRequest
from lamella.server.compat.recall import can_offer_recall, find_recall_conversation, is_recall_refused, to_sent_messages
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.requests import (
    build_passthrough_body,
    is_equivalent_body,
    parse_request,
    plan_breakpoints,
    plan_document_references,
)
from lamella.server.compat.translation import FORMATS, has_same_texts, model_request_has_same_texts, parse_neutral
from lamella.server.compat.wires import ApiFormat

Json = dict[str, Any]
Place = tuple[str | int, ...]
WRONG: tuple[Any, ...] = (
    None, True, -1, 1.5, "x", [], {}, [1], {"a": 1}, [[]], [None], [{}], {"type": "x"}, {"type": 5}, {"type": {}},
    [{"type": ["x"]}], [{"type": "text", "text": 5}], [{"name": 5}], 10**30, "\ud800", "x.lamella.1.eJw=",
)  # fmt: skip
BUILDERS: dict[ApiFormat, Callable[[NeutralRequest], Json]] = {
    ApiFormat.MESSAGES: lambda neutral: anthropic.build_messages_body(neutral, "m", max_tokens=5),
    ApiFormat.CHAT: lambda neutral: openai_chat.build_chat_body(neutral, "m", is_openai=True),
    ApiFormat.RESPONSES: lambda neutral: openai_responses.build_responses_body(neutral, "m"),
}
# The other APIs that requests of each API are translated for.
OTHERS = {
    "messages": ("chat", "responses", "gemini", "local"),
    "chat": ("messages", "gemini", "local"),
    "responses": ("messages", "chat", "gemini", "local"),
}


def translate(wire: ApiFormat, target: str, data: bytes) -> tuple[str, list[str]]:
    """What an upstream of another API gets, and the names of the fields that are left out."""
    client = parse_request(wire, data)
    neutral = parse_neutral(client, plan_document_references(client))
    if target in ("gemini", "local"):
        abilities = ModelAbilities(kind=target, max_tokens=9, takes_images=target == "gemini", takes_tools=True)
        built = build_model_request(neutral, "m", abilities)
        assert model_request_has_same_texts(client, built)
        parts = [(one.to_dict(), one.images, one.calls, one.call_id, one.failed) for one in built.messages]
        return repr((built, built.tools, built.extra_fields_json, parts)), neutral.unused
    body = BUILDERS[ApiFormat(target)](neutral)
    assert has_same_texts(client, ApiFormat(target), body)
    return encode_json(body).decode(), neutral.unused


def pass_on(wire: ApiFormat, data: bytes) -> None:
    """Do what is done for an upstream of the same API, and for recall."""
    client = parse_request(wire, data)
    hash_each_prefix("owner", wire, client.system_and_tools, client.messages)
    find_signatures(client.messages)
    find_conversation_label({}, client.body)
    marks = wire is ApiFormat.MESSAGES and not client.has_breakpoints
    breakpoints = plan_breakpoints(client, seen_messages=1) if marks else None
    sent = build_passthrough_body(client, model="m", layout=plan_document_references(client), breakpoints=breakpoints)
    assert is_equivalent_body(client, sent, model="m", has_added_breakpoints=marks)
    assert not is_recall_refused({}, client.body)
    assert find_recall_conversation({}, client.body) is None
    can_offer_recall(client.body)
    to_sent_messages(client, FORMATS)


def list_places(value: object, place: Place = ()) -> Iterator[Place]:
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from list_places(one, (*place, name))


def get(body: Json, place: Place) -> Any:  # noqa: ANN401 - any JSON
    at: Any = body
    for name in place:
        at = at[name]
    return at


def replaced(body: Json, place: Place, value: object) -> bytes:
    made = deepcopy(body)
    get(made, place[:-1])[place[-1]] = value
    return json.dumps(made).encode()


def bodies(wire: str) -> Iterator[tuple[str, Json]]:
    yield from ((one.name, body_for(wire, HI) | one.sends) for one in ROWS if one.wire == wire)


@pytest.mark.parametrize("wire", PATHS)
def test_wrong_type_is_refused_with_a_name_or_passed_on(wire: str) -> None:
    tried = {
        replaced(body, place, value): (name, place)
        for name, body in bodies(wire)
        for place in list_places(body)
        for value in WRONG
    }
    assert len(tried) > 5_000
    unnamed: list[object] = []
    for data, at in tried.items():
        for target in ("same", *OTHERS[wire]):
            try:
                if target == "same":
                    pass_on(ApiFormat(wire), data)
                else:
                    translate(ApiFormat(wire), target, data)
            except RefusedFieldError as refused:
                unnamed += [] if refused.param else [(at, data)]
            except Exception as error:
                raise AssertionError(f"{type(error).__name__} for {target}: {at} {data[:500]!r}") from error
    assert unnamed == []


# What identifies an item or decides about the connection, and is read elsewhere; and the inside of fields that the note lists.
UNREAD = {"stream", "id", "status", "previous_response_id", "store", "include_usage", "media_type"}
LISTED = {
    "thinking", "signature", "data", "summary", "encrypted_content", "cache_control", "diagnostics", "metadata",
    "block_binding", "prompt_cache_breakpoint", "prompt_cache_options", "prompt_cache_diagnostics", "client_metadata",
}  # fmt: skip

# Rows whose block or tool is left out as a whole and listed.
LEFT_OUT = {"thinking block", "redacted_thinking block", "web_search"}


def other_values(value: object) -> list[object]:
    match value:
        case bool():
            return [not value, "zq"]
        case int() | float():
            # A budget of thinking stands for one of three efforts.
            return [value * 9 + 5, "zq"]
        case str():
            return ["zq", 5]
        case list():
            return [[*value, {"zq": "zq"}], "zq"]
        case dict():
            return [{**value, "zq": "zq"}, "zq"]
    return []


@pytest.mark.parametrize("wire", PATHS)
def test_nothing_is_accepted_and_ignored(wire: str) -> None:
    checked, ignored = 0, []
    for name, body in bodies(wire):
        for target in OTHERS[wire]:
            try:
                before = translate(ApiFormat(wire), target, json.dumps(body).encode())
            except RefusedFieldError:
                continue
            for place in list_places(body):
                if name in LEFT_OUT and place[-1] == 0:
                    continue
                if {one for one in place if isinstance(one, str)} & (UNREAD | LISTED) or place == ("model",):
                    continue
                for value in other_values(get(body, place)):
                    checked += 1
                    try:
                        after = translate(ApiFormat(wire), target, replaced(body, place, value))
                    except RefusedFieldError:
                        continue
                    is_listed = any(str(one) in noted for noted in after[1] for one in place[-1:])
                    if after == before and not is_listed:
                        ignored.append((name, target, place, value))
    assert not ignored, "\n".join(map(str, ignored))
    assert checked > 300
