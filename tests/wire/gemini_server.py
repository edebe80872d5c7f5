"""Google's Gemini API on the loopback: its checks, its implicit cache, caches of their own, its chunks."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire.caching import ImplicitCache, Served
from tests.wire.script import Act, Fail, Say
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, misbehave, serve

KEY = "AIza-right"
MODEL = "gemini-3.8-flash"
ROOT = "/v1"
SIGNATURE = "c2lnbmVk-_8="


@dataclass(slots=True, kw_only=True)
class GeminiServer(Loopback):
    """The server's state: its script, its caches, and what it refuses to delete."""

    acts: deque[Act]
    cache: ImplicitCache = field(default_factory=lambda: ImplicitCache(minimum=4_096))
    served: list[Served] = field(default_factory=list)
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    keeps: bool = False

    def __post_init__(self) -> None:
        Loopback.__init__(self)

    def answer(self, call: Call) -> Outcome:
        if call.headers.get("x-goog-api-key") != KEY:
            return _error(
                Fail(status=400, kind="INVALID_ARGUMENT", words="API key not valid. Please pass a valid API key.")
            )
        if call.path.startswith(f"{ROOT}/cachedContents"):
            return self._store(call)
        refusal = _refuse(call) or self._find_wrong(call.body)
        if refusal is not None:
            return _error(refusal)
        act = self.acts.popleft() if self.acts else Say()
        opening = [_event(_chunk([{"text": "Well"}]))]
        outcome = misbehave(act, opening, idle=b"\n", word=_event(_chunk([{"text": "more "}])))
        if outcome is not None:
            return outcome
        if isinstance(act, Fail):
            return Flow(chunks=[*opening, _event(_failure(act))]) if act.inside else _error(act)
        assert isinstance(act, Say)
        return self._say(act, call)

    def _say(self, say: Say, call: Call) -> Outcome:
        body = call.body
        served = self._serve(body)
        self.served.append(served)
        usage = {**_usage(served), **say.usage}
        if ":streamGenerateContent" in call.path:
            return Flow(chunks=[_event(chunk) for chunk in _chunks(say, usage)])
        whole = _chunk([part for chunk in _parts(say) for part in chunk], reason=_reason(say))
        return json_answer({**whole, "usageMetadata": usage})

    def _serve(self, body: dict[str, Any]) -> Served:
        name = body.get("cachedContent")
        prefix = [
            json.dumps(self.stored.get(str(name), body).get(part)).encode() for part in ("systemInstruction", "tools")
        ]
        contents = [json.dumps(content).encode() for content in body["contents"]]
        if name is None:
            return self.cache.serve(MODEL, [*prefix, *contents])
        read = sum(map(len, prefix)) // 4
        return Served(plain=sum(map(len, contents)) // 4, read=read)

    def _find_wrong(self, body: dict[str, Any]) -> Fail | None:
        if not all(content["parts"] for content in body["contents"]):
            return Fail(status=400, kind="INVALID_ARGUMENT", words="contents.parts must not be empty.")
        name = body.get("cachedContent")
        if name is not None and name not in self.stored:
            return Fail(status=403, kind="PERMISSION_DENIED", words="CachedContent not found (or permission denied)")
        if name is not None and ("systemInstruction" in body or "tools" in body):
            return Fail(status=400, kind="INVALID_ARGUMENT", words="CachedContent can not be used with tools")
        return None

    def _store(self, call: Call) -> Outcome:
        name = call.path.removeprefix(f"{ROOT}/").partition("?")[0]
        match call.method:
            case "POST":
                self.made += 1
                name = f"cachedContents/{self.made}"
                self.stored[name] = call.body
                return json_answer({"name": name, "model": f"models/{MODEL}", "expireTime": "2026-11-16T10:00:00Z"})
            case "PATCH" if name in self.stored:
                self.stored[name] |= call.body
                return json_answer({"name": name, "model": f"models/{MODEL}"})
            case "DELETE" if self.keeps:
                return _error(Fail(status=500, kind="INTERNAL", words="An internal error has occurred."))
            case "DELETE" if name in self.stored:
                del self.stored[name]
                return json_answer({})
        return _error(
            Fail(status=403, kind="PERMISSION_DENIED", words="CachedContent not found (or permission denied)")
        )


@contextmanager
def gemini_server(*acts: Act) -> Iterator[GeminiServer]:
    server = GeminiServer(acts=deque(acts))
    with serve(server.answer, server):
        yield server


def _refuse(call: Call) -> Fail | None:
    place, _, method = call.path.partition(":")
    if not place.startswith(f"{ROOT}/models/") or method.partition("?")[0] not in (
        "generateContent", "streamGenerateContent",
    ):  # fmt: skip
        return Fail(status=404, kind="NOT_FOUND", words="Requested entity was not found.")
    model = place.removeprefix(f"{ROOT}/models/")
    if model != MODEL:
        return Fail(status=404, kind="NOT_FOUND", words=f"models/{model} is not found for API version v1")
    return None


def _failure(fail: Fail) -> dict[str, Any]:
    details = []
    if "retry-after" in fail.headers:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details = [{"@type": kind, "retryDelay": f"{fail.headers['retry-after']}s"}]
    return {"error": {"code": fail.status, "message": fail.words, "status": fail.kind, "details": details}}


def _error(fail: Fail) -> Outcome:
    return json_answer(_failure(fail), status=fail.status)


def _usage(served: Served) -> dict[str, Any]:
    usage = {"promptTokenCount": served.total, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    # The real API leaves out what is zero.
    return usage | ({"cachedContentTokenCount": served.read} if served.read else {})


def _parts(say: Say) -> Iterator[list[dict[str, Any]]]:
    yield from ([{"text": text, "thought": True}] for text in _halves(say.reasoning))
    yield from ([{"text": text}] for text in _halves(say.text))
    for call in say.calls:
        function = {"name": call.name, "args": call.arguments} | ({"id": call.id} if call.id else {})
        yield [{"functionCall": function, "thoughtSignature": SIGNATURE}]


def _reason(say: Say) -> str:
    return say.stop or "STOP"


def _chunk(parts: list[dict[str, Any]], *, reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {"finishReason": reason} if reason else {}
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "resp-1"}


def _chunks(say: Say, usage: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (_chunk(parts) for parts in _parts(say))
    yield {**_chunk([{"text": ""}], reason=_reason(say)), "usageMetadata": usage}


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\r\n\r\n".encode()


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
