"""Explicit caches: created if they pay, kept while used, replaced with their contents, and deleted reliably."""

import asyncio
import dataclasses
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.wire.gemini_server import KEY, MODEL, GeminiServer, gemini_server
from tests.wire.material import SEARCH, ask, grown, note, system, user
from tests.wire.script import Say

from lamella.core.messages import ModelReply, ModelRequest, reply_from_deltas
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, NotAvailableError, ProviderError, RetryableProviderError
from lamella.ports import SharedTable
from lamella.providers.gemini import (
    CacheStorageAssumptions,
    GeminiProvider,
    RemoteCacheManager,
    estimate_storage_costs,
    remote_cache_key,
)
from lamella.providers.models import BuiltInModelProfiles
from lamella.stores.open_store import open_store

PROFILE = BuiltInModelProfiles().get_model_profile(MODEL)
STORING = CacheStorageAssumptions(input_price=Decimal("0.75"), expected_requests=10)
START = ask(system(note("tides", 30_000), instructions="Be terse."), user("First?"), model=MODEL)


@dataclass(slots=True)
class _Time:
    now: datetime = field(default_factory=lambda: datetime(2026, 11, 16, 9, 0, tzinfo=UTC))

    def read(self) -> datetime:
        return self.now

    def pass_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)


def _tokens(request: ModelRequest) -> int:
    return len(request.messages[0].text) // 4


def _provider(
    server: GeminiServer, time: _Time, storing: CacheStorageAssumptions = STORING, *, shelf: SharedTable | None = None
) -> GeminiProvider:
    store = RemoteCacheManager(storing, now=time.read, count_tokens=_tokens, shared_table=shelf)
    return GeminiProvider(key=KEY, address=server.url, timeout=10.0, cache_manager=store)


async def _ask(provider: GeminiProvider, request: ModelRequest) -> ModelReply:
    reply = reply_from_deltas([delta async for delta in provider.stream(request)])
    assert reply is not None
    return reply


def _methods(server: GeminiServer) -> list[str]:
    return [call.method for call in server.calls if "cachedContents" in call.path]


def test_instructions_library_and_tools_are_stored_and_read_by_every_turn() -> None:
    async def run(server: GeminiServer) -> list[ModelReply]:
        provider = _provider(server, _Time())
        request = replace(START, tools=(SEARCH,))
        replies = [await _ask(provider, request), await _ask(provider, grown(request, "Yes.", "Second?"))]
        assert server.stored["cachedContents/1"]["ttl"] == "3600s"
        await provider.close()
        return replies

    with gemini_server() as server:
        replies = asyncio.run(run(server))
    assert [(reply.usage.read or 0) > 7_000 for reply in replies] == [True, True]
    asked = [call.body for call in server.calls if "/models/" in call.path]
    assert [sorted(body) for body in asked] == [["cachedContent", "contents", "generationConfig"]] * 2
    assert _methods(server) == ["POST", "DELETE"]
    assert server.stored == {}


def test_changed_library_replaces_the_cache_and_the_old_one_is_deleted() -> None:
    changed = replace(START, messages=(system(note("moon", 30_000), instructions="Be terse."), user("First?")))

    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        await _ask(provider, START)
        await _ask(provider, changed)
        assert list(server.stored) == ["cachedContents/2"]
        await _ask(provider, replace(START, conversation="another"))
        assert len(server.stored) == 2
        await provider.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert server.stored == {}
    assert remote_cache_key(START).instructions == remote_cache_key(changed).instructions
    assert remote_cache_key(START).library != remote_cache_key(changed).library


@pytest.mark.parametrize(
    ("seconds", "methods"),
    [(60, ["POST", "DELETE"]), (3_100, ["POST", "PATCH", "DELETE"]), (3_601, ["POST", "DELETE", "POST", "DELETE"])],
)
def test_cache_is_renewed_near_end_and_recreated_after(seconds: int, methods: list[str]) -> None:
    async def run(server: GeminiServer) -> None:
        time = _Time()
        provider = _provider(server, time)
        await _ask(provider, START)
        time.pass_by(seconds)
        await _ask(provider, START)
        await provider.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert _methods(server) == methods


def test_unprofitable_or_short_prompt_is_not_stored() -> None:
    async def run(server: GeminiServer) -> None:
        rarely = _provider(server, _Time(), dataclasses.replace(STORING, expected_requests=1))
        await _ask(rarely, START)
        await rarely.close()
        short = _provider(server, _Time())
        await _ask(short, ask(system(), user("Hi?"), model=MODEL))
        await short.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert _methods(server) == []


