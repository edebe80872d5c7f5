"""Values of wrong types anywhere in a request body are refused with one of our errors, never a 500."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import RunningServer, running
from tests.server.test_schema import PatientProvider

from lamella.core.artifacts.model import ArtifactKind
from lamella.settings.model import Settings

EXAMPLES: dict[str, dict[str, Any]] = json.loads(Path("src/lamella/server/examples.json").read_text(encoding="utf-8"))
COMPATIBLE = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings")
WRONG: tuple[Any, ...] = (5, -1, 10**30, True, None, "x", "\x00", [5], {"a": 5})
# One of each JSON type, where every field of every kind is tried.
TYPES: tuple[Any, ...] = (5, [5], {"a": 5})
ROUTES = [
    name for name, example in EXAMPLES.items() if "request" in example and name.partition(" ")[2] not in COMPATIBLE
]
FIELDS = ("path", "text", "data", "url", "lines", "query", "title", "policy", "content")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", PatientProvider(), vault=Path("examples/vault"), serve={"rate": 10_000_000}) as one:
        yield one


def replace_values(value: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Yield the value with each of its parts replaced by each wrong value, one at a time."""
    yield from WRONG
    if isinstance(value, dict):
        yield {**value, "unknown": 1}
        for name, part in value.items():
            yield from ({**value, name: changed} for changed in replace_values(part))
    if isinstance(value, list) and value:
        yield from ([changed, *value[1:]] for changed in replace_values(value[0]))


def check(server: RunningServer, method: str, path: str, body: Any) -> None:  # noqa: ANN401 - any JSON
    """Send a body; an error must have the shape, the code and the hint of ours."""
    answer = server.client.request(method, path, content=json.dumps(body), headers={"content-type": "application/json"})
    told = f"{method} {path} {json.dumps(body)[:300]}: {answer.status_code} {answer.text[:300]}"
    assert answer.status_code < 500, told
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert error["code"] != "lamella_error", told
        assert error["hint"], told


@pytest.mark.parametrize("route", ROUTES)
def test_wrong_types_in_a_body_are_refused(server: RunningServer, route: str) -> None:
    method, _, path = route.partition(" ")
    server.client.post("/v1/conversations", json={"name": "known"})
    known = server.ask("known", "When?")["message"]
    path = path.format(
        conversation="known", message=known, fact="f1", rule="r1", number=1, permission="w1", key="sleep"
    )
    body = EXAMPLES[route]["request"]
    # Whole answers: an error in a stream would come with status 200.
    body = {**body, "stream": False} if isinstance(body, dict) and "stream" in body else body
    for changed in replace_values(body):
        check(server, method, path, changed)


def test_wrong_types_in_attachments_are_refused(server: RunningServer) -> None:
    key = server.begin("attaching")
    for kind in ArtifactKind:
        for field in FIELDS:
            for value in TYPES:
                body = {"attach": [{"kind": kind.value, "path": "project-spec.md", field: value}]}
                check(server, "POST", f"/v1/conversations/{key}/attachments", body)


def test_wrong_types_of_settings_are_refused(server: RunningServer) -> None:
    key = server.begin("setting")
    for name in Settings.__struct_fields__:
        for value in TYPES:
            check(server, "PATCH", f"/v1/conversations/{key}/settings", {"settings": {name: value}})
