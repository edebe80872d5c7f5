"""Compactions of a log: active for later messages until they are undone."""

import pytest

from lamella.core.log.compactions import CompactionLog
from lamella.core.log.events.compaction import CompactionEvent

# a question and its answer, three times; a compaction is between events.
PATH = ("q1", "a1", "q2", "a2", "q3", "a3")
SAID = {name: index for index, name in enumerate(PATH)}


def receipt(name: str, parent: str, before: str | None = None) -> CompactionEvent:
    return CompactionEvent(
        id=name, parent=parent, steps=(), skipped=(), tokens=(2, 1), target=1, automatic=True, before=before
    )


def committed(*entries: tuple[str, str, int]) -> CompactionLog:
    made = CompactionLog()
    for name, parent, at in entries:
        made.add_compaction(receipt(name, parent), event_number=at)
    return made


def test_compaction_after_last_message_applies_to_next() -> None:
    found = committed(("r", "a3", 6)).active_on_branch(SAID)
    assert [event.id for event in found.after_last_message] == ["r"]
    assert found.by_next_question == {}


def test_compaction_precedes_question_asked_after_it() -> None:
    said = {**SAID, "q3": 7, "a3": 8}
    found = committed(("r", "a2", 6)).active_on_branch(said)
    assert {name: [event.id for event in events] for name, events in found.by_next_question.items()} == {"q3": ["r"]}
    assert found.after_last_message == ()


def test_question_before_compaction_is_not_affected() -> None:
    found = committed(("r", "a2", 9)).active_on_branch(SAID)
    assert found.events == ()


def test_compaction_for_resent_question_applies_to_it() -> None:
    made = CompactionLog()
    made.add_compaction(receipt("r", "a2", before="q3"), event_number=9)
    assert set(made.active_on_branch(SAID).by_next_question) == {"q3"}


def test_compaction_on_other_branch_does_not_apply() -> None:
    assert committed(("r", "elsewhere", 3)).active_on_branch(SAID).events == ()


def test_undo_voids_compaction_and_later_ones_of_branch() -> None:
    said = {**SAID, "q2": 10, "a2": 11, "q3": 20, "a3": 21}
    made = committed(("one", "a1", 5), ("two", "a2", 15), ("three", "a3", 25))
    made.undo_from("two", message_numbers=said, event_number=30)
    assert [event.id for event in made.active_on_branch(said).events] == ["one"]


def test_undo_keeps_compactions_of_other_branches() -> None:
    said = {**SAID, "q3": 20, "a3": 21}
    made = committed(("here", "a2", 15), ("there", "a1", 25))
    made.undo_from("here", message_numbers=said, event_number=30)
    other = {"q1": 0, "a1": 1, "q9": 28}
    assert [event.id for event in made.active_on_branch(other).events] == ["there"]


def test_inactive_compaction_cannot_be_undone() -> None:
    made = committed(("r", "a3", 6))
    made.undo_from("r", message_numbers=SAID, event_number=7)
    with pytest.raises(ValueError, match="no compaction r to undo"):
        made.undo_from("r", message_numbers=SAID, event_number=8)


def test_compactions_active_at_earlier_event_are_known() -> None:
    said = {**SAID, "q3": 10, "a3": 11}
    made = committed(("r", "a2", 6))
    made.undo_from("r", message_numbers=said, event_number=20)
    assert made.active_on_branch(said).events == ()
    assert [event.id for event in made.active_on_branch(said, as_of_event=10).events] == ["r"]
    assert made.active_on_branch(said, as_of_event=20).events == ()


def test_only_active_compaction_counts_as_undone_since() -> None:
    made = committed(("r", "a3", 6))
    made.undo_from("r", message_numbers=SAID, event_number=7)
    assert not made.was_any_undone(5)
    assert made.was_any_undone(6)
    assert not made.was_any_undone(7)
    assert not committed(("r", "a3", 6)).was_any_undone(6)
    assert made.was_any_undone(6, to_event=7)
    assert not made.was_any_undone(5, to_event=7)
