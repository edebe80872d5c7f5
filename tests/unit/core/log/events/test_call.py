"""Model calls as they are kept: exactly as they were judged, without what is unknown."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.log.events.told import AT, BARE_CALL, CALL
from tests.unit.raw import parse_body
from tests.unit.steady import steady

from lamella.core.log.call import CacheUse, Call, Cause, Cost, Movement, Outcome, Timing, Verdict
from lamella.core.log.events.call import read_call, store_call
from lamella.core.log.events.codec import read_event, write_reply
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.messages.delta import Diagnosis
from lamella.core.messages.usage import Usage
from lamella.core.values import replace

_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
_counts = st.integers(0, 10**9)
_money = st.decimals(0, 10**6, places=7)
_seconds = st.none() | st.floats(0, 10**6)
calls = st.builds(
    Call,
    model=st.none() | _names,
    verdict=st.builds(
        Verdict,
        outcome=st.sampled_from(Outcome),
        movement=st.builds(Movement, cause=st.sampled_from(Cause), segment=st.none() | _names),
    ),
    predicted=st.none() | st.builds(CacheUse, read=_counts, write=_counts, uncached=_counts),
    usage=st.builds(Usage, plain=st.none() | _counts, read=st.none() | _counts, fault=st.none() | _names),
    by_layer=st.dictionaries(_names, _counts, max_size=3),
    cost=st.none() | st.builds(Cost, amount=_money, naive=_money, limit=_money),
    billed=st.none() | _money,
    timing=st.builds(Timing, build=_seconds, first=_seconds, total=_seconds),
    stop=st.sampled_from(["", "end", "stopped"]),
    id=st.none() | _names,
    diagnosis=st.none() | st.builds(Diagnosis, verdict=_names, missed=st.none() | _counts),
    retries=st.integers(0, 3),
)


@steady
@given(st.lists(calls, max_size=3))
def test_calls_are_read_back_as_they_were_written(made: list[Call]) -> None:
    (record,) = write_reply("a", message_id="a", parent="q", at=AT, calls=made).records
    event = read_event(record)
    assert isinstance(event, ReplyEvent)
    assert [read_call(stored) for stored in event.calls] == made


def test_what_is_unknown_is_left_out() -> None:
    (record,) = write_reply("a", message_id="a", parent="q", at=AT, calls=[BARE_CALL]).records
    assert parse_body(record)["calls"] == [{"outcome": "first", "cause": "none"}]


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1E+21", "1E-21"])
def test_an_amount_that_cannot_be_summed_is_none(amount: str) -> None:
    stored = store_call(CALL)
    assert read_call(stored) == CALL
    with pytest.raises(ValueError, match="is no amount of money"):
        read_call(replace(stored, billed=Decimal(amount)))
    assert stored.cost is not None
    with pytest.raises(ValueError, match="is no amount of money"):
        read_call(replace(stored, cost=replace(stored.cost, naive=Decimal(amount))))
