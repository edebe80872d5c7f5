"""The endpoints for questions about code: whole histories, what is ignored, whose conversations, one at a time."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.running import MODEL, RunningServer, running

from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider

SOLUTIONS = ("/v1/solution", "/Unfold/New/solution")
FILTERS = ("/v1/codebase-filter", "/Unfold/new/codebase-filter")
FILES = [
    {"path": "beds.py", "content": "def water(bed):\n    bed.wet = True\n"},
    {"path": "songs.py", "content": "def sing():\n    return 'la'\n"},
]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["It waters."] * 30)) as one:
        yield one


def post(server: RunningServer, path: str, status: int = 200, /, **body: object) -> dict[str, Any]:
    answer = server.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("path", SOLUTIONS)
def test_answer_returns_history_and_new_state(server: RunningServer, path: str) -> None:
    first = post(server, path, prompt="", kind="explain", codeSnippet="def water(bed): ...")
    assert (first["data"], first["model"], first["conversation"]) == ("It waters.", MODEL, None)
    second = post(server, path, prompt="And why?", messages=first["chatHistory"], chatState=first["chatState"])
    assert second["chatHistory"][:2] == first["chatHistory"]
    assert [one["content"] for one in second["chatHistory"][2:]] == ["And why?", "It waters."]
    assert second["chatState"]["given"] == ["regular", "explain"]
    assert second["tokensUsed"] > 0


def test_request_without_conversation_stores_nothing_and_with_one_continues(
    server: RunningServer,
) -> None:
    before = server.client.get("/v1/conversations").json()["total"]
    post(server, "/v1/solution", prompt="What does it do?")
    assert server.client.get("/v1/conversations").json()["total"] == before
    first = post(server, "/v1/solution", prompt="What does it do?", conversation="beds")
    second = post(server, "/v1/solution", prompt="And why?", conversation="beds")
    assert first["conversation"] == second["conversation"]
    assert [one["content"] for one in second["chatHistory"]] == [
        "What does it do?",
        "It waters.",
        "And why?",
        "It waters.",
    ]
    assert len(server.client.get("/v1/conversations/beds").json()["turns"]) == 2


def test_identity_fields_are_ignored_and_listed(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    secret = {"apiKey": "sk-quetzal", "userId": "user-quetzal", "isPremium": {"plan": "quetzal"}}
    with caplog.at_level(logging.DEBUG):
        solved = post(server, "/v1/solution", prompt="Why?", conversation="secrets", **secret)
        chosen = post(server, "/v1/codebase-filter", codebase=FILES, question="What waters a bed?", **secret)
        wrong = post(server, "/v1/solution", 422, prompt=["no text"], **secret)
        unknown = post(server, "/v1/solution", 422, prompt="Why?", apikey="sk-quetzal")
    for told in (solved, chosen):
        assert told["ignored"] == ["apiKey", "isPremium", "userId"]
        assert "neither stored nor logged" in told["ignoredBecause"]
    kept = server.client.get("/v1/conversations/secrets/export").text
    assert "quetzal" not in json.dumps([solved, chosen, wrong, unknown]) + kept + caplog.text


@pytest.mark.parametrize("path", FILTERS)
def test_posted_files_are_selected_and_returned_with_contents(server: RunningServer, path: str) -> None:
    told = post(server, path, codebase=FILES, question="What waters a bed?", filterMaxTokensCount=200)
    assert "bed.wet = True" in {one["path"]: one["content"] for one in told["data"]}["beds.py"]
    assert told["tokensUsed"] <= told["budget"] == 200
    by_path = {one["path"]: one["content"] for one in FILES}
    assert post(server, path, codebase=by_path, question="What waters a bed?")["data"]


def test_invalid_request_is_refused_and_creates_nothing(server: RunningServer) -> None:
    bad: list[tuple[dict[str, object], int]] = [
        ({}, 400),
        ({"prompt": " "}, 400),
        ({"prompt": "Why?", "messages": [{"role": "user"}]}, 400),
        ({"prompt": "Why?", "codebase": FILES}, 400),
        ({"prompt": "Why?", "kind": "poem"}, 422),
        ({"prompt": "Why?", "maxTokens": 0}, 422),
        ({"prompt": "Why?", "surprise": 1}, 422),
    ]
    for body, status in bad:
        error = post(server, "/v1/solution", status, **body, conversation="never")["error"]
        assert all(error[part] for part in ("code", "message", "hint")), body
    assert server.client.get("/v1/conversations/never").status_code == 404
    for fields in ({"question": "Why?"}, {"codebase": ["beds.py"], "question": "Why?"}, {"codebase": FILES}):
        assert post(server, "/v1/codebase-filter", 400, **fields)["error"]["code"] == "bad_call"


class PausingProvider(ScriptedProvider):
    """Begins to answer, and ends when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text="It wa")
        self.begun.set()
        await asyncio.to_thread(self.may_end.wait, 10)
        yield TextDelta(text="ters.")
        yield StopDelta(reason=StopReason.END)


