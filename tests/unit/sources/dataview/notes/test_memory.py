"""A memory that ends: what was used last stays."""

from lamella.sources.dataview.notes import LruCache


def test_a_value_is_made_once_while_it_is_kept() -> None:
    memory = LruCache[str, list[str]](2)
    assert memory.get_or_make("a", lambda: ["first"]) is memory.get_or_make("a", lambda: ["second"])


def test_what_is_not_to_be_kept_is_made_anew() -> None:
    memory = LruCache[str, int](2)
    assert memory.get_or_make("a", lambda: 1) == 1
    assert memory.get_or_make("a", lambda: 2, uses_cache=False) == 2
    assert memory.get_or_make("a", lambda: 3) == 1


def test_what_was_not_asked_for_longest_goes_first() -> None:
    memory = LruCache[str, int](2)
    for key in ("a", "b", "a", "c"):
        memory.get_or_make(key, lambda: 1)
    assert [memory.get_or_make(key, lambda: 2) for key in ("a", "c", "b")] == [1, 1, 2]
