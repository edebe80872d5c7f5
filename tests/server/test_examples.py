"""The API description is complete: every route has its bodies, field by field, with an example that the server answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it comes with schemathesis
import msgspec
import pytest
from tests.bodies import check_body, find_body_types
from tests.server.examples import FILE, name_home, record, write
from tests.server.running import read_events, running

from lamella import ToolCall
from lamella.core.messages import Usage
from lamella.schemas.answers import EVENTS
from lamella.schemas.changes import CHANGE_EVENTS
from lamella.testing import ScriptedProvider, ScriptedReply

Operation = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    with running("memory:", ScriptedProvider()) as server:
        told: dict[str, Any] = server.client.get("/openapi.json").json()
        return told


def list_operations(description: dict[str, Any]) -> Iterator[Operation]:
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path}", operation


def list_contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is taken and given in JSON, errors included."""
    if "application/json" in operation.get("requestBody", {}).get("content", {}):
        yield "request", operation["requestBody"]["content"]["application/json"]
    for status, response in operation["responses"].items():
        yield from [(status, one) for kind, one in response.get("content", {}).items() if kind == "application/json"]


def test_recorded_examples_match_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If something changed on purpose, ``python -m tests.server.examples`` writes them again."""
    for name, value in name_home(str(tmp_path)).items():
        monkeypatch.setenv(name, value)
    assert write(record()) == FILE.read_text(encoding="utf-8")


def test_every_route_has_example_request_and_response(description: dict[str, Any]) -> None:
    missing = []
    for address, operation in list_operations(description):
        shown = [one for response in operation["responses"].values() for one in response.get("content", {}).values()]
        missing += [f"{address}: answer"] * (sum("example" in one for one in shown) < 2)
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        missing += [f"{address}: request"] * (body is not None and "example" not in body)
    assert missing == []


def test_every_body_is_described_by_name_and_every_example_is_as_described(description: dict[str, Any]) -> None:
    tried = 0
    for address, operation in list_operations(description):
        for place, content in list_contents(operation):
            named = content["schema"].get("$ref", "")
            assert named, f"{address}: {place}"
            known = description["components"]["schemas"][named.rpartition("/")[2]]
            assert known.get("properties") or named.endswith("/ProviderRequestJson"), named
            if "example" in content:
                tried += 1
                schema = {"$ref": named, "components": description["components"]}
                jsonschema.Draft202012Validator(schema).validate(content["example"])
    assert tried >= 2 * 60


def test_every_example_matches_its_body_type_exactly(description: dict[str, Any]) -> None:
    kinds, tried = find_body_types(), 0
    for address, operation in list_operations(description):
        for place, content in list_contents(operation):
            name = content["schema"]["$ref"].rpartition("/")[2]
            # The bodies of other APIs are not ours.
            if place != "request" and "example" in content and name in kinds:
                tried += 1
                check_body(kinds[name], content["example"])
                with_more = {**content["example"], "unknown": 1}
                if address.endswith(("/request", "/export")):
                    continue
                with pytest.raises(msgspec.ValidationError, match="unknown field `unknown`"):
                    check_body(kinds[name], with_more)
    assert tried >= 120


def test_every_example_event_matches_its_body_type_exactly(description: dict[str, Any]) -> None:
    streams = [
        content["example"]
        for _, operation in list_operations(description)
        for response in operation["responses"].values()
        for kind, content in response.get("content", {}).items()
        if kind == "text/event-stream" and "schema" not in content and "example" in content
    ]
    events = [event for stream in streams for event in read_events(iter(stream.splitlines()))]
    for event in events:
        check_body({**EVENTS, **CHANGE_EVENTS}[event.name], event.data)
    assert {"delta", "usage", "done", "ready"} <= {event.name for event in events}


def test_every_event_of_a_stream_is_as_described(description: dict[str, Any]) -> None:
    content = description["paths"]["/v1/conversations/{conversation}/messages"]["post"]["responses"]["200"]["content"]
    (kinds,) = content["text/event-stream"]["itemSchema"].values()
    described = {one["properties"]["event"]["const"]: one["properties"]["data"]["contentSchema"] for one in kinds}
    line = ScriptedReply(text="At noon.", reasoning="It was asked.", usage=Usage(plain=9, output=2))
    call = ScriptedReply(text="Let me look.", calls=(ToolCall(id="c1", name="tide", arguments="{}"),))
    seen = []
    with running("memory:", ScriptedProvider(line, call)) as server:
        path = f"/v1/conversations/{server.begin('tides')}/messages"
        for body in ({"text": "When?"}, {"text": "And then?", "tools": [{"name": "tide"}]}, {"text": "Once more?"}):
            with server.client.stream("POST", path, json=body) as answer:
                seen += list(read_events(answer.iter_lines()))
    for event in seen:
        schema = {**described[event.name], "components": description["components"]}
        jsonschema.Draft202012Validator(schema).validate(event.data)
        check_body(EVENTS[event.name], event.data)
    assert {"envelope", "delta", "reasoning", "usage", "done", "error"} <= {event.name for event in seen}