def test_second_request_is_refused_while_first_runs_and_first_can_be_stopped() -> None:
    provider = PausingProvider()
    with running("memory:", provider) as server:
        key, told = server.begin("beds"), []
        body = {"prompt": "What does it do?", "conversation": "beds"}
        asks = threading.Thread(target=lambda: told.append(server.client.post("/v1/solution", json=body)))
        asks.start()
        assert provider.begun.wait(10)
        for path, more in (("/v1/solution", body), (f"/v1/conversations/{key}/messages", {"text": "And?"})):
            refused = server.client.post(path, json=more)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
        assert server.client.post(f"/v1/conversations/{key}/stop").json()["stopped"]
        asks.join(10)
        assert (told[0].status_code, told[0].json()["error"]["code"]) == (502, "reply_broken")
        turn = server.client.get("/v1/conversations/beds").json()["turns"][-1]
        assert "It wa" in json.dumps(turn)
        provider.may_end.set()
        assert post(server, "/v1/solution", prompt="And?", conversation=key)["data"] == "It waters."


@pytest.fixture
def give(tmp_path: Path) -> Callable[..., dict[str, str]]:
    book = AccessTokenFile(tmp_path / "tokens.json")

    def give(name: str, scope: AccessScope = AccessScope.CHAT, owner: str = "") -> dict[str, str]:
        return {"Authorization": f"Bearer {book.add(name, owner=owner, scope=scope, since='2026-11-17')}"}

    return give


def test_code_routes_respect_owners_and_scopes(tmp_path: Path, give: Callable[..., dict[str, str]]) -> None:
    ana, ben = give("ana", owner="ana"), give("ben", owner="ben")
    rules = {"tokens": str(tmp_path / "tokens.json"), "hosts": ["chats.example"]}
    with running("memory:", ScriptedProvider(*["It waters."] * 9), serve=rules) as server:

        def ask(headers: dict[str, str], path: str = "/v1/solution", **body: object) -> httpx2.Response:
            return server.client.post(path, json={"prompt": "Why?", **body}, headers=headers)

        assert ask(ana).json()["data"] == "It waters."
        hers = ask(ana, conversation="diary").json()["conversation"]
        his = ask(ben, conversation="diary").json()
        assert his["conversation"] != hers
        assert len(his["chatHistory"]) == 2
        # A key of somebody else's is a name like any other, of a conversation of one's own.
        assert ask(ben, conversation=hers).json().get("conversation") != hers
        assert len(server.client.get(f"/v1/conversations/{hers}", headers=ana).json()["turns"]) == 1
        reads = give("r", AccessScope.READ)
        assert [ask(reads, path).status_code for path in (*SOLUTIONS, *FILTERS)] == [403] * 4
        assert ask({}).status_code == 401