def test_storage_estimate_has_both_costs() -> None:
    verdict = estimate_storage_costs(1_000_000, PROFILE, STORING)
    # Making 0.75, ten reads at a tenth, one hour of storage 0.50; against ten times plain input.
    assert verdict.with_cache == Decimal("0.75") + Decimal("0.75") + Decimal("0.50")
    assert verdict.without_cache == Decimal("7.5")
    assert verdict.is_worthwhile
    assert not estimate_storage_costs(
        1_000_000, PROFILE, dataclasses.replace(STORING, expected_requests=1)
    ).is_worthwhile
    assert not estimate_storage_costs(
        1_000_000, PROFILE, dataclasses.replace(STORING, lifetime=36_000, expected_requests=2)
    ).is_worthwhile


def test_storing_without_a_known_price_is_refused() -> None:
    with pytest.raises(NotAvailableError, match="No price"):
        estimate_storage_costs(1, replace(PROFILE, storage=None), STORING)


def test_model_that_offers_no_caches_of_their_own_is_refused_by_name() -> None:
    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        try:
            await _ask(provider, replace(START, model="gemini-4-argon"))
        finally:
            await provider.close()

    with gemini_server() as server, pytest.raises(NotAvailableError, match="gemini-4-argon") as caught:
        asyncio.run(run(server))
    assert "by itself" in caught.value.hint
    assert server.calls == []


def test_cache_needs_a_conversation_to_belong_to() -> None:
    with pytest.raises(InvalidOperationError, match="conversation"):
        remote_cache_key(replace(START, conversation=None))


def test_lost_remote_cache_is_recreated_on_retry() -> None:
    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        await _ask(provider, START)
        server.stored.clear()
        with pytest.raises(RetryableProviderError) as caught:
            await _ask(provider, START)
        assert caught.value.wait == 0.0
        await _ask(provider, START)
        await provider.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert _methods(server) == ["POST", "POST", "DELETE"]


def test_undeletable_cache_is_named_and_retried() -> None:
    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        await _ask(provider, START)
        server.keeps = True
        with pytest.raises(ProviderError, match="cachedContents/1 until 2026-11-16 10:00 UTC"):
            await provider.close()
        server.keeps = False
        await provider.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert server.stored == {}


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.02, 0.05])
def test_cancellation_leaves_no_remote_cache(moment: float) -> None:
    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        await _ask(provider, ask(user("Warm up"), model=MODEL))
        asking = asyncio.ensure_future(_ask(provider, START))
        await asyncio.sleep(moment)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await provider.close()

    with gemini_server(Say(), Say()) as server:
        asyncio.run(run(server))
    assert server.stored == {}


def test_close_is_completed_despite_cancellation() -> None:
    async def run(server: GeminiServer) -> None:
        provider = _provider(server, _Time())
        await _ask(provider, START)
        closing = asyncio.ensure_future(provider.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        for _ in range(100):
            if not server.stored:
                break
            await asyncio.sleep(0.02)

    with gemini_server() as server:
        asyncio.run(run(server))
    assert server.stored == {}


def test_remote_cache_of_other_process_is_used_replaced_and_deleted(tmp_path: Path) -> None:
    changed = replace(START, messages=(system(note("moon", 30_000), instructions="Be terse."), user("First?")))
    url = f"sqlite:///{tmp_path / 'chats.db'}"

    async def run(server: GeminiServer) -> None:
        ended, store = open_store(url), open_store(url)
        lost = _provider(server, _Time(), shelf=ended.shared_table)
        await _ask(lost, START)
        # As good as killed: it can delete nothing any more.
        server.keeps = True
        with pytest.raises(ProviderError, match="could not be deleted"):
            await lost.close()
        server.keeps = False
        ended.close()
        heir = _provider(server, _Time(), shelf=store.shared_table)
        reply = await _ask(heir, START)
        assert (reply.usage.read or 0) > 7_000
        assert _methods(server).count("POST") == 1
        await _ask(heir, changed)
        assert list(server.stored) == ["cachedContents/2"]
        await heir.close()
        store.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert server.stored == {}


def test_last_process_using_remote_cache_deletes_it() -> None:
    async def run(server: GeminiServer) -> None:
        store = open_store("memory:")
        first, second = (_provider(server, _Time(), shelf=store.shared_table) for _ in range(2))
        await _ask(first, START)
        await _ask(second, START)
        await first.close()
        assert list(server.stored) == ["cachedContents/1"]
        await _ask(second, START)
        await second.close()

    with gemini_server() as server:
        asyncio.run(run(server))
    assert _methods(server) == ["POST", "DELETE"]
    assert server.stored == {}
