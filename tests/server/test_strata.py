"""The prompts of a conversation turn by turn, what they cost to build, and bodies that a client has already."""

import gzip
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.running import RunningServer, open_test_state, running

import lamella
from lamella.attach import Note
from lamella.core.messages import Usage
from lamella.schemas.strata import StrataJson, iter_turn_strata
from lamella.server.state import OPERATOR
from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider, ScriptedReply

NOTE = {"kind": "note", "path": "sluice.md", "text": "# Sluice\n\n" + "It opens at noon, when the tide is high.\n" * 9}
EDITED = {**NOTE, "text": str(NOTE["text"]).replace("noon", "dusk")}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    answers = [ScriptedReply(text="At noon.", usage=Usage(plain=200, read=n * 50, output=4)) for n in range(3)]
    with running("memory:", ScriptedProvider(*answers, *["At dusk."] * 30)) as one:
        one.begin("tides", settings={"layout": "in_place"})
        one.ask("tides", "When does it open?", attach=[NOTE])
        one.ask("tides", "And now?", attach=[EDITED])
        one.ask("tides", "Why?", fold=True)
        yield one


def read_strata(
    server: RunningServer, conversation: str = "tides", query: dict[str, Any] | None = None
) -> dict[str, Any]:
    answer = server.client.get(f"/v1/conversations/{conversation}/strata", params=query or {})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_strata_list_pieces_in_sent_order_with_cause_and_three_cache_numbers(server: RunningServer) -> None:
    body = read_strata(server)
    assert (body["lamella"], body["count"]) == (1, 3)
    first, second, third = body["turns"]
    for turn in body["turns"]:
        assert sum(piece["tokens"] for piece in turn["pieces"]) == turn["total"]
        assert sum(piece["tokens"] for piece in turn["pieces"] if piece["same"]) == turn["cache"]["same"]
        sent = server.client.get(f"/v1/conversations/tides/turns/{turn['turn']}").json()
        assert sent["tokens"]["total"] == turn["total"]
        assert (sent["prefix"], sent["cost"]) == (turn["prefix"], turn["cost"])
        assert (sent["envelope"]["message_id"], sent["tokens"]["limit"]) == (turn["message"], turn["limit"])
    assert (first["prefix"]["cause"], first["cache"]["same"]) == ("first_turn", 0)
    assert [turn["cache"]["reported"] for turn in body["turns"]] == [0, 50, 100]
    assert [turn["output"] for turn in body["turns"]] == [4, 4, 4]
    assert second["prefix"]["cause"] == "none"
    kinds = [(piece["kind"], piece["form"], piece["same"]) for piece in second["pieces"]]
    assert ("note", "full", True) in kinds
    assert ("note", "update", False) in kinds
    assert (third["prefix"]["cause"], third["prefix"]["segment"]) == ("epoch_folded", "sluice.md")
    assert not third["pieces"][-1]["same"]
    assert third["at"] > first["at"]


def test_earlier_messages_are_one_band_or_a_piece_each(server: RunningServer) -> None:
    server.begin("talk", settings={"layout": "in_place"})
    for number in range(6):
        server.ask("talk", f"Question {number}?")
    folded = read_strata(server, "talk")["turns"][-1]["pieces"]
    whole = read_strata(server, "talk", {"messages": True})["turns"][-1]["pieces"]
    assert [piece["messages"] for piece in folded if piece["kind"] == "talk"] == [9, 1]
    assert "messages" not in folded[-1]
    assert sum(piece["kind"] in ("user", "reply") for piece in whole) == 11
    assert sum(piece["tokens"] for piece in folded) == sum(piece["tokens"] for piece in whole)


def test_cost_of_a_cache_miss_is_the_same_in_strata_ledger_and_explanation(server: RunningServer) -> None:
    misses = [turn["miss"] for turn in read_strata(server)["turns"]]
    assert misses[0] is None
    # The third request had 300 tokens, and the one before it left 250 in the cache; it read 100.
    assert misses[2] == {"tokens": 150, "cost": None}
    ledger = server.client.get("/v1/conversations/tides/ledger").json()
    assert [turn["miss"] for turn in ledger["turns"]] == misses
    explained = server.client.get("/v1/conversations/tides/why", params={"name": "sluice.md"}).json()["misses"]
    assert [(one["turn"], one["tokens"], one["why"]) for one in explained] == [
        (3, 150, "the prefix changed: epoch_folded(sluice.md)")
    ]
    assert read_strata(server, query={"layout": "library"})["turns"][2]["miss"] is None


def test_range_of_turns_is_returned(server: RunningServer) -> None:
    every = read_strata(server)["turns"]
    assert read_strata(server, query={"from": 2, "to": 2})["turns"] == every[1:2]
    assert read_strata(server, query={"from": 3, "to": 2})["turns"] == []
    assert read_strata(server, query={"from": 9})["turns"] == []
    assert [turn["turn"] for turn in read_strata(server, query={"to": 2})["turns"]] == [1, 2]
    for bad in ({"from": 0}, {"to": "x"}, {"messages": "perhaps"}):
        assert server.client.get("/v1/conversations/tides/strata", params=bad).status_code == 422


