"""Settings that steer caches, up to the wire: who places marks, and whether caches of their own are made."""

import asyncio

import pytest
from tests.wire.anthropic_server import KEY as ANTHROPIC_KEY
from tests.wire.anthropic_server import MODEL as CLAUDE
from tests.wire.anthropic_server import AnthropicServer, anthropic_server
from tests.wire.gemini_server import KEY, MODEL, GeminiServer, gemini_server

import lamella
from lamella import Conversation, Note
from lamella.conversation.provider_pool import keep_alive
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import SendContext, TurnRunner
from lamella.core.values import replace
from lamella.errors import SettingError
from lamella.providers.anthropic import AnthropicProvider
from lamella.providers.gemini import GeminiProvider, RemoteCacheManager
from lamella.testing import SettableClock
from lamella.wiring import open_backend, open_provider, read_services

BOOK = Note(path="book.md", text="The tide comes and goes. " * 3_000)
ARGON = "gemini:gemini-4-argon"


async def talk(chat: lamella.Conversation, *questions: str) -> list[int | None]:
    """What was read from the cache for each answer."""
    for number, question in enumerate(questions):
        attach = [BOOK] if number == 0 else []
        async for _ in chat.send(question, attach=attach):
            pass
    return [call.usage.read if call.usage else None for calls in chat.ledger() for call in calls]


def test_automatic_breakpoint_setting_leaves_placement_to_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_CACHE_MARKS", "automatic")

    async def run(url: str) -> list[int | None]:
        provider = AnthropicProvider(key=ANTHROPIC_KEY, address=url, timeout=10.0)
        async with lamella.open("sqlite://", model=CLAUDE, provider=provider) as engine:
            try:
                return await talk(engine.chat("demo", layout="in_place"), "First?", "Second?")
            finally:
                await provider.close()

    with anthropic_server() as server:
        first, second = asyncio.run(run(server.url))
    assert (first, (second or 0) > 10_000) == (0, True)
    for body in server.bodies:
        assert body["cache_control"]["type"] == "ephemeral"
        assert not any("cache_control" in block for message in body["messages"] for block in message["content"])


def test_breakpoint_setting_applies_to_conversation_and_exported_requests() -> None:
    def body(**settings: str) -> dict[str, object]:
        return Conversation(model=CLAUDE, **settings).ask("First?", attach=[BOOK]).request("anthropic")  # type: ignore[arg-type]

    assert "cache_control" in body(cache_marks="automatic")
    assert "cache_control" not in body()
    with pytest.raises(SettingError, match="There is no cache_marks 'all'"):
        body(cache_marks="all")
    with lamella.open("sqlite://") as engine:
        conversation = engine.chat("demo", model=CLAUDE, cache_marks="automatic")
        conversation.ask("First?")
        conversation.reply("Yes.")
        assert conversation.transcript()["cache_marks"] == "automatic"


def store_of(model: str, *, lasts: bool = True, **settings: object) -> RemoteCacheManager | None:
    """What makes caches for a model under these settings."""
    provider = open_provider(model, is_named=True, services=read_services(settings), is_stored=lasts)
    assert isinstance(provider, GeminiProvider)
    return provider._cache_manager


def test_explicit_caches_are_created_if_requests_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("LAMELLA_CACHE_STORAGE", "20")
    store = store_of(f"gemini:{MODEL}")

    async def run(server: GeminiServer) -> list[int | None]:
        provider = GeminiProvider(key=KEY, address=server.url, timeout=10.0, cache_manager=store)
        async with lamella.open("sqlite://", model=f"gemini:{MODEL}", provider=provider) as engine:
            try:
                return await talk(engine.chat("demo", layout="library"), "First?", "Second?", "Third?")
            finally:
                await provider.close()

    with gemini_server() as server:
        *_, third = asyncio.run(run(server))
    assert (third or 0) > 10_000
    assert [call.method for call in server.calls if "cachedContents" in call.path] == ["POST", "DELETE"]
    assert server.stored == {}


def test_cache_storage_needs_request_support_and_profit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert store_of(f"gemini:{MODEL}") is None
    assert store_of(f"gemini:{MODEL}", cache_storage=20, lasts=False) is None
    assert store_of(ARGON, cache_storage=20) is None
    assert store_of("gemini:gemini-of-tomorrow", cache_storage=20) is None


def test_kept_cache_serves_question_after_long_pause() -> None:
    clock, slept = SettableClock(), list[float]()

    async def run(server: AnthropicServer) -> Conversation:
        provider = AnthropicProvider(key=ANTHROPIC_KEY, address=server.url, timeout=10.0)

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            clock.advance(seconds)
            server.cache.now += seconds

        def post(model: str) -> SendContext:
            return SendContext(
                provider=provider, clock=clock, sleep=sleep, jitter=lambda: 0.0, model=model, max_answer_tokens=1
            )

        backend = replace(open_backend("memory:"), clock=clock)
        chat = Conversation.open(backend, "chat", {"model": f"anthropic:{CLAUDE}", "layout": "auto", "keep_alive": 2})
        try:
            for text, attach in (("First?", (BOOK.to_artifact(),)), ("Second?", ())):
                runner = TurnRunner(chat, replace(post(CLAUDE), max_answer_tokens=100))
                async for _ in runner.ask(TurnRequest(text=text, attach=attach)):
                    pass
                if attach:
                    assert await keep_alive(chat, post) == 2
                    await sleep(250)
        finally:
            await provider.close()
        return chat

    with anthropic_server() as server:
        chat = asyncio.run(run(server))
    assert sum(slept) > 2 * 300
    first, *kept, second = server.served
    # Sent again it is all read, and so is what the next question begins with.
    written = first.short + first.long
    assert written > 10_000
    assert [(one.read, one.short, one.long) for one in kept] == [(written, 0, 0)] * 2
    assert second.read == written
    assert [body["max_tokens"] for body in server.bodies] == [100, 1, 1, 100]
    assert server.bodies[1]["messages"] == server.bodies[0]["messages"]
    assert [call.purpose for calls in chat.ledger() for call in calls] == [
        "answer",
        "keep_alive",
        "keep_alive",
        "answer",
    ]
