"""Model calls in events: exactly as recorded, without unknown values."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.log.events.samples import AT, BARE_CALL, CALL
from tests.unit.hypothesis_profile import steady
from tests.unit.raw_events import parse_body

from lamella.core.log.call import (
    CacheOutcome,
    CacheUsage,
    CacheVerdict,
    CallTiming,
    ModelCall,
    PrefixChange,
    PrefixChangeCause,
    TurnInputCost,
)
from lamella.core.log.events.call import to_model_call, to_stored_call
from lamella.core.log.events.codec import build_reply_batch, decode_event
from lamella.core.log.turn import ReplyEvent
from lamella.core.messages import CacheDiagnosis, Usage
from lamella.core.values import replace

_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
_counts = st.integers(0, 10**9)
_money = st.decimals(0, 10**6, places=7)
_seconds = st.none() | st.floats(0, 10**6)
calls = st.builds(
    ModelCall,
    model=st.none() | _names,
    verdict=st.builds(
        CacheVerdict,
        outcome=st.sampled_from(CacheOutcome),
        prefix_change=st.builds(PrefixChange, cause=st.sampled_from(PrefixChangeCause), segment=st.none() | _names),
    ),
    predicted=st.none() | st.builds(CacheUsage, read=_counts, write=_counts, uncached=_counts),
    usage=st.builds(Usage, plain=st.none() | _counts, read=st.none() | _counts, fault=st.none() | _names),
    by_layer=st.dictionaries(_names, _counts, max_size=3),
    cost=st.none() | st.builds(TurnInputCost, amount=_money, naive=_money, limit=_money),
    billed=st.none() | _money,
    timing=st.builds(CallTiming, build=_seconds, first=_seconds, total=_seconds),
    stop=st.sampled_from(["", "end", "stopped"]),
    id=st.none() | _names,
    diagnosis=st.none() | st.builds(CacheDiagnosis, verdict=_names, missed=st.none() | _counts),
    retries=st.integers(0, 3),
)


@steady
@given(st.lists(calls, max_size=3))
def test_model_calls_round_trip(made: list[ModelCall]) -> None:
    (record,) = build_reply_batch("a", message_id="a", parent="q", timestamp=AT, model_calls=made).records
    event = decode_event(record)
    assert isinstance(event, ReplyEvent)
    assert [to_model_call(stored) for stored in event.calls] == made


def test_unknown_values_are_omitted() -> None:
    (record,) = build_reply_batch("a", message_id="a", parent="q", timestamp=AT, model_calls=[BARE_CALL]).records
    assert parse_body(record)["calls"] == [{"outcome": "first", "cause": "none"}]


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1E+21", "1E-21"])
def test_invalid_amount_is_none(amount: str) -> None:
    stored = to_stored_call(CALL)
    assert to_model_call(stored) == CALL
    with pytest.raises(ValueError, match="is no amount of money"):
        to_model_call(replace(stored, billed=Decimal(amount)))
    assert stored.cost is not None
    with pytest.raises(ValueError, match="is no amount of money"):
        to_model_call(replace(stored, cost=replace(stored.cost, naive=Decimal(amount))))
