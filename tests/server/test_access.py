"""Access to the server: names and origins, tokens and owners, sizes and rates. Nothing here calls a model."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.server.running import RunningServer, running
from tests.waiting import HANG_SECONDS

from lamella.server.openapi import load_examples
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["At noon."] * 20), serve={"body_bytes": 2_000}) as one:
        yield one


def test_every_answer_has_the_headers_that_keep_browsers_careful(server: RunningServer) -> None:
    for path in ("/healthz", "/v1/conversations", "/nowhere"):
        headers = server.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_foreign_host_name_is_refused(server: RunningServer, host: str) -> None:
    answer = server.client.get("/v1/conversations", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[broken"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_foreign_origin_is_refused(server: RunningServer, headers: dict[str, str]) -> None:
    answer = server.client.post("/v1/conversations", json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")
    assert "access-control-allow-origin" not in answer.headers


def test_own_page_is_accepted(server: RunningServer) -> None:
    assert server.client.get("/v1/conversations", headers={"Origin": server.url}).status_code == 200


def test_oversized_body_is_refused_with_any_length_header(server: RunningServer) -> None:
    large = json.dumps({"title": "x" * 3_000}).encode()

    def pieces() -> Iterator[bytes]:
        yield large

    kind = {"content-type": "application/json"}
    for content in (large, pieces()):
        answer = server.client.post("/v1/conversations", content=content, headers=kind)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_compressed_body_is_not_read(server: RunningServer) -> None:
    answer = server.client.post("/v1/conversations", content=b"x", headers={"content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "request_refused")


def test_slow_client_gets_408() -> None:
    with running("memory:", ScriptedProvider(), serve={"body_seconds": 0.1}) as server:
        port = httpx2.URL(server.url).port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(
                b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            line.settimeout(HANG_SECONDS)
            assert line.recv(4_096).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127", b"GET /healthz HTTP/1.1\r\nX-A: b\r\n"])
def test_connection_without_request_is_closed(sent: bytes) -> None:
    with running("memory:", ScriptedProvider(), serve={"body_seconds": 0.3}) as server:
        address = server.url.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1])), timeout=HANG_SECONDS) as client:
            client.sendall(sent)
            assert client.recv(1_000) == b""
        # One that was spoken on before is held to the same.
        with socket.create_connection((address[0], int(address[1])), timeout=HANG_SECONDS) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 200")
            client.sendall(b"GET /healthz HTTP/1.1\r\nHo")
            assert client.recv(1_000) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX A: b\r\n\r\n",
        b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\nx",
        b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    ],
)
def test_invalid_http_gets_json_error(server: RunningServer, sent: bytes) -> None:
    address = httpx2.URL(server.url)
    with socket.create_connection((address.host, address.port or 0), timeout=HANG_SECONDS) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(10_000), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"nosniff" in head
    assert json.loads(body)["error"]["code"] == "bad_input"


def test_rate_limited_client_gets_retry_after() -> None:
    with running("memory:", ScriptedProvider(), serve={"rate": 3}) as server:
        answers = [server.client.get("/v1/conversations") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[-1].json()["error"]["code"] == "too_many_requests"
        assert int(answers[-1].headers["retry-after"]) > 0
        assert server.client.get("/healthz").status_code == 200


@pytest.fixture
def tokens(tmp_path: Path) -> AccessTokenFile:
    return AccessTokenFile(tmp_path / "tokens.json")


@pytest.fixture
def give(tokens: AccessTokenFile) -> Callable[..., dict[str, str]]:
    def give(name: str, scope: AccessScope = AccessScope.CHAT, owner: str = "") -> dict[str, str]:
        token = tokens.add(name, owner=owner, scope=scope, since="2026-11-17")
        return {"Authorization": f"Bearer {token}"}

    return give


@pytest.fixture
def guarded(tokens: AccessTokenFile) -> Iterator[RunningServer]:
    """A server that others reach by a name: nobody comes in without a token."""
    rules = {"tokens": str(tokens.path), "hosts": ["chats.example"], "guesses": 5}
    with running("memory:", ScriptedProvider(*["At noon."] * 9), serve=rules) as one:
        yield one


def test_token_is_required_when_reachable_by_others(
    guarded: RunningServer, give: Callable[..., dict[str, str]]
) -> None:
    refused = guarded.client.get("/v1/conversations")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "token_missing")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert guarded.client.get("/readyz").status_code == 200
    mine = give("laptop")
    assert guarded.client.get("/v1/conversations", headers=mine).status_code == 200
    key = {"x-api-key": mine["Authorization"].removeprefix("Bearer ")}
    assert guarded.client.get("/v1/conversations", headers={**key, "Host": "chats.example"}).status_code == 200


def test_revoked_token_is_refused(
    guarded: RunningServer, give: Callable[..., dict[str, str]], tokens: AccessTokenFile
) -> None:
    mine = give("laptop")
    assert guarded.client.get("/v1/conversations", headers=mine).status_code == 200
    assert tokens.remove("laptop")
    assert guarded.client.get("/v1/conversations", headers=mine).status_code == 401


def test_token_guessing_is_slowed_and_valid_token_is_not(
    guarded: RunningServer, give: Callable[..., dict[str, str]]
) -> None:
    mine = give("laptop")
    guesses = [
        guarded.client.get("/v1/conversations", headers={"Authorization": f"Bearer lamella_{number}"}).status_code
        for number in range(6)
    ]
    assert guesses == [401] * 5 + [429]
    assert guarded.client.get("/v1/conversations", headers=mine).status_code == 200


def test_scope_allows_only_its_operations(guarded: RunningServer, give: Callable[..., dict[str, str]]) -> None:
    reads, talks, rules = give("r", AccessScope.READ), give("c", AccessScope.CHAT), give("a", AccessScope.ADMIN)

    def tell(headers: dict[str, str]) -> list[int]:
        return [
            guarded.client.get("/v1/conversations", headers=headers).status_code,
            guarded.client.post("/v1/conversations", json={}, headers=headers).status_code,
            guarded.client.get("/v1/settings", headers=headers).status_code,
            guarded.client.get("/metrics", headers=headers).status_code,
        ]

    assert tell(reads) == [200, 403, 403, 403]
    assert tell(talks) == [200, 201, 403, 403]
    assert tell(rules) == [200, 201, 200, 200]
    assert tell(give("o", AccessScope.ADMIN, owner="ana")) == [200, 201, 403, 403]


def test_owner_cannot_find_conversations_of_another(
    guarded: RunningServer, give: Callable[..., dict[str, str]]
) -> None:
    ana, ben, operator = (
        give("ana-laptop", owner="ana"),
        give("ben-phone", owner="ben"),
        give("boss", AccessScope.ADMIN),
    )
    made = guarded.client.post("/v1/conversations", json={"name": "diary"}, headers=ana).json()
    key = made["conversation"]
    asked = guarded.client.post(
        f"/v1/conversations/{key}/messages", json={"text": "The quetzal?", "stream": False}, headers=ana
    ).json()
    for path in (
        f"/v1/conversations/{key}",
        "/v1/conversations/diary",
        "/v1/conversations/~ana%2Fdiary",
        f"/v1/conversations/{key}/export",
        f"/v1/conversations/{key}/settings",
        f"/v1/conversations/{key}/messages/{asked['message']}/events",
    ):
        assert guarded.client.get(path, headers=ben).status_code == 404, path
    for method, path, body in (
        ("POST", f"/v1/conversations/{key}/messages", {"text": "Mine?"}),
        ("PUT", f"/v1/conversations/{key}/messages/{asked['message']}", {"text": "Mine?"}),
        ("POST", f"/v1/conversations/{key}/fork", {"message": asked["reply"], "name": "mine"}),
        ("PATCH", f"/v1/conversations/{key}", {"title": "Mine"}),
        ("DELETE", f"/v1/conversations/{key}", None),
        ("POST", f"/v1/conversations/{key}/stop", None),
    ):
        assert guarded.client.request(method, path, json=body, headers=ben).status_code == 404, path
    assert guarded.client.get("/v1/conversations", headers=ben).json()["chats"] == []
    hits = guarded.client.get("/v1/conversations/search", params={"q": "quetzal"}, headers=ben).json()["hits"]
    assert hits == []
    # A name is each owner's own, and whoever runs the server sees whose is whose.
    assert guarded.client.post("/v1/conversations", json={"name": "diary"}, headers=ben).status_code == 201
    listed = guarded.client.get("/v1/conversations", headers=operator).json()["chats"]
    assert sorted(one["name"] for one in listed) == ["~ana/diary", "~ben/diary"]


def test_every_address_hides_conversations_of_other_owners(
    guarded: RunningServer, give: Callable[..., dict[str, str]]
) -> None:
    ana, ben = give("ana-laptop", owner="ana"), give("ben-phone", owner="ben")
    key = guarded.client.post("/v1/conversations", json={"name": "diary"}, headers=ana).json()["conversation"]
    body = {"text": "The quetzal?", "stream": False}
    message = guarded.client.post(f"/v1/conversations/{key}/messages", json=body, headers=ana).json()["message"]
    tried = 0
    for address, example in load_examples().items():
        method, path = address.split(" ")
        if "{conversation}" not in path:
            continue
        tried += 1
        query = {"q": "x", "name": "x", "provider": "anthropic"}
        path = path.format(
            conversation=key, message=message, number=1, rule="1", image="plan.png", permission="w1", key="sleep"
        )
        given = {"files": {"files": b"x"}} if path.endswith("/files") else {"json": example.get("request")}
        refused = guarded.client.request(method, path, params=query, headers=ben, **given)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found"), address
    assert tried >= 40
    assert len(guarded.client.get(f"/v1/conversations/{key}", headers=ana).json()["turns"]) == 1


def test_owner_cannot_find_responses_of_another(guarded: RunningServer, give: Callable[..., dict[str, str]]) -> None:
    ana, ben = give("ana-laptop", owner="ana"), give("ben-phone", owner="ben")
    first = guarded.client.post("/v1/responses", json={"input": "The quetzal?"}, headers=ana).json()["id"]
    body = {"input": "And?", "previous_response_id": first}
    assert guarded.client.post("/v1/responses", json=body, headers=ben).status_code == 404
    for method in ("GET", "DELETE"):
        assert guarded.client.request(method, f"/v1/responses/{first}", headers=ben).status_code == 404
    assert guarded.client.get(f"/v1/responses/{first}", headers=ana).json()["id"] == first
    assert guarded.client.post("/v1/responses", json=body, headers=ana).status_code == 200


def test_archive_import_cannot_replace_conversation_of_other_owner(
    guarded: RunningServer, give: Callable[..., dict[str, str]]
) -> None:
    ana, ben = give("ana-laptop", owner="ana"), give("ben-phone", owner="ben")
    key = guarded.client.post("/v1/conversations", json={"name": "diary"}, headers=ana).json()["conversation"]
    archive = guarded.client.get(f"/v1/conversations/{key}/export", headers=ana).text
    taken = guarded.client.post("/v1/conversations/import", json={"archive": archive}, headers=ben)
    assert taken.status_code in (400, 409)
    assert guarded.client.get("/v1/conversations", headers=ben).json()["chats"] == []


def test_model_not_named_by_operator_is_refused(tokens: AccessTokenFile, give: Callable[..., dict[str, str]]) -> None:
    mine = give("laptop", owner="ana")
    with running("memory:", None, serve={"tokens": str(tokens.path)}) as server:
        elsewhere = "openai-compatible:http://127.0.0.1:9/v1#spy"
        begun = server.client.post("/v1/conversations", json={"name": "spy", "model": elsewhere}, headers=mine)
        asked = server.client.post(
            "/v1/conversations/spy/messages", json={"text": "Hello?", "stream": False}, headers=mine
        )
        assert (begun.status_code, asked.status_code) == (201, 403)
        assert asked.json()["error"]["code"] == "untrusted"


def test_api_key_is_ignored_when_no_token_is_required(server: RunningServer) -> None:
    unused = server.client.get("/v1/conversations", headers={"Authorization": "Bearer sk-unused"})
    assert unused.status_code == 200
    forged = server.client.get("/v1/conversations", headers={"Authorization": "Bearer lamella_forged"})
    assert forged.status_code == 401
