"""A memory that ends: what was used last stays."""

from lamella.sources.dataview.notes import LruCache


def test_cached_value_is_made_once() -> None:
    memory = LruCache[str, list[str]](2)
    assert memory.get_or_make("a", lambda: ["first"]) is memory.get_or_make("a", lambda: ["second"])


def test_uncached_value_is_made_again() -> None:
    memory = LruCache[str, int](2)
    assert memory.get_or_make("a", lambda: 1) == 1
    assert memory.get_or_make("a", lambda: 2, uses_cache=False) == 2
    assert memory.get_or_make("a", lambda: 3) == 1


def test_least_recently_used_value_is_evicted() -> None:
    memory = LruCache[str, int](2)
    for key in ("a", "b", "a", "c"):
        memory.get_or_make(key, lambda: 1)
    assert [memory.get_or_make(key, lambda: 2) for key in ("a", "c", "b")] == [1, 1, 2]
