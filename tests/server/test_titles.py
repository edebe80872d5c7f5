"""Titles that the model writes without being asked: never over a title or a name that somebody gave, and in the ledger."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from tests.server.running import RunningServer, running

from lamella.core.messages import Delta, ModelRequest
from lamella.testing import ScriptedProvider, ScriptedReply


class TitlingProvider(ScriptedProvider):
    """Answers questions at once, and a request for a title once it is let go."""

    def __init__(self) -> None:
        super().__init__(*["In May."] * 9)
        self.asked_for_title, self.let_go = threading.Event(), threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if "title" in str(request.messages[-1].text):
            self.asked_for_title.set()
            await asyncio.to_thread(self.let_go.wait)
            self._replies.insert(0, ScriptedReply(text='"Sowing beans"'))
        async for delta in super().stream(request):
            yield delta


def _begin(server: RunningServer, **more: object) -> str:
    made = server.client.post("/v1/conversations", json=more)
    key: str = made.json()["conversation"]
    server.ask(key, "When to sow beans?")
    return key


def _write_missing_title(server: RunningServer, key: str) -> str:
    answer = server.client.post(f"/v1/conversations/{key}/title", params={"only_if_missing": True})
    assert answer.status_code == 200, answer.text
    title: str = answer.json()["title"]
    return title


def test_missing_title_is_written_and_the_call_is_in_the_ledger() -> None:
    provider = TitlingProvider()
    provider.let_go.set()
    with running("memory:", provider) as server:
        key = _begin(server)
        assert _write_missing_title(server, key) == "Sowing beans"
        calls = server.client.get(f"/v1/conversations/{key}/ledger").json()["turns"][0]["calls"]
        assert [one["purpose"] for one in calls] == ["answer", "title"]
        # Written once: the next attempt asks nobody.
        count = len(provider.requests)
        assert _write_missing_title(server, key) == "Sowing beans"
        assert len(provider.requests) == count


@pytest.mark.parametrize("given", [{"title": "My beans"}, {"name": "beans"}])
def test_given_title_or_name_is_kept_and_no_model_is_called(given: dict[str, str]) -> None:
    provider = TitlingProvider()
    with running("memory:", provider) as server:
        key = _begin(server, **given)
        before = server.client.get(f"/v1/conversations/{key}").json()["title"]
        assert _write_missing_title(server, key) == before
        assert len(provider.requests) == 1


def test_no_title_is_written_with_summaries_off() -> None:
    provider = TitlingProvider()
    with running("memory:", provider) as server:
        key = _begin(server, settings={"summarizer": "off"})
        assert _write_missing_title(server, key) == "When to sow beans?"
        assert len(provider.requests) == 1


def test_title_given_while_the_model_writes_one_is_kept_and_questions_do_not_wait() -> None:
    provider = TitlingProvider()
    with running("memory:", provider) as server:
        key = _begin(server)
        titles: list[str] = []
        thread = threading.Thread(target=lambda: titles.append(_write_missing_title(server, key)))
        thread.start()
        assert provider.asked_for_title.wait(60)
        # The conversation goes on meanwhile, and its next request finds the cache as it would be without the title.
        answered = server.ask(key, "And peas?")["answer"]
        server.client.patch(f"/v1/conversations/{key}", json={"title": "My own"}).raise_for_status()
        provider.let_go.set()
        thread.join()
        assert answered == "In May."
        body = server.client.get(f"/v1/conversations/{key}").json()
        assert (titles, body["title"], body["count"]) == (["My own"], "My own", 2)
        turns = server.client.get(f"/v1/conversations/{key}/strata").json()["turns"]
        assert turns[1]["prefix"]["cause"] == "none"
        assert turns[1]["cache"]["predicted"] == turns[1]["cache"]["same"]
        assert server.ask(key, "And leeks?")["answer"] == "In May."
