"""What a store holds, as data."""

from lamella.holdings import ChatListing, StoreStats
from lamella.views.stores import view_chats, view_stats


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


def test_a_conversation_in_a_list_has_its_name_title_times_and_size() -> None:
    listed = ChatListing(
        conversation="k1", name="garden", title="Beans", created="2026-03-01", updated="2026-03-02", version=7
    )
    assert view_chats([listed]) == [
        {
            "conversation": "k1",
            "name": "garden",
            "title": "Beans",
            "created": "2026-03-01",
            "updated": "2026-03-02",
            "events": 7,
        }
    ]
