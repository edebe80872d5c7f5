"""A branch read back: what is damaged in it is named with its message and with what is wrong."""

from decimal import Decimal

import pytest
from tests.unit.core.log.events.samples import CALL
from tests.unit.core.log.log_writer import AT

from lamella.core.log.branch import parse_message_time, read_model_calls, read_question_turn, validate_message_node
from lamella.core.log.events.call import to_stored_call
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.turn import ReplyEvent, TurnSettings
from lamella.core.log.turn_records import MessageNode, TurnRecord
from lamella.core.values import replace
from lamella.errors import StoreCorruptedError

ASKED = MessageNode(event=QuestionEvent(id="q", parent="", text="?"), at=AT)


def answered(*, billed: str) -> MessageNode:
    call = replace(to_stored_call(CALL), billed=Decimal(billed))
    return MessageNode(event=ReplyEvent(id="a", parent="q", text="!", calls=(call,)), at=AT)


def test_unreadable_call_is_named_by_message() -> None:
    sound, wrong = answered(billed="12.50"), answered(billed="NaN")
    assert read_model_calls(TurnRecord(message=ASKED, reply=sound)) == (CALL,)
    assert read_model_calls(TurnRecord(message=ASKED, reply=None)) == ()
    validate_message_node(sound)
    with pytest.raises(StoreCorruptedError, match="The message a cannot be read: NaN is no amount of money"):
        read_model_calls(TurnRecord(message=ASKED, reply=wrong))
    with pytest.raises(StoreCorruptedError, match="NaN is no amount of money"):
        validate_message_node(wrong)


def test_invalid_time_is_named_by_message() -> None:
    found = parse_message_time(ASKED)
    assert found is not None
    assert found.isoformat() == "2026-03-01T12:00:00+00:00"
    assert parse_message_time(replace(ASKED, at="")) is None
    with pytest.raises(StoreCorruptedError, match=r"The time of the message q cannot be read: .*'noon'"):
        parse_message_time(replace(ASKED, at="noon"))
    with pytest.raises(StoreCorruptedError, match="The time of the message q"):
        validate_message_node(replace(ASKED, at="noon"))


def test_reply_cannot_be_read_as_question() -> None:
    with pytest.raises(StoreCorruptedError, match="The message a cannot be read: it is a reply"):
        read_question_turn(answered(billed="1"), {}, defaults=TurnSettings())
