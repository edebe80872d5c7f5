"""Bills computed from the documented rules of providers: what each request reads, writes and costs.

Tokens are round numbers, one word each. A cost is in tokens of plain input: read, written and plain ones by the factor
of each. The simulator of ``python -m bench layouts`` and the cache model of the ledger are held to the same bills.
"""

from collections.abc import Sequence
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta

import pytest
from bench.layouts.caches import DEAR, MARKS, STEPS, Bill, Block, Rates, count, open_cache

from lamella.core.ledger.cache_profile import CacheRequest, CacheSimulation
from lamella.core.messages import Message, Role
from lamella.providers.models import BuiltInCacheProfiles
from lamella.tokenizers.counter import OfflineTokenCounter

START = datetime(2026, 11, 17, tzinfo=UTC)
MEASURE = OfflineTokenCounter().get_tokenizer(None)
LOOKBACK = 20


def words(tokens: int, name: str = "a") -> str:
    """A text of exactly so many tokens, unlike those of other names."""
    text = f" {name}" * tokens
    assert count(text) == tokens
    return text


def bill(rates: Rates, *requests: tuple[float, Sequence[Block]]) -> Bill:
    cache = open_cache(rates)
    for at, blocks in requests:
        cache.take(blocks, at)
    return cache.bill


def classes(found: Bill) -> tuple[int, int, int]:
    return found.read, found.write, found.plain


# Marks, two lifetimes: writing 1.25 or 2, reading .1, at least 1,024 tokens, 20 blocks of looking back.


def test_breakpoint_cache_bills_write_at_125_percent_and_read_at_10() -> None:
    system, first, second = Block(words(10_000), "5m"), Block(words(50, "b")), Block(words(60, "c"))
    found = bill(MARKS, (0, [system, first]), (60, [system, second]))
    # 10,000 written and 50 plain; then 10,000 read and 60 plain.
    assert classes(found) == (10_000, 10_000, 110)
    assert found.cost == pytest.approx(12_500 + 50 + 1_000 + 60)


def test_breakpoint_cache_bills_one_hour_write_at_double() -> None:
    system, talk = Block(words(4_000), "1h"), Block(words(2_000, "b"), "5m")
    asked = Block(words(100, "c"))
    found = bill(MARKS, (0, [system, talk, asked]))
    # Read up to A, written for an hour from A to B and for five minutes from B to C, the rest is plain: A = 0 here.
    assert found.cost == pytest.approx(4_000 * 2 + 2_000 * 1.25 + 100)
    later = bill(MARKS, (0, [system, talk, asked]), (1_800, [system, talk, asked]))
    # Half an hour later the hour's 4,000 are read and the other 2,000 written again.
    assert later.cost - found.cost == pytest.approx(4_000 * 0.1 + 2_000 * 1.25 + 100)


def test_breakpoint_cache_bills_prompt_below_minimum_as_plain() -> None:
    at_least, below = Block(words(1_024), "5m"), Block(words(1_023), "5m")
    assert classes(bill(MARKS, (0, [below]), (1, [below]))) == (0, 0, 2_046)
    assert classes(bill(MARKS, (0, [at_least]), (1, [at_least]))) == (1_024, 1_024, 0)


@pytest.mark.parametrize(("added", "read"), [(LOOKBACK - 1, 2_000), (LOOKBACK, 0)])
def test_breakpoint_cache_lookback_counts_marked_block_as_first_of_20(added: int, read: int) -> None:
    system = Block(words(2_000), "5m")
    more = [Block(words(10, name)) for name in "bcdefghijklmnopqrstu"[:added]]
    grown = [system._replace(mark=None), *more[:-1], more[-1]._replace(mark="5m")]
    found = bill(MARKS, (0, [system]), (10, grown))
    assert classes(found) == (read, 2_000 + 2_000 + 10 * added - read, 0)


def test_second_breakpoint_finds_entry_beyond_lookback_of_first() -> None:
    system = Block(words(2_000), "5m")
    grown = [system, *(Block(words(10, name)) for name in "bcdefghijklmnopqrstuvwxy"), Block(words(10, "z"), "5m")]
    # 2,000 written; then read, and the 25 blocks of ten written.
    assert bill(MARKS, (0, [system]), (10, grown)).cost == pytest.approx(2_500 + 200 + 250 * 1.25)


