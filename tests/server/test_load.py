"""Many chats at once on one server: none is lost, none hears another, and each is written down."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from tests import servers
from tests.server.running import running
from tests.waiting import HANG_SECONDS

from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.testing import ScriptedProvider


class EchoProvider(ScriptedProvider):
    """Repeats the last question word by word, so that whoever hears another's answer knows."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        for word in request.messages[-1].text.split():
            await asyncio.sleep(0.001)
            yield TextDelta(text=f"{word} ")
        yield StopDelta(reason=StopReason.END)


@pytest.mark.parametrize(
    ("kind", "chats", "turns"),
    [
        ("sqlite", 20, 2),
        pytest.param("sqlite", 200, 10, marks=pytest.mark.long),
        pytest.param("postgresql", 200, 10, marks=pytest.mark.long),
    ],
)
def test_concurrent_chats_get_their_own_answers(tmp_path: Path, kind: str, chats: int, turns: int) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}" if kind == "sqlite" else servers.shared().make_store_url()
    rules = {"rate": 10_000_000, "runs": chats}

    async def talk(client: httpx2.AsyncClient, number: int) -> None:
        begun = await client.post("/v1/conversations", json={"name": f"chat-{number}"})
        key = begun.json()["conversation"]
        for turn in range(turns):
            words = f"Chat {number} asks for the {turn}th time"
            async with client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": words}) as answer:
                lines = [line async for line in answer.aiter_lines()]
            assert lines.count("event: done") == 1, lines
            heard = [line.partition('"text":"')[2].removesuffix('"}') for line in lines if '"text":"' in line]
            assert "".join(heard).strip() == words

    async def load(url: str) -> None:
        limits = httpx2.Limits(max_connections=chats)
        async with httpx2.AsyncClient(base_url=url, timeout=HANG_SECONDS, limits=limits) as client:
            await asyncio.gather(*(talk(client, number) for number in range(chats)))

    with running(store, EchoProvider(), serve=rules) as server:
        asyncio.run(load(server.url))
        for number in (0, chats // 2, chats - 1):
            said = server.client.get(f"/v1/conversations/chat-{number}").json()["turns"]
            assert [turn["reply"]["text"].strip() for turn in said] == [turn["text"] for turn in said]
            assert len(said) == turns
