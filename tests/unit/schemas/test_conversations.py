"""The contents of a store as JSON."""

from tests.bodies import as_json

from lamella.ports import ConversationListItem, StoreStats
from lamella.schemas.conversations import conversations_to_json, stats_to_json


def test_stats_json_names_every_count() -> None:
    stats = StoreStats(schema=3, conversations=5, erased=1, events=40, contents=9, content_bytes=1_024)
    assert as_json(stats_to_json(stats)) == {
        "lamella": 1,
        "schema": 3,
        "conversations": 5,
        "erased": 1,
        "events": 40,
        "contents": 9,
        "content_bytes": 1_024,
    }


def test_conversation_json_has_name_title_times_and_size() -> None:
    listed = ConversationListItem(
        conversation="k1", name="garden", title="Beans", created="2026-03-01", updated="2026-03-02", event_count=7
    )
    assert [as_json(one) for one in conversations_to_json([listed])] == [
        {
            "conversation": "k1",
            "name": "garden",
            "title": "Beans",
            "created": "2026-03-01",
            "updated": "2026-03-02",
            "events": 7,
        }
    ]
