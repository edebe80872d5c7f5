"""Records of requests and signatures."""

from datetime import UTC, datetime

from lamella.server.compat.records import RequestRecords
from lamella.stores.sharing import InMemorySharedTable


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 11, 18, tzinfo=UTC)


def test_longest_known_beginning_is_found() -> None:
    records = RequestRecords(InMemorySharedTable(), clock=FixedClock())
    assert records.look_up_request(["h0", "h1"], []).seen_messages is None
    records.save_request(["h0", "h1"])
    records.save_request(["h0", "h1"])
    assert records.look_up_request(["h0", "h1", "h2", "h3"], []).seen_messages == 1
    assert records.look_up_request(["h0", "other"], []).seen_messages is None


def test_unknown_signature_keeps_earlier_messages_unchanged() -> None:
    records = RequestRecords(InMemorySharedTable(), clock=FixedClock())
    assert records.look_up_request(["h0"], [(1, "s1"), (3, "s2")]).unchanged_until == 4
    records.save_signatures(["s1"], unchanged_until=0)
    assert records.look_up_request(["h0"], [(1, "s1"), (3, "s2")]).unchanged_until == 4
    assert records.look_up_request(["h0"], [(1, "s1")]).unchanged_until == 0


def test_last_signature_determines_layout_of_its_request() -> None:
    records = RequestRecords(InMemorySharedTable(), clock=FixedClock())
    records.save_signatures(["s2"], unchanged_until=2)
    assert records.look_up_request(["h0"], [(1, "unknown"), (3, "s2")]).unchanged_until == 2
