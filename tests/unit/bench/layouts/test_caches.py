"""The simulated caches, by the rules that providers document: what is written, read and found again."""

from bench.layouts.caches import MARKS, STEPS, Block, MarkedCache, SteppedCache, count

HEAD = "A rule to follow in every answer.\n" * 300
SAID = "Something that was said before.\n" * 40


def talk(messages: int) -> list[Block]:
    return [Block(HEAD), *(Block(f"{number} {SAID}") for number in range(messages))]


def mark(blocks: list[Block], *places: int, lasting: str = "5m") -> list[Block]:
    return [block._replace(mark=lasting) if at in places else block for at, block in enumerate(blocks)]


def test_marked_prefix_is_written_once_then_read() -> None:
    cache, head = MarkedCache(MARKS), count(HEAD)
    cache.take(mark(talk(1), 0), 0)
    assert (cache.bill.read, cache.bill.write) == (0, head)
    cache.take(mark(talk(2), 0), 100)
    assert (cache.bill.read, cache.bill.write) == (head, head)


def test_reading_renews_lifetime_and_silence_ends_it() -> None:
    cache, head = MarkedCache(MARKS), count(HEAD)
    for at in (0, 250, 500):
        cache.take(mark(talk(1), 0), at)
    assert cache.bill.read == 2 * head
    cache.take(mark(talk(1), 0), 801)
    assert cache.bill.write == 2 * head


def test_breakpoint_looks_back_twenty_blocks() -> None:
    for added, served in ((18, True), (25, False)):
        cache = MarkedCache(MARKS)
        cache.take(mark(talk(1), 1), 0)
        cache.take(mark(talk(1 + added), 1 + added), 10)
        assert bool(cache.bill.read) is served


def test_prompt_below_minimum_is_not_cached() -> None:
    cache = MarkedCache(MARKS)
    cache.take([Block("short", "5m")], 0)
    cache.take([Block("short", "5m")], 1)
    assert (cache.bill.read, cache.bill.write, cache.bill.plain) == (0, 0, 2 * count("short"))


def test_one_hour_write_costs_more_and_lasts_longer() -> None:
    cache, head = MarkedCache(MARKS), count(HEAD)
    cache.take(mark(talk(0), 0, lasting="1h"), 0)
    assert cache.bill.cost == 2 * head
    cache.take(mark(talk(0), 0, lasting="1h"), 3_000)
    assert cache.bill.read == head


def test_step_cache_serves_whole_steps_without_breakpoint() -> None:
    cache = SteppedCache(STEPS)
    cache.take(talk(3), 0)
    cache.take(talk(5), 10)
    shared = sum(count(block.text) for block in talk(3))
    assert cache.bill.read == shared - shared % 128
    cache.take(talk(5), 1_000)
    assert cache.bill.read == shared - shared % 128