def test_untrusted_model_is_not_called_even_for_counting(tmp_path: Path, give: Callable[..., dict[str, str]]) -> None:
    mine, spy = give("laptop", owner="ana"), "openai-compatible:http://127.0.0.1:9/v1#spy"
    with running("memory:", None, serve={"tokens": str(tmp_path / "tokens.json")}) as server:
        for headers in (mine, {}):
            for path, body in (
                ("/v1/solution", {"prompt": "Why?", "conversation": "spy"}),
                ("/v1/codebase-filter", {"question": "Why?", "codebase": FILES}),
            ):
                refused = server.client.post(path, json={**body, "model": spy}, headers=headers)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "untrusted"), refused.text
        assert server.client.get("/v1/conversations").json()["total"] == 0


def test_body_that_is_too_large_is_refused() -> None:
    with running("memory:", ScriptedProvider(), serve={"body_bytes": 2_000}) as server:
        for path in (*SOLUTIONS, *FILTERS):
            assert post(server, path, 413, prompt="x" * 3_000)["error"]["code"] == "request_too_large"


def test_answer_is_logged_also_without_conversation(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lamella.answers"):
        post(server, "/v1/solution", prompt="Why?")
    (line,) = [json.loads(one.message) for one in caplog.records if one.name == "lamella.answers"]
    assert (line["conversation"], line["model"], line["ended"], line["length"]) == (None, MODEL, "done", 10)


@pytest.mark.parametrize("path", [*SOLUTIONS, *FILTERS])
def test_model_of_another_service_is_replaced_with_warning(server: RunningServer, path: str) -> None:
    body = {"prompt": "Why?"} if path in SOLUTIONS else {"question": "What waters a bed?", "codebase": FILES}
    answer = post(server, path, model="gpt-4o-mini", **body)
    warnings = answer["warnings"] if path in SOLUTIONS else answer["told"]
    assert f"The model gpt-4o-mini is not configured here; {MODEL} is used." in warnings
    assert answer.get("model", MODEL) == MODEL
    plain = post(server, path, model=MODEL.partition(":")[2], **body)
    assert not [one for one in (plain["warnings"] if path in SOLUTIONS else plain["told"]) if "configured" in one]


def test_answer_warns_of_shortened_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_WINDOW", "4000")
    monkeypatch.setenv("LAMELLA_RESERVE", "200")
    with running("memory:", ScriptedProvider(*["It waters."] * 3)) as server:
        history = [
            {"role": role, "content": f"{n} " + "word " * 300} for n in range(9) for role in ("user", "assistant")
        ]
        answer = post(server, "/v1/solution", prompt="And?", messages=history)
        assert len(answer["chatHistory"]) == 20
        assert [one for one in answer["warnings"] if one.startswith("The model read a shortened history: ")]
        short = post(server, "/v1/solution", prompt="And?", messages=history[:2])
        assert not [one for one in short["warnings"] if "shortened" in one]


def test_failed_answer_logs_model_and_error_code(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lamella.answers"), running("memory:", ScriptedProvider()) as server:
        key = server.begin("beds")
        asked = server.client.post(f"/v1/conversations/{key}/messages", json={"text": "Why?", "stream": False})
        solved = server.client.post("/v1/solution", json={"prompt": "Why?"})
        codes = [answer.json()["error"]["code"] for answer in (asked, solved)]
    lines = [json.loads(one.message) for one in caplog.records if one.name == "lamella.answers"]
    assert [(line["ended"], line["model"], line["error"]) for line in lines] == [
        ("failed", MODEL, code) for code in codes
    ]


@pytest.mark.parametrize("path", FILTERS)
def test_selection_does_not_depend_on_the_folders_above_a_repository(server: RunningServer, path: str) -> None:
    files = {f"src/bed_{n}.py": f"def water_{n}(bed):\n    bed.wet = {n}\n" for n in range(20)}
    answers = []
    for root in ("/a", f"/home/{'somebody-with-a-long-name/' * 6}repository", "C:/Users/somebody/Documents/projects"):
        codebase = {f"{root}/{name}": text for name, text in files.items()}
        answer = post(server, path, codebase=codebase, question="What waters a bed?", filterMaxTokensCount=600)
        chosen = [(one["path"].removeprefix(f"{root}/"), one["form"]) for one in answer["data"]]
        answers.append((answer["tokensUsed"], chosen))
    assert answers[0] == answers[1] == answers[2]
