"""A branch read back: what is damaged in it is named with its message and with what is wrong."""

from decimal import Decimal

import pytest
from tests.unit.core.log.events.told import CALL
from tests.unit.core.log.scribe import AT

from lamella.core.log.branch import check_node, read_calls, read_message, read_time
from lamella.core.log.events.call import store_call
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.nodes import Node, Told
from lamella.core.log.terms import Terms
from lamella.core.values import replace
from lamella.errors import StoreDamagedError

ASKED = Node(event=MessageEvent(id="q", parent="", text="?"), at=AT)


def answered(*, billed: str) -> Node:
    call = replace(store_call(CALL), billed=Decimal(billed))
    return Node(event=ReplyEvent(id="a", parent="q", text="!", calls=(call,)), at=AT)


def test_a_call_that_cannot_be_read_is_named_by_its_message_with_what_is_wrong() -> None:
    sound, wrong = answered(billed="12.50"), answered(billed="NaN")
    assert read_calls(Told(message=ASKED, reply=sound)) == (CALL,)
    assert read_calls(Told(message=ASKED, reply=None)) == ()
    check_node(sound)
    with pytest.raises(StoreDamagedError, match="The message a cannot be read: NaN is no amount of money"):
        read_calls(Told(message=ASKED, reply=wrong))
    with pytest.raises(StoreDamagedError, match="NaN is no amount of money"):
        check_node(wrong)


def test_a_time_that_is_none_is_named_by_its_message_with_what_is_wrong() -> None:
    found = read_time(ASKED)
    assert found is not None
    assert found.isoformat() == "2026-03-01T12:00:00+00:00"
    assert read_time(replace(ASKED, at="")) is None
    with pytest.raises(StoreDamagedError, match=r"The time of the message q cannot be read: .*'noon'"):
        read_time(replace(ASKED, at="noon"))
    with pytest.raises(StoreDamagedError, match="The time of the message q"):
        check_node(replace(ASKED, at="noon"))


def test_a_reply_is_no_question() -> None:
    with pytest.raises(StoreDamagedError, match="The message a cannot be read: it is a reply"):
        read_message(answered(billed="1"), {}, usual=Terms())
