"""Live updates: pages get changes of their own, those of other processes, and nobody else's."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import httpx2
import pytest
from tests.server.running import RunningServer, SentEvent, read_events, running
from tests.waiting import HANG_SECONDS

import lamella
from lamella.attach import Note
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider


class Listener:
    """Reads the stream of changes in a thread."""

    def __init__(self, events: "Queue[SentEvent | None]") -> None:
        self._events = events

    def next(self) -> SentEvent:
        event = self._events.get(timeout=HANG_SECONDS)
        assert event is not None, "the stream ended"
        return event

    def wait_for(self, event_name: str, /, **fields: object) -> dict[str, Any]:
        """The data of the next event of this name with these fields."""
        while True:
            event = self.next()
            if event.name == event_name and all(event.data[field] == value for field, value in fields.items()):
                return event.data

    def wait_for_end(self) -> None:
        while self._events.get(timeout=HANG_SECONDS) is not None:
            pass


@contextmanager
def listening(server: RunningServer, headers: dict[str, str] | None = None) -> Iterator[Listener]:
    """A page that listens; ``ready`` was read."""
    events: Queue[SentEvent | None] = Queue()
    with ExitStack() as stack:
        client = stack.enter_context(httpx2.Client(base_url=server.url, timeout=HANG_SECONDS))
        answer = stack.enter_context(client.stream("GET", "/v1/events", headers=headers or {}))
        assert answer.status_code == 200

        def read() -> None:
            try:
                for event in read_events(answer.iter_lines()):
                    events.put(event)
            except httpx2.HTTPError:
                pass
            events.put(None)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        listener = Listener(events)
        assert listener.next().name == "ready"
        yield listener


def test_two_tabs_hear_of_each_change(tmp_path: Path) -> None:
    with (
        running(f"sqlite:///{tmp_path}/chats.db", ScriptedProvider("At noon.")) as server,
        listening(server) as one,
        listening(server) as other,
    ):
        key = server.begin("tides")
        asked = server.ask("tides", "When?")
        note = {"kind": "note", "path": "a.md", "text": "# A"}
        server.client.post("/v1/conversations/tides/attachments", json={"attach": [note]})
        server.client.patch("/v1/conversations/tides", json={"title": "High tide"})
        server.client.delete("/v1/conversations/tides")
        for tab in (one, other):
            assert tab.wait_for("conversation", change="created")["name"] == "tides"
            begun = tab.wait_for("turn", state="begun")
            assert (begun["conversation"], begun["message"], begun["reply"]) == (key, asked["message"], None)
            assert tab.wait_for("turn", state="ended")["reply"] == asked["reply"]
            assert tab.wait_for("attachments") == {"conversation": key}
            assert tab.wait_for("conversation", title="High tide")["change"] == "changed"
            assert tab.wait_for("conversation", change="erased")["conversation"] == key


def test_turn_is_announced_before_its_answer_ends(tmp_path: Path) -> None:
    from tests.server.running import PausingProvider

    provider = PausingProvider("At noon, when the tide is high.")
    with running(f"sqlite:///{tmp_path}/chats.db", provider) as server, listening(server) as tab:
        server.begin("tides")
        with server.client.stream("POST", "/v1/conversations/tides/messages", json={"text": "When?"}) as answer:
            begun = tab.wait_for("turn", state="begun")
            provider.let_go.set()
            assert "event: done" in answer.read().decode()
        assert tab.wait_for("turn", state="ended")["message"] == begun["message"]


def test_changes_of_another_process_arrive(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with running(url, ScriptedProvider()) as server, listening(server) as tab, lamella.open(url) as engine:
        chat = engine.create("elsewhere")
        chat.ask("When?", attach=[Note(path="a.md", text="# A")])
        chat.reply("At noon.")
        assert tab.wait_for("conversation", name="elsewhere")["conversation"] == chat.id
        assert tab.wait_for("turn", state="ended")["reply"] == chat.head


@pytest.fixture
def tokens(tmp_path: Path) -> AccessTokenFile:
    return AccessTokenFile(tmp_path / "tokens.json")


@pytest.fixture
def give(tokens: AccessTokenFile) -> Callable[[str, str], dict[str, str]]:
    def give(name: str, owner: str) -> dict[str, str]:
        token = tokens.add(name, owner=owner, scope=AccessScope.CHAT, since="2026-11-17")
        return {"Authorization": f"Bearer {token}"}

    return give


def test_owner_hears_only_of_own_conversations_and_needs_a_token(
    tokens: AccessTokenFile, give: Callable[[str, str], dict[str, str]]
) -> None:
    ana, ben, operator = give("ana", "ana"), give("ben", "ben"), give("all", "")
    rules = {"tokens": str(tokens.path), "hosts": ["chats.example"]}
    with running("memory:", ScriptedProvider(), serve=rules) as server:
        assert server.client.get("/v1/events").status_code == 401
        with listening(server, ana) as hers, listening(server, ben) as his, listening(server, operator) as every:
            for name, headers in (("diary", ana), ("plans", ben), ("end", ana), ("end", ben)):
                assert server.client.post("/v1/conversations", json={"name": name}, headers=headers).status_code == 201
            assert [hers.next().data["name"] for _ in range(2)] == ["diary", "end"]
            assert [his.next().data["name"] for _ in range(2)] == ["plans", "end"]
            names = {every.next().data["name"] for _ in range(4)}
            assert names == {"~ana/diary", "~ben/plans", "~ana/end", "~ben/end"}
            # From now on, nothing reaches whoever has the removed token.
            tokens.remove("ana")
            server.client.post("/v1/conversations", json={"name": "later"}, headers=operator)
            tokens.add("ana", owner="ana", scope=AccessScope.CHAT, since="2026-11-17")
            more = give("ana-2", "ana")
            assert server.client.post("/v1/conversations", json={"name": "x"}, headers=more).status_code == 201
            hers.wait_for_end()


def test_listeners_do_not_delay_a_stop(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with running(f"sqlite:///{tmp_path}/c.db", ScriptedProvider(), serve={"stop_seconds": 300}) as server:
            tab = stack.enter_context(listening(server))
        # The server has stopped; it would have waited for five minutes.
        tab.wait_for_end()


def test_pages_hear_how_far_a_long_index_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "index"))
    (tmp_path / "vault").mkdir()
    for number in range(4_000):
        text = f"# Bed {number}\n\n" + f"Row {number} has beans, leeks and {number} kinds of salad. " * 40
        (tmp_path / "vault" / f"bed-{number}.md").write_text(text, encoding="utf-8")
    with running("memory:", ScriptedProvider(), vault=tmp_path / "vault") as server, listening(server) as tab:
        found = server.client.get("/v1/notes/search", params={"q": "salad"})
        assert found.json()["hits"]
        reports = [tab.wait_for("indexing")]
        while reports[-1]["done"] < reports[-1]["total"]:
            reports.append(tab.wait_for("indexing"))
        assert {one["total"] for one in reports} == {4_000}
        assert [one["done"] for one in reports] == sorted(one["done"] for one in reports)
        assert reports[0]["done"] < 4_000
        # An index that is up to date reports nothing.
        server.client.get("/v1/notes/search", params={"q": "leeks"})
        server.begin("after")
        assert tab.next().name == "conversation"
