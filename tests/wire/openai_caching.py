"""OpenAI's cache and its errors, the same in both of its APIs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.wire.caching import ImplicitCache, MarkedCache, Served
from tests.wire.script import Fail
from tests.wire.serving import Call, Outcome, json_answer

KEY = "sk-right"
MODEL = "gpt-6-sol"
OLD_MODEL = "gpt-5"
LOCAL_MODEL = "qwen3"
_LIVES = {"30m": 1_800.0, "12h": 43_200.0}
_LOOKED_AT = 20

Turn = tuple[str, list[dict[str, Any]]]


@dataclass(slots=True, kw_only=True)
class OpenAICache:
    """New models keep entries at breakpoints and bill them; old ones keep beginnings in steps of 128 tokens."""

    marked: MarkedCache = field(default_factory=lambda: MarkedCache(minimum=1_024, lookback=1))
    implicit: ImplicitCache = field(default_factory=lambda: ImplicitCache(minimum=1_024, step=128, lifetime=600.0))

    def serve(self, body: dict[str, Any], turns: Sequence[Turn]) -> Served:
        model = f"{body['model']} {body.get('prompt_cache_key')}"
        parts = [(role, part) for role, content in turns for part in content]
        blocks = [json.dumps(body.get("tools", [])).encode(), *(_bare(role, part) for role, part in parts)]
        if body["model"] != MODEL:
            return self.implicit.serve(model, blocks)
        marks, also = _marks(body, turns)
        return self.marked.serve(model, blocks, marks, also=also, long=_LIVES["12h"])


def _marks(body: dict[str, Any], turns: Sequence[Turn]) -> tuple[dict[int, float], list[int]]:
    options = body.get("prompt_cache_options", {})
    life = _LIVES[options.get("ttl", "30m")]
    position = 0
    explicit: list[int] = []
    ends: list[int] = []
    for index, (role, content) in enumerate(turns):
        explicit += [position + at for at, part in enumerate(content, 1) if "prompt_cache_breakpoint" in part]
        position += len(content)
        following = turns[index + 1][0] if index + 1 < len(turns) else ""
        opening = role in ("system", "developer") and following not in ("system", "developer") and not ends
        if role == "user" or opening or (role == "tool" and following != "tool"):
            ends.append(position)
    if options.get("mode", "implicit") == "explicit":
        return dict.fromkeys(explicit[-4:], life), explicit
    written = [*explicit[-3:], *ends[-1:]]
    return dict.fromkeys(written, life), [*explicit, *ends[:-1][-_LOOKED_AT:]]


def _bare(role: str, part: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in part.items() if name != "prompt_cache_breakpoint"}
    return f"{role} {json.dumps(kept)}".encode()


def refuse(call: Call, path: str) -> Fail | None:
    """What the real API checks first."""
    if call.path != path:
        return Fail(status=404, kind="invalid_request_error", words=f"Invalid URL (POST {call.path})")
    if call.headers.get("authorization") != f"Bearer {KEY}":
        return Fail(status=401, kind="invalid_api_key", words="Incorrect API key provided.")
    body = call.body
    if body["model"] not in (MODEL, OLD_MODEL, LOCAL_MODEL):
        return Fail(status=404, kind="model_not_found", words=f"The model `{body['model']}` does not exist")
    if body["model"] != MODEL and ("prompt_cache_options" in body or b"prompt_cache_breakpoint" in call.raw):
        return Fail(status=400, kind="invalid_request_error", words="prompt_cache_options is not supported")
    if body["model"] == LOCAL_MODEL and "prompt_cache_key" in body:
        return Fail(status=400, kind="invalid_request_error", words="unknown field prompt_cache_key")
    return None


def failure(fail: Fail) -> dict[str, Any]:
    return {"error": {"message": fail.words, "type": fail.kind, "param": None, "code": fail.kind}}


def error(fail: Fail) -> Outcome:
    return json_answer(failure(fail), status=fail.status, headers=fail.headers)