def test_large_body_is_compressed_and_not_sent_twice(server: RunningServer) -> None:
    for path in ("/v1/conversations/tides/strata", "/v1/conversations/tides", "/v1/conversations/tides/turns/2"):
        plain = server.client.get(path, headers={"Accept-Encoding": "identity"})
        packed = server.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(plain.content) / 2
        assert packed.content == plain.content
        assert packed.headers["etag"] == plain.headers["etag"]
        assert "Accept-Encoding" in plain.headers["vary"]
        again = server.client.get(path, headers={"If-None-Match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-store"
    server.begin("long")
    etag = server.client.get("/v1/conversations/long/strata").headers["etag"]
    server.ask("long", "One more?")
    changed = server.client.get("/v1/conversations/long/strata", headers={"If-None-Match": etag})
    assert changed.status_code == 200


def test_small_body_and_stream_are_sent_as_they_are(server: RunningServer) -> None:
    assert "content-encoding" not in server.client.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers
    body = {"text": "And?"}
    answer = server.client.post("/v1/conversations/long/messages", json=body, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
    assert "event: done" in answer.text


def test_turn_without_texts_has_everything_else(server: RunningServer) -> None:
    whole = server.client.get("/v1/conversations/tides/turns/2").json()
    brief = server.client.get("/v1/conversations/tides/turns/2", params={"texts": False}).json()
    assert "messages" not in brief
    assert all("text" not in layer for layer in brief["envelope"]["layers"])
    for layer in whole["envelope"]["layers"]:
        del layer["text"]
    del whole["messages"]
    assert brief == whole


def test_strata_need_a_token_and_show_nothing_of_another_owner(tmp_path: Path) -> None:
    tokens = AccessTokenFile(tmp_path / "tokens.json")

    def give(name: str, scope: AccessScope) -> dict[str, str]:
        token = tokens.add(name, owner=name, scope=scope, since="2026-11-17")
        return {"Authorization": f"Bearer {token}"}

    ana, ben = give("ana", AccessScope.CHAT), give("ben", AccessScope.READ)
    rules = {"tokens": str(tokens.path), "hosts": ["chats.example"]}
    with running("memory:", ScriptedProvider("At noon."), serve=rules) as server:
        key = server.client.post("/v1/conversations", json={"name": "diary"}, headers=ana).json()["conversation"]
        body = {"text": "The quetzal?", "stream": False}
        assert server.client.post(f"/v1/conversations/{key}/messages", json=body, headers=ana).status_code == 200
        path = f"/v1/conversations/{key}/strata"
        mine = server.client.get(path, headers=ana)
        assert (mine.status_code, mine.json()["count"]) == (200, 1)
        for headers in (ben, {**ben, "If-None-Match": "*"}, {**ben, "If-None-Match": mine.headers["etag"]}):
            assert server.client.get(path, headers=headers).status_code == 404
        assert server.client.get(path).status_code == 401
        assert server.client.get("/v1/conversations/none/strata", headers=ana).status_code == 404


def _cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of two runs."""
    times = []
    for _ in range(2):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def test_strata_of_300_turns_cost_at_most_three_replays_and_late_turns_as_much_as_early_ones(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    state = open_test_state(url, ScriptedProvider())
    chat = state.get_engine(OPERATOR).create("long", model="scripted:tides")
    for number in range(300):
        attach = (
            [Note(path=f"n{number // 20}.md", text=f"# Note\n\n{'tide ' * 200}{number}")] if not number % 10 else []
        )
        chat.ask(f"Question {number}, about the tide and the sluice?", attach=attach)
        chat.reply(f"Answer {number}: the sluice opens at noon, and the tide is high at six.")

    def reopened() -> lamella.Conversation:
        return state.open_conversation(OPERATOR, "long")

    def build_strata() -> bytes:
        opened = reopened()
        records = opened.turns()
        strata = iter_turn_strata(
            opened.sent_turns(), dict(enumerate(opened.ledger(), start=1)), {}, groups_history=True
        )
        body = StrataJson(conversation=opened.id, head=opened.head, count=len(records), turns=list(strata))
        return msgspec.json.encode(body)

    replayed = _cpu_seconds(lambda: list(reopened().replay()))
    assert _cpu_seconds(build_strata) <= 3 * replayed
    assert len(gzip.compress(build_strata())) < 200_000
    early, late = (_cpu_seconds(partial(lambda at: list(reopened().sent_turns(at, at)), at)) for at in (30, 300))
    assert late < replayed / 5
    assert late <= 6 * early
    for among in (turn for turn in reopened().replay() if turn.number in (1, 2, 30, 31, 299, 300)):
        (alone,) = reopened().sent_turns(among.number, among.number)
        assert (alone.envelope.hash, alone.prefix_change, alone.cache, alone.check) == (
            among.envelope.hash,
            among.prefix_change,
            among.cache,
            among.check,
        )
