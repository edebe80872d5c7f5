"""In an async program the store is never called on the loop's own thread, and what it does there is not lost."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import cast

import pytest
from tests import servers
from tests.waiting import HANG_SECONDS

import lamella
from lamella import Conversation, Engine, StoreError, TurnEvent
from lamella.conversation.backend import Backend
from lamella.core.values import replace
from lamella.ports import Store
from lamella.runners.registry import RUNNERS
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_store
from lamella.testing import ScriptedProvider, ScriptedReply
from lamella.wiring import open_backend, open_pool

FAR = HANG_SECONDS
LONG = ScriptedReply(text="At noon, as it is on most days.", chunk_size=8, delay=0.01)


class WatchedStore:
    """A store that notes which thread calls it for what, and waits before it appends until it is let go on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[tuple[str, threading.Thread]] = []
        self.open = threading.Event()
        self.open.set()
        self.came = threading.Event()

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._store, name)

        def call(*given: object, **named: object) -> object:
            self.calls.append((name, threading.current_thread()))
            if name == "append":
                self.came.set()
                assert self.open.wait(FAR), "the loop stands still"
            return cast("object", method(*given, **named))

        return call


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(InMemoryStore())


def make_engine(store: WatchedStore, *replies: str | ScriptedReply) -> Engine:
    def open_it() -> Backend:
        return replace(open_backend("memory:"), store=cast("Store", store))

    return Engine(open_it, open_pool(ScriptedProvider(*replies)), runners=RUNNERS, model="scripted:x")


async def read_out(events: AsyncGenerator[TurnEvent, None]) -> str:
    async with aclosing(events):
        return "".join([event.text async for event in events])


def weather(city: str) -> str:
    """How the weather is."""
    return f"Rain in {city}."


def test_store_calls_do_not_run_on_loop_thread(store: WatchedStore) -> None:
    calls = lamella.ToolCall(id="1", name="weather", arguments='{"city": "Graz"}')

    async def talk() -> None:
        replies = ("At noon.", ScriptedReply(calls=(calls,)), "Take a coat.", LONG, "At six.", "Late.")
        async with make_engine(store, *replies) as engine:
            conversation = await engine.conversation("tides")
            await read_out(conversation.send("When?"))
            assert await read_out(conversation.send("What weather?", tools=[weather])) == "Take a coat."
            async with aclosing(conversation.send("Tell me more.")) as events:
                async for event in events:
                    if event.text:
                        break
            again = await engine.conversation("tides")
            turn = await asyncio.to_thread(again.regenerate)
            await read_out(again.send(turn))
            await asyncio.to_thread(again.ask, "And then?")
            await read_out((await engine.conversation("tides")).resume())

    asyncio.run(talk())
    assert {"append", "load", "read_contents", "close"} <= {name for name, _ in store.calls}
    assert [name for name, thread in store.calls if thread is threading.main_thread()] == []


def test_store_file_is_opened_and_closed_in_thread() -> None:
    async def open_and_close() -> None:
        async with lamella.open("sqlite://", model="scripted:x", provider=ScriptedProvider("At noon.")) as engine:
            assert await read_out((await engine.conversation("tides")).send("When?")) == "At noon."

    asyncio.run(open_and_close())


def test_bad_store_address_fails_on_open() -> None:
    async def open_it() -> None:
        async with lamella.open("mysql://here"):
            pass

    with pytest.raises(lamella.LamellaError, match="no kind of store"):
        asyncio.run(open_it())


def test_event_loop_runs_while_store_blocks(store: WatchedStore) -> None:
    async def talk() -> str:
        async with make_engine(store, "At noon.") as engine:
            conversation = await engine.conversation("tides")
            store.open.clear()
            # Only this loop lets the store go on, and only while it waits for it.
            asyncio.get_running_loop().call_later(0.01, store.open.set)
            return await read_out(conversation.send("When?"))

    assert asyncio.run(talk()) == "At noon."


@asynccontextmanager
async def is_blocked_by(store: WatchedStore) -> AsyncIterator[None]:
    """From here on the store waits, until the block is over."""
    store.open.clear()
    store.came.clear()
    try:
        yield
    finally:
        store.open.set()


