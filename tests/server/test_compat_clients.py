"""Recorded requests of real programs are served, by an upstream of the same API and by one of another.

``make test-clients`` runs the programs themselves. ``python -m tests.clients --record`` records the requests again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.upstreams import Proxied, proxied

RECORDED = sorted(Path("tests/clients/recorded").glob("*.jsonl"))
OWN = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/responses": "openai"}
OTHER = {"/v1/messages": "compatible", "/v1/chat/completions": "anthropic", "/v1/responses": "anthropic"}


def read_requests(path: Path) -> Iterator[tuple[str, str, dict[str, str], dict[str, Any]]]:
    """The path with its query, the path alone, the headers and the body of each request."""
    for line in path.read_text(encoding="utf-8").splitlines():
        recorded = json.loads(line)
        yield recorded["path"], recorded["path"].partition("?")[0], recorded["headers"], recorded["body"]


def post(proxy: Proxied, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:  # noqa: ANN401 - a response
    data = json.dumps(body, ensure_ascii=False).encode()
    given = {"content-type": "application/json", **headers}
    return proxy.server.client.post(path, content=data, headers=given), data


def test_recordings_cover_thirteen_programs() -> None:
    assert {one.stem for one in RECORDED} >= {"claude-code", "codex", "opencode", "aider", "llm-schema", "pydantic-ai"}
    assert len(RECORDED) == 13


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_upstream_of_the_same_api_gets_the_bytes_of_the_program(path: Path) -> None:
    for address, plain, headers, body in read_requests(path):
        with proxied(OWN[plain]) as proxy:
            answer, data = post(proxy, address, headers, body)
            assert answer.status_code == 200, answer.text
            sent = proxy.sent.removeprefix(b'{"cache_control":{"type":"ephemeral"},')
            expected = data.replace(json.dumps(body["model"]).encode(), b'"scripted:tides"', 1)
            assert sent.lstrip(b"{") == (expected if _is_known(body) else data).lstrip(b"{")
            for name, value in headers.items():
                assert proxy.upstream.calls[-1].headers.get(name) == value


def _is_known(body: dict[str, Any]) -> bool:
    """Whether the name means the model of the server; with a fixed provider every other name passes."""
    return bool(body["model"] == "lamella")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_upstream_of_another_api_gets_a_translation(path: Path) -> None:
    for address, plain, headers, body in read_requests(path):
        with proxied(OTHER[plain]) as proxy:
            answer, _ = post(proxy, address, headers, body)
            assert answer.status_code == 200, answer.text
            assert "the conversation" not in answer.text
            sent = json.loads(proxy.sent)
            assert sent["messages"]
            assert len(sent.get("tools", [])) >= len([one for one in body.get("tools", []) if _is_function(one)])


def _is_function(tool: dict[str, Any]) -> bool:
    return tool.get("type", "custom") in ("function", "custom")
