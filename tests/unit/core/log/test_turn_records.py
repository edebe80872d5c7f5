"""Messages of the tree: what came with them, and what is wrong with one that cannot be read."""

import pytest
from tests.unit.core.log.events.samples import FULL, PLAIN

from lamella.core.log.events.message import make_question_event
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import MessageNode, damaged_record_error, list_artifact_ids
from lamella.core.values import replace


def test_artifact_ids_of_question_are_unique_and_reply_has_none() -> None:
    assert FULL.system is not None
    came = (*FULL.tool_results, *FULL.attached, *FULL.system.inlined)
    question = MessageNode(event=make_question_event(FULL, message_id="m", parent=""))
    assert list_artifact_ids(question) == tuple(artifact.id for artifact in came)
    twice = replace(PLAIN, attached=(FULL.attached[0], FULL.attached[0]))
    assert list_artifact_ids(MessageNode(event=make_question_event(twice, message_id="m", parent=""))) == (
        FULL.attached[0].id,
    )
    assert list_artifact_ids(MessageNode(event=ReplyEvent(id="a", parent="m", text="yes"))) == ()


@pytest.mark.parametrize(
    ("error", "why"), [(KeyError("m"), "'m' is missing"), (ValueError("it is no number"), "it is no number")]
)
def test_unreadable_record_is_named_with_reason(error: Exception, why: str) -> None:
    found = damaged_record_error("Event 3", error)
    assert str(found) == f"Event 3 cannot be read: {why}."
    assert "`engine.verify()`" in found.hint