@pytest.mark.parametrize(("pause", "cost"), [(300, 200), (301, 2_500)])
def test_breakpoint_cache_lifetime_restarts_on_read(pause: int, cost: float) -> None:
    system = Block(words(2_000), "5m")
    warm = [(0.0, [system]), (200.0, [system])]
    assert bill(MARKS, *warm, (200 + pause, [system])).cost == pytest.approx(2_500 + 200 + cost)


# Steps: whatever begins alike is read, in whole steps; nothing is marked.


def test_steps_with_a_fee_read_in_whole_steps_and_write_the_rest() -> None:
    first, more = Block(words(2_000)), Block(words(500, "b"))
    # 2,000 hold 15 steps of 128: 1,920 are read, and 580 written.
    found = bill(STEPS, (0, [first]), (60, [first, more]))
    assert classes(found) == (1_920, 2_000 + 580, 0)
    assert found.cost == pytest.approx(2_000 * 1.25 + 192 + 580 * 1.25)


@pytest.mark.parametrize("read", [0.5, 0.25, 0.1, 0.0])
def test_step_cache_without_write_fee_bills_unread_as_plain(read: float) -> None:
    first, more = Block(words(2_000)), Block(words(500, "b"))
    rates = changed(DEAR, name="no fee", read=read)
    assert bill(rates, (0, [first]), (60, [first, more])).cost == pytest.approx(2_000 + 1_920 * read + 580)


@pytest.mark.parametrize(("shared", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)])
def test_step_cache_counts_from_minimum_in_steps(shared: int, read: int) -> None:
    same, one, other = Block(words(shared)), Block(words(400, "b")), Block(words(400, "c"))
    assert bill(DEAR, (0, [same, one]), (60, [same, other])).read == read


def test_step_cache_reads_no_expired_entry() -> None:
    first = Block(words(2_048))
    assert bill(DEAR, (0, [first]), (600, [first]), (1_201, [first])).cost == pytest.approx(2_048 + 1_024 + 2_048)


# The ledger's own account, by the profiles of models: (model, minimum, step, lifetime, whether writing is billed).
FAMILIES = (
    ("anthropic:claude-sonnet-5", 1_024, 1, 300, True),
    ("openai:gpt-6-sol", 1_024, 1, 1_800, True),
    ("openai:gpt-5", 1_024, 128, 600, False),
    ("openai:gpt-5.5", 1_024, 2_048, 1_800, False),
    ("gemini:gemini-3.8-flash", 4_096, 1, None, False),
)


def ask(*texts: str, after: int) -> CacheRequest:
    messages = tuple(Message(role=Role.USER, pieces=(text,), tokens=count(text)) for text in texts)
    total = sum(one.tokens + MEASURE.tokens_per_message for one in messages)
    at = START + timedelta(seconds=after)
    return CacheRequest(model="m", tools=(), messages=messages, total=total, at=at, effort="", has_images=False)


@pytest.mark.parametrize(("model", "minimum", "step", "lifetime", "fee"), FAMILIES)
def test_ledger_bills_model_family_by_provider_rules(
    model: str, minimum: int, step: int, lifetime: int | None, *, fee: bool
) -> None:
    profile = BuiltInCacheProfiles().get_cache_profile(model)
    assert (profile.minimum, profile.granularity, profile.lifetime, profile.bills_writes) == (
        minimum,
        step,
        lifetime,
        fee,
    )
    base = words(9_000)
    once, again = ask(base, after=0), ask(base, words(700, "b"), after=200)
    first, cache = CacheSimulation().simulate_request(once, profile=profile, tokenizer=MEASURE)
    then, cache = cache.simulate_request(again, profile=profile, tokenizer=MEASURE)
    shared = once.total - once.total % step
    assert (first.read, first.write, first.uncached) == ((0, once.total, 0) if fee else (0, 0, once.total))
    rest = again.total - shared
    assert (then.read, then.write, then.uncached) == ((shared, rest, 0) if fee else (shared, 0, rest))
    if lifetime is not None:
        late, _ = cache.simulate_request(ask(base, after=200 + lifetime + 1), profile=profile, tokenizer=MEASURE)
        assert late.read == 0
