"""Every address asked once, and what it answers: the examples of the description. Run as a program it writes them.

python -m tests.server.examples
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from tests.server.running import RunningServer, read_events, running

from lamella import ToolCall
from lamella.errors import AuthenticationError
from lamella.testing import ScriptedProvider, ScriptedReply

FILE = Path("src/lamella/server/examples.json")
CHAT = "/v1/conversations/{conversation}"
NOTE = {"kind": "note", "path": "project-spec.md", "text": "# Spec\n\nThe sluice opens at noon.\n"}
BED = {"path": "beds.js", "content": "export function water(bed) {\n  bed.wet = 1;\n}\n"}
PICTURE = Path("examples/vault/images/floor-plan.png")
TOOL = {"name": "tide", "description": "When the tide is high.", "parameters": {"type": "object", "properties": {}}}
WANTS = ScriptedReply(text="Let me look.", calls=(ToolCall(id="call_1", name="tide", arguments="{}"),))
WRITES = ToolCall(id="call_2", name="write_note", arguments=json.dumps({"path": "beds.md", "content": "Beans.\n"}))
LONG = "It is said in the plan, at some length, and goes on so for a while. " * 12
ASKED = [{"role": "user", "content": "When to sow?"}]
REFERENCES = [{"title": "Desks", "author": ["Doe, Jane"], "year": 2020}]
TABLE = {"caption": "Bookings by floor", "columns": ["floor", "bookings"], "rows": [["1", "12"]]}
FIELDS = {"problem": "Desks are booked twice.", "goals": ["No desk is booked twice."]}
_IDS = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{20}|[0-9a-f]{16}|[0-9a-f]{12})(?![0-9a-f])")
_STAMP = re.compile(r"20\d\d/\d\d/\d\d \d\d:\d\d:\d\d")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
# What depends on the machine and on the moment, by its name.
_PASSING = {"build": 0.002, "first": 0.4, "total": 1.2, "seconds": 1.2, "created": 1_794_996_000}
_PHASES = {"plan": 0.0004, "read": 0.0003, "render": 0.0006, "store": 0.0002}
_AT, _DAY, _EPOCH = "2026-11-15T10:00:00Z", "2026-11-15", 1_794_996_000
Body = dict[str, Any]


class Recording:
    """Asks a server, and keeps what was asked and answered by the address."""

    def __init__(self, server: RunningServer) -> None:
        self._client = server.client
        self.kept: dict[str, Body] = {}

    def call(
        self,
        address: str,
        body: object = None,
        *,
        query: Body | None = None,
        status: int = 0,
        files: list[tuple[str, tuple[str, bytes]]] | None = None,
        **places: str,
    ) -> Any:  # noqa: ANN401 - any JSON
        """What an address answers, once; asked again it is not kept again, nor is what was meant to fail."""
        method, path = address.split(" ")
        answer = self._client.request(method, path.format(**places), json=body, params=query, files=files)
        assert answer.status_code == status if status else answer.status_code < 300, (address, answer.text)
        if status:
            return None
        kept: Body = {} if body is None else {"request": body}
        kind = answer.headers["content-type"].split(";")[0]
        kept |= {"status": answer.status_code, "type": kind, "answer": _read(answer)}
        self.kept.setdefault(address, kept)
        return kept["answer"]

    def refuse_to_write(self, address: str, call: ToolCall) -> None:
        """The answer to a model that wants to write a note."""
        key = self._client.post("/v1/conversations", json={"name": "writing"}).json()["conversation"]
        body = {"text": "Write it down.", "runner": "agent", "permissions": True}
        with self._client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
            for event in read_events(answer.iter_lines()):
                if event.name == "permission" and event.data["allowed"] is None:
                    assert event.data["path"] in call.arguments
                    self.call(address, {"allowed": False}, conversation="writing", permission=event.data["id"])
        self._client.delete(f"/v1/conversations/{key}")

    def listen(self, address: str) -> None:
        """The first event of a stream that has no end."""
        method, path = address.split(" ")
        with self._client.stream(method, path) as answer:
            lines = iter(answer.iter_lines())
            text = "".join(f"{line}\n" for line in iter(lines.__next__, "")) + "\n"
        self.kept[address] = {"status": answer.status_code, "type": "text/event-stream", "answer": text}


def _read(answer: httpx2.Response) -> object:
    if answer.headers["content-type"].startswith("image/"):
        return ""
    return answer.json() if answer.headers["content-type"].startswith("application/json") else answer.text


def record() -> dict[str, Body]:
    """The examples: every address, asked as people would."""
    refused = AuthenticationError("The key is refused.", hint="Give another.")
    lines: list[ScriptedReply | str] = [
        ScriptedReply(calls=(WRITES,)),
        "Not then.",
        *["In March."] * 3,
        "**When to sow beans**",
        WANTS,
        *["In March."] * 2,
        ScriptedReply(error=refused),
        "In March.",
        *[LONG] * 8,
        *["In March."] * 9,
    ]
    with running("memory:", ScriptedProvider(*lines), vault=Path("examples/vault")) as server:
        recording = Recording(server)
        recording.refuse_to_write(f"POST {CHAT}/permissions/{{permission}}", WRITES)
        for part in (_ask, _attach, _look, _compact, _work, _administer, _use_compat, _end):
            part(recording.call)
        recording.listen("GET /v1/events")
    return {address: _settle(address, kept) for address, kept in sorted(recording.kept.items())}


Ask = Callable[..., Any]


def _ask(call: Ask) -> None:
    key = call("POST /v1/conversations", {"name": "garden", "title": "The garden"})["conversation"]
    asked = call(f"POST {CHAT}/messages", {"text": "When to sow?", "stream": False}, conversation=key)
    message = asked["message"]
    call(f"GET {CHAT}/messages/{{message}}/events", conversation=key, message=message)
    call(
        f"PUT {CHAT}/messages/{{message}}",
        {"text": "When to sow beans?", "stream": False},
        conversation="garden",
        message=message,
    )
    call(f"POST {CHAT}/messages/{{message}}/regenerate", {"stream": False}, conversation="garden", message=message)
    call(f"POST {CHAT}/switch", {"head": asked["reply"]}, conversation="garden")
    call(f"POST {CHAT}/title", conversation="garden")
    call(f"POST {CHAT}/fork", {"message": asked["reply"], "name": "garden-again"}, conversation="garden")
    call(f"PATCH {CHAT}", {"title": "Beans"}, conversation="garden")
    call(f"POST {CHAT}/stop", conversation="garden")
    call("POST /v1/conversations/welcome")
    call("POST /v1/conversations/bulk", {"action": "archive", "conversations": ["welcome", "nowhere"]})
    call("GET /v1/conversations")
    call("GET /v1/conversations/search", query={"q": "sow"})
    call(f"GET {CHAT}", conversation="garden")
    call(f"GET {CHAT}/export", conversation="garden")
    call("POST /v1/conversations/import", {"archive": "**user**: Hello\n\n**ai**: Hi.\n"})
    call("POST /v1/conversations", {"name": "tides"})
    body = {"text": "When is high tide?", "stream": False, "tools": [TOOL]}
    waits = call(f"POST {CHAT}/messages", body, conversation="tides")
    given = {"outputs": [{"call": "call_1", "output": "At noon."}], "stream": False}
    call(f"POST {CHAT}/messages/{{message}}/results", given, conversation="tides", message=waits["message"])


def _attach(call: Ask) -> None:
    call("POST /v1/conversations", {"name": "sluice"})
    call(f"POST {CHAT}/attachments", {"attach": [NOTE]}, conversation="sluice")
    call(f"POST {CHAT}/messages", {"text": "When does it open?", "stream": False}, conversation="sluice")
    call(f"GET {CHAT}/attachments", conversation="sluice")
    for name in ("pin", "unpin", "detach", "drop"):
        call(f"POST {CHAT}/{name}", {"names": ["project-spec.md"]}, conversation="sluice")
    call(f"POST {CHAT}/refresh", {"names": []}, conversation="sluice")
    call("POST /v1/conversations", {"name": "house"})
    files = [("files", ("plan.png", PICTURE.read_bytes())), ("files", ("list.txt", b"Seeds and soil."))]
    uploaded = call(f"POST {CHAT}/attachments/files", files=files, conversation="house")["waiting"]["attach"]
    call(f"GET {CHAT}/images/{{image}}", conversation="house", image=uploaded[0]["id"])
    call("GET /v1/notes/complete", query={"q": "one-index"})
    call("GET /v1/notes/search", query={"q": "what is decided", "limit": 1})


def _look(call: Ask) -> None:
    call(f"GET {CHAT}/strata", query={"from": 1, "to": 1}, conversation="sluice")
    call(f"GET {CHAT}/turns/{{number}}", conversation="sluice", number="1")
    query = {"provider": "anthropic", "max_tokens": 500}
    call(f"GET {CHAT}/turns/{{number}}/request", conversation="sluice", number="1", query=query)
    call(f"POST {CHAT}/preview", {"text": "And when does it close?"}, conversation="sluice")
    for name in ("budget", "working-set", "ledger"):
        call(f"GET {CHAT}/{name}", conversation="sluice")
    call(f"GET {CHAT}/why", conversation="sluice", query={"name": "project-spec.md"})
    added = call(f"POST {CHAT}/rules", {"text": "Answer in one sentence."}, conversation="sluice")
    call(f"GET {CHAT}/rules", conversation="sluice")
    call(f"DELETE {CHAT}/rules/{{rule}}", conversation="sluice", rule=added["added"]["id"])
    call(
        f"POST {CHAT}/messages", {"text": "And when does it close?", "stream": False}, conversation="sluice", status=502
    )
    call(f"POST {CHAT}/resume", {"stream": False}, conversation="sluice")


def _compact(call: Ask) -> None:
    own = {"summarizer": "off", "layout": "in_place", "window": 20_000, "reserve": 500}
    call("POST /v1/conversations", {"name": "long", "settings": own})
    for number in range(8):
        call(f"POST {CHAT}/messages", {"text": f"What of point {number}?", "stream": False}, conversation="long")
    call(f"POST {CHAT}/compactions/plan", {"to": 0.01, "since": "turn:5"}, conversation="long")
    call(f"POST {CHAT}/compactions", {"to": 0.01, "since": "turn:5"}, conversation="long")
    call(f"GET {CHAT}/compactions", conversation="long")
    call(f"GET {CHAT}/recall", conversation="long", query={"q": "said in the plan", "limit": 1})
    call(f"POST {CHAT}/compactions/undo", {}, conversation="long")


def _work(call: Ask) -> None:
    call("GET /v1/workflows")
    call("POST /v1/conversations", {"name": "desks"})
    call(f"POST {CHAT}/workflow", {"workflow": "rfc"}, conversation="desks")
    call(f"PATCH {CHAT}/workflow/data", {"fields": FIELDS}, conversation="desks")
    call(f"GET {CHAT}/workflow/data", conversation="desks")
    call(f"POST {CHAT}/workflow/submit", conversation="desks")
    call(f"POST {CHAT}/workflow/approve", {"decision": "Double bookings of desks end."}, conversation="desks")
    call(f"GET {CHAT}/workflow", conversation="desks")
    call(f"GET {CHAT}/workflow/export", conversation="desks", query={"title": "Desks"})
    call(f"POST {CHAT}/workflow/references", {"references": REFERENCES}, conversation="desks")
    call(f"PUT {CHAT}/workflow/exhibits/{{key}}", TABLE, conversation="desks", key="tbl:floors")
    call(f"GET {CHAT}/workflow/check", conversation="desks")
    call(f"GET {CHAT}/workflow/document", conversation="desks", query={"format": "html", "style": "ieee"})
    call(f"DELETE {CHAT}/workflow/items/{{key}}", conversation="desks", key="tbl:floors")
    call(f"POST {CHAT}/workflow/undo", conversation="desks")
    call(f"PATCH {CHAT}/workflow/data", {"fields": {"state": "By hand."}}, conversation="desks")
    call(f"POST {CHAT}/workflow/submit", conversation="desks")
    call(f"POST {CHAT}/workflow/revise", {"note": "Say who books."}, conversation="desks")
    call(f"POST {CHAT}/workflow/rewind", {"stage": "problem"}, conversation="desks")


def _administer(call: Ask) -> None:
    call("GET /v1/session")
    call("POST /v1/session", {"token": "lamella_…"})
    call("DELETE /v1/session")
    for path in (
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/runners",
        "/v1/tools",
        "/v1/models",
        "/v1/prices",
        "/v1/settings",
    ):
        call(f"GET {path}")
    call(f"GET {CHAT}/settings", conversation="long")
    call(f"PATCH {CHAT}/settings", {"settings": {"temperature": 0.2}}, conversation="long")
    fact = call("POST /v1/memory", {"text": "Writes in British English."})
    call("GET /v1/memory")
    changed = call("PUT /v1/memory/{fact}", {"text": "Writes in plain English."}, fact=fact["id"])
    call("DELETE /v1/memory/{fact}", fact=changed["id"])
    call(f"GET {CHAT}/memory", conversation="long")
    call(f"POST {CHAT}/memory", conversation="long")
    call(f"POST {CHAT}/keep-alive", conversation="long")
    call(f"GET {CHAT}/tools", conversation="long")
    call(f"POST {CHAT}/tools/refresh", conversation="long")
    call("GET /v1/models/{model}", model="scripted:tides")
    place = {"field": "model", "place": "openai:gpt-5.5"}
    call("POST /v1/trust", place)
    call("GET /v1/trust")
    call("DELETE /v1/trust", query=place)


def _use_compat(call: Ask) -> None:
    asked = {"prompt": "And why?", "messages": [{"role": "user", "content": "What does it do?"}], "apiKey": "unused"}
    chosen = {"codebase": [BED], "question": "What waters a bed?"}
    for path in ("/v1/solution", "/Unfold/New/solution"):
        call(f"POST {path}", asked)
    for path in ("/v1/codebase-filter", "/Unfold/new/codebase-filter"):
        call(f"POST {path}", chosen)
    call("POST /v1/chat/completions", {"model": "lamella", "messages": ASKED})
    response = call("POST /v1/responses", {"model": "lamella", "input": "When to reap?"})["id"]
    call("GET /v1/responses/{response_id}", response_id=response)
    call("DELETE /v1/responses/{response_id}", response_id=response)
    call("POST /v1/messages", {"model": "lamella", "max_tokens": 500, "messages": ASKED})
    call("POST /v1/messages/count_tokens", {"model": "lamella", "messages": ASKED})


def _end(call: Ask) -> None:
    said = call(f"GET {CHAT}", conversation="long")["turns"]
    call(f"DELETE {CHAT}/messages/{{message}}", conversation="long", message=said[-1]["message"])
    call(f"DELETE {CHAT}", conversation="garden-again")


def _settle(address: str, kept: Body) -> Body:
    """An example as it is on every machine and day, with ids by the order in which they come."""
    kept = {**kept, "answer": _shorten(address, kept["answer"])}
    text = _STAMP.sub("2026/11/15 10:00:00", _TIME.sub(_AT, json.dumps(_calm(kept), ensure_ascii=False)))
    known: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        given = found.group()
        return known.setdefault(given, f"{len(known) + 1:x}".rjust(2, "0").ljust(len(given), "a"))

    settled: Body = json.loads(_IDS.sub(name, text))
    return settled


def _calm(value: object) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        calm = {name: _calm(one) for name, one in value.items()}
        passing = {name: still for name, still in _PASSING.items() if isinstance(calm.get(name), float)}
        times = {name: _EPOCH for name in ("created", "created_at") if isinstance(calm.get(name), int)}
        phases = {"phases": _PHASES} if "phases" in calm else {}
        return {**calm, **passing, **phases, **{name: at for name, at in times.items() if calm[name]}}
    return [_calm(one) for one in value] if isinstance(value, list) else value


def _shorten(address: str, answer: Any) -> Any:  # noqa: ANN401 - any JSON
    match address.rpartition(" ")[2]:
        case "/metrics":
            return "".join(line for line in answer.splitlines(keepends=True) if "lamella_answers_total" in line)
        case path if path.endswith("/export") and isinstance(answer, str):
            # What follows is for programs, and long.
            return answer.partition("<!--")[0] + "<!-- lamella-context: {} -->\n"
        case "/v1/settings":
            return {"settings": _choose(answer["settings"], "layout", "window", "serve"), "files": {}}
        case "/v1/memory":
            return {**answer, "folder": ""} if "folder" in answer else answer
        case "/v1/prices":
            some = answer["data"][:1]
            return {**answer, "data": some, "last_id": some[-1]["id"]}
        case "/v1/workflows":
            some = [one for one in answer["workflows"] if one["name"] == "rfc"]
            return {**answer, "workflows": [{**one, "stages": one["stages"][:2]} for one in some]}
    return _shorten_fields(answer) if isinstance(answer, dict) else answer


def _shorten_fields(answer: Body) -> Body:
    """The same, with less of what is long wherever it comes, and without the day."""
    match answer:
        case {"in_force": in_force}:
            return {**answer, "in_force": _choose(in_force, "layout", "temperature", "window")}
        case {"tools": [first, *_], "lamella": 1}:
            return {**answer, "tools": [first]}
        case {"trusted": list(places)}:
            return {**answer, "trusted": [{**one, "since": _DAY} for one in places]}
        case {"kind": "recent", "text": str(text)}:
            # The day is in the line, and the id follows from that.
            return {**answer, "id": "0a1b2c3d", "text": _DAY + text[len(_DAY) :]}
        case {"workflow": str(), "stages": stages}:
            return {**answer, "stages": stages[:2]}
    return answer


def _choose(values: Body, *names: str) -> Body:
    return {name: values[name] for name in names}


def write(examples: dict[str, Body]) -> str:
    """The examples as they are kept."""
    return json.dumps(examples, ensure_ascii=False, indent=1) + "\n"


def name_home(folder: str) -> dict[str, str]:
    """A home in a folder: what the one who runs this has set, trusts and remembers is no part of an example."""
    own = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "CACHE", "DATA")}
    return {**own, "LAMELLA_CONFIG": os.devnull, "LAMELLA_MEMORY_FOLDER": f"{folder}/memory"}


if __name__ == "__main__":
    with TemporaryDirectory() as empty:
        os.environ |= name_home(empty)
        FILE.write_text(write(record()), encoding="utf-8")
