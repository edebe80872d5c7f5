"""How much a store holds, as data."""

from lamella.core.log.records import StoreStats
from lamella.views.stores import view_stats


def test_every_count_of_a_store_has_its_name() -> None:
    stats = StoreStats(schema=3, conversations=5, erased=1, events=40, contents=9, content_bytes=1_024)
    assert view_stats(stats) == {
        "schema": 3,
        "conversations": 5,
        "erased": 1,
        "events": 40,
        "contents": 9,
        "content_bytes": 1_024,
    }
