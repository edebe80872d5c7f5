"""Records: the words in every store."""

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


def test_event_kinds_are_the_stored_words() -> None:
    assert [kind.value for kind in EventKind] == STORED


def test_records_of_equal_fields_are_equal() -> None:
    one = EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}", contents=("sha256:a",))
    assert one == EventRecord(kind=EventKind("reply"), at="2026-03-01T12:00:00Z", body="{}", contents=("sha256:a",))
    assert one != EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}")


def test_record_cannot_be_changed() -> None:
    record = EventRecord(kind=EventKind.REPLY, at="2026-03-01T12:00:00Z", body="{}")
    with pytest.raises(AttributeError):
        record.body = "[]"  # type: ignore[misc]


def test_batch_has_no_contents_by_default() -> None:
    assert EventBatch(records=()).contents == {}


def test_records_differing_only_in_counts_are_equal() -> None:
    one, other = (EventRecord(kind=EventKind.REPLY, at="", body="{}", counts=counts) for counts in (b"", b"1"))
    assert one == other
    assert not one != other  # noqa: SIM202 - what is tested


def test_every_exported_name_exists() -> None:
    assert [name for name in records.__all__ if not hasattr(records, name)] == []