async def reach_question(store: WatchedStore) -> None:
    assert await asyncio.to_thread(store.came.wait, FAR)


def said(chat: Conversation) -> list[tuple[str, str | None]]:
    return [(turn.message.text, None if turn.reply is None else turn.reply.text) for turn in chat.turns()]


def test_cancelled_question_does_not_block_others(store: WatchedStore) -> None:
    async def talk() -> list[tuple[str, str | None]]:
        async with make_engine(store, "At six.") as engine:
            conversation = await engine.conversation("tides")
            async with is_blocked_by(store):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(read_out(conversation.send("When?")), 0.05)
                assert conversation.turns() == []
            # It was under way by then: what is asked next comes after it.
            await read_out(conversation.send("And low tide?"))
            return said(conversation)

    assert asyncio.run(talk()) == [("When?", ""), ("And low tide?", "At six.")]


def test_partial_answer_is_saved_before_cancellation_returns(store: WatchedStore) -> None:
    async def talk() -> list[tuple[str, str | None]]:
        async with make_engine(store, LONG) as engine:
            conversation = await engine.conversation("tides")
            heard = asyncio.Event()

            async def listen() -> None:
                async for event in conversation.send("When?"):
                    if event.text:
                        heard.set()

            listening = asyncio.create_task(listen())
            await heard.wait()
            async with is_blocked_by(store):
                listening.cancel()
                await reach_question(store)
                assert not listening.done()
            with pytest.raises(asyncio.CancelledError):
                await listening
            return said(await engine.conversation("tides"))

    ((question, reply),) = asyncio.run(talk())
    assert question == "When?"
    assert reply
    assert LONG.text.startswith(reply)


def test_answer_being_written_at_close_is_written(store: WatchedStore) -> None:
    async def talk() -> None:
        async with make_engine(store, "At noon.") as engine:
            conversation = await engine.conversation("tides")
            store.open.clear()
            store.came.clear()
            asking = asyncio.create_task(read_out(conversation.send("When?")))
            await reach_question(store)
            asking.cancel()
            threading.Timer(0.05, store.open.set).start()

    asyncio.run(talk())
    assert [name for name, _ in store.calls if name in ("append", "close")] == ["append", "close"]
    with make_engine(store) as engine:
        assert said(engine.chat("tides")) == [("When?", None)]


def test_rename_waits_for_running_turn(store: WatchedStore) -> None:
    async def talk() -> tuple[str, list[tuple[str, str | None]]]:
        async with make_engine(store, "At noon.") as engine:
            conversation = await engine.conversation("tides")
            async with is_blocked_by(store):
                asking = asyncio.create_task(read_out(conversation.send("When?")))
                await reach_question(store)
                renaming = asyncio.create_task(asyncio.to_thread(conversation.rename, "Tides"))
                await asyncio.sleep(0.01)
            await asyncio.gather(asking, renaming)
            return conversation.title, said(conversation)

    assert asyncio.run(talk()) == ("Tides", [("When?", "At noon.")])


def test_unresponsive_database_times_out_and_recovers() -> None:
    server = servers.shared()

    async def talk() -> list[tuple[str, str | None]]:
        store = open_store(server.make_store_url(), timeout=2.0)
        backend = replace(open_backend("memory:"), store=store)
        pool = open_pool(ScriptedProvider(*["At noon."] * 40))
        async with Engine(backend, pool, runners=RUNNERS, model="scripted:x") as engine:
            chats = [await engine.conversation(f"tides {number}") for number in range(20)]
            await asyncio.gather(*(read_out(conversation.send("When?")) for conversation in chats))
            with server.frozen():
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(read_out(chats[0].send("Is anybody there?")), 0.1)
                ended = await asyncio.gather(
                    *(read_out(conversation.send("And low tide?")) for conversation in chats[1:]),
                    return_exceptions=True,
                )
                assert [error.code for error in ended if isinstance(error, StoreError)] == ["store_unavailable"] * 19
            await asyncio.gather(*(read_out(conversation.send("And low tide?")) for conversation in chats[1:]))
            return said(chats[-1])

    assert asyncio.run(talk()) == [("When?", "At noon."), ("And low tide?", "At noon.")]
