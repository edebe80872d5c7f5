"""Sessions of browsers: login, logout, and what ends a session."""

from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from tests.server.running import RunningServer, running

from lamella.server.sessions import SESSION_SECONDS, SessionSigner
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider

LIST = "/v1/conversations"


@pytest.fixture
def tokens(tmp_path: Path) -> AccessTokenFile:
    return AccessTokenFile(tmp_path / "tokens.json")


@pytest.fixture
def rules(tokens: AccessTokenFile) -> dict[str, object]:
    return {"tokens": str(tokens.path), "hosts": ["chats.example"], "guesses": 6}


@pytest.fixture
def guarded(rules: dict[str, object]) -> Iterator[RunningServer]:
    """A server that needs a token."""
    with running("memory:", ScriptedProvider("At noon."), serve=rules) as one:
        yield one


def add_token(tokens: AccessTokenFile, name: str, *, owner: str = "", scope: AccessScope = AccessScope.CHAT) -> str:
    return tokens.add(name, owner=owner, scope=scope, since="2026-11-17")


def log_in(server: RunningServer, token: str) -> str:
    """The cookie of a new session, as a browser sends it back."""
    answer = server.client.post("/v1/session", json={"token": token}, headers={"Origin": server.url})
    assert answer.status_code == 200, answer.text
    server.client.cookies.clear()
    (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
    return f"{morsel.key}={morsel.value}"


def test_login_gives_a_cookie_that_scripts_and_other_sites_cannot_use(
    guarded: RunningServer, tokens: AccessTokenFile
) -> None:
    token = add_token(tokens, "laptop", owner="ana")
    before = guarded.client.get("/v1/session").json()
    assert (before["needed"], before["active"], before["name"]) == (True, False, None)
    answer = guarded.client.post("/v1/session", json={"token": token}, headers={"Origin": guarded.url})
    guarded.client.cookies.clear()
    (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Strict", "/")
    assert (morsel["max-age"], morsel["secure"]) == (str(SESSION_SECONDS), "")
    assert token.removeprefix("lamella_") not in answer.headers["set-cookie"]
    session = answer.json()
    assert (session["active"], session["name"], session["owner"], session["scope"]) == (True, "laptop", "ana", "chat")
    cookie = {"Cookie": f"{morsel.key}={morsel.value}"}
    assert guarded.client.get("/v1/session", headers=cookie).json() == session
    assert guarded.client.get(LIST, headers=cookie).status_code == 200
    assert guarded.client.get(LIST).status_code == 401


def test_cookie_of_a_page_over_https_is_secure_and_of_this_host_alone(
    guarded: RunningServer, tokens: AccessTokenFile
) -> None:
    token = add_token(tokens, "laptop")
    headers = {"Host": "chats.example", "Origin": "https://chats.example"}
    answer = guarded.client.post("/v1/session", json={"token": token}, headers=headers)
    guarded.client.cookies.clear()
    (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (morsel.key, morsel["secure"], morsel["domain"]) == ("__Host-lamella_session", True, "")
    cookie = {"Host": "chats.example", "Cookie": f"{morsel.key}={morsel.value}"}
    assert guarded.client.get(LIST, headers=cookie).status_code == 200


def test_session_sees_only_what_its_token_sees(guarded: RunningServer, tokens: AccessTokenFile) -> None:
    own = {"Origin": guarded.url}
    ana = {"Cookie": log_in(guarded, add_token(tokens, "ana", owner="ana")), **own}
    ben = {"Cookie": log_in(guarded, add_token(tokens, "ben", owner="ben", scope=AccessScope.READ)), **own}
    made = guarded.client.post(LIST, json={"name": "diary"}, headers=ana)
    assert made.status_code == 201
    assert guarded.client.get(f"{LIST}/{made.json()['conversation']}", headers=ben).status_code == 404
    assert guarded.client.post(LIST, json={}, headers=ben).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "http://[broken"},
        {"Origin": "https://notes.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_only_the_servers_own_page_writes_with_a_session(
    tokens: AccessTokenFile, rules: dict[str, object], headers: dict[str, str]
) -> None:
    with running("memory:", ScriptedProvider(), serve={**rules, "origins": ["https://notes.example"]}) as server:
        cookie = {"Cookie": log_in(server, add_token(tokens, "laptop"))}
        for method, path in (("POST", LIST), ("DELETE", "/v1/session")):
            answer = server.client.request(method, path, json={}, headers={**cookie, **headers})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")
        own = {"Sec-Fetch-Site": "same-origin"}
        assert server.client.post(LIST, json={}, headers={**cookie, **own}).status_code == 201


def test_logout_ends_the_session_and_removes_the_cookie(guarded: RunningServer, tokens: AccessTokenFile) -> None:
    cookie = {"Cookie": log_in(guarded, add_token(tokens, "laptop")), "Origin": guarded.url}
    answer = guarded.client.delete("/v1/session", headers=cookie)
    assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert all("Max-Age=0" in one for one in answer.headers.get_list("set-cookie"))
    assert guarded.client.get(LIST, headers=cookie).status_code == 401
    assert guarded.client.get("/v1/session", headers=cookie).json()["active"] is False


def test_removed_token_and_another_token_of_its_name_end_the_session(
    guarded: RunningServer, tokens: AccessTokenFile
) -> None:
    cookie = {"Cookie": log_in(guarded, add_token(tokens, "laptop"))}
    assert guarded.client.get(LIST, headers=cookie).status_code == 200
    tokens.remove("laptop")
    assert guarded.client.get(LIST, headers=cookie).status_code == 401
    add_token(tokens, "laptop")
    assert guarded.client.get(LIST, headers=cookie).status_code == 401


def test_restart_ends_all_sessions(tokens: AccessTokenFile, rules: dict[str, object]) -> None:
    token = add_token(tokens, "laptop")
    with running("memory:", ScriptedProvider(), serve=rules) as first:
        cookie = {"Cookie": log_in(first, token)}
    with running("memory:", ScriptedProvider(), serve=rules) as second:
        assert second.client.get(LIST, headers=cookie).status_code == 401
        assert second.client.get(LIST, headers={"Cookie": log_in(second, token)}).status_code == 200


def test_unknown_token_cannot_log_in_and_guesses_are_limited(guarded: RunningServer, tokens: AccessTokenFile) -> None:
    token = add_token(tokens, "laptop")
    cookie = {"Cookie": log_in(guarded, token)}
    codes = [guarded.client.post("/v1/session", json={"token": f"lamella_{n}"}).status_code for n in range(6)]
    assert codes == [401] * 5 + [429]
    assert guarded.client.get(LIST, headers=cookie).status_code == 200
    assert guarded.client.get("/v1/session").status_code == 200


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": 1}, {"token": "x", "name": "y"}, {"token": "x" * 501}])
def test_login_with_a_bad_body_is_refused(guarded: RunningServer, body: dict[str, object]) -> None:
    assert guarded.client.post("/v1/session", json=body).status_code == 422
    assert guarded.client.post("/v1/session", content=b"token=x").status_code == 422


def test_expired_or_forged_cookies_are_refused_without_lockout(guarded: RunningServer, tokens: AccessTokenFile) -> None:
    add_token(tokens, "laptop")
    session, cookie = guarded.state.sessions.create_session(tokens.read()[0])
    forged = [
        "",
        "x",
        "a.b.c.laptop",
        f"{'0' * 64}.{session.id}.{session.expires}.laptop",
        cookie.replace(str(session.expires), str(session.expires + 1)),
        cookie.replace(str(session.expires), "9" * 5_000),
        cookie.replace("laptop", "phone"),
        "é" + cookie[1:],
    ]
    for value in forged * 3:
        headers = {b"Cookie": f"lamella_session={value}".encode()}
        assert guarded.client.get(LIST, headers=headers).status_code == 401, value
    assert guarded.client.get(LIST, headers={"Cookie": f"lamella_session={cookie}"}).status_code == 200


def test_session_expires_and_every_worker_with_the_key_accepts_it(tokens: AccessTokenFile) -> None:
    add_token(tokens, "laptop")
    now = [1_000.0]
    one, other = (SessionSigner(b"key", now=lambda: now[0]) for _ in range(2))
    session, cookie = one.create_session(tokens.read()[0])
    headers = Headers({"cookie": f"other=1; lamella_session={cookie}"})
    assert one.find_session(headers, tokens) == other.find_session(headers, tokens) == session
    assert SessionSigner(b"another", now=lambda: now[0]).find_session(headers, tokens) is None
    now[0] += SESSION_SECONDS
    assert one.find_session(headers, tokens) is None


def test_login_is_impossible_if_no_token_is_needed() -> None:
    with running("memory:", ScriptedProvider()) as server:
        session = server.client.get("/v1/session").json()
        assert (session["needed"], session["active"], session["scope"]) == (False, True, "admin")
        answer = server.client.post("/v1/session", json={"token": "lamella_any"})
        assert (answer.status_code, answer.json()) == (200, session)
        assert "set-cookie" not in answer.headers
        assert server.client.delete("/v1/session").status_code == 200
