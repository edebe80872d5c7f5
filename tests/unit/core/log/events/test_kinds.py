"""Records: the words that stand in every store."""

import pytest

from lamella.core.log.events import kinds as records
from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord

STORED = [
    "message",
    "reply",
    "attachment",
    "settings",
    "edit",
    "delete",
    "fork",
    "switch",
    "rename",
    "fold",
    "compaction",
    "undo",
    "stage",
    "erasure",
    "calls",
    "results",
    "aside",
]


def test_the_kinds_of_events_are_the_words_that_stores_hold() -> None:
    assert [kind.value for kind in EventKind] == STORED


def test_a_record_is_equal_to_another_that_says_the_same() -> None:
    one = EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}", contents=("sha256:a",))
    assert one == EventRecord(kind=EventKind("reply"), at="2026-03-01T12:00:00Z", body="{}", contents=("sha256:a",))
    assert one != EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}")


def test_a_record_cannot_be_changed() -> None:
    record = EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}")
    with pytest.raises(AttributeError):
        record.body = "[]"  # type: ignore[misc]


def test_what_is_written_brings_no_contents_unless_it_says_so() -> None:
    assert EventBatch(records=()).contents == {}


def test_records_that_differ_in_their_counts_alone_are_not_unequal() -> None:
    one, other = (EventRecord(kind=EventKind.REPLY, at="", body="{}", counts=counts) for counts in (b"", b"1"))
    assert one == other
    assert not one != other  # noqa: SIM202 - what is tested


def test_what_a_record_is_of_is_found_beside_it() -> None:
    assert [name for name in records.__all__ if not hasattr(records, name)] == []
