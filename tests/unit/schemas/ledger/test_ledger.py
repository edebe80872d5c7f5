"""The ledger as data: rows, sums that never take the unknown for zero, and documented fields."""

import re
from decimal import Decimal

import pytest
from tests.bodies import as_json
from tests.contracts.repository import doc

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
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import MessageNode, TurnRecord
from lamella.core.messages import CacheDiagnosis, Usage
from lamella.core.values import replace
from lamella.schemas.ledger import (
    RequestFingerprint,
    TurnLedgerRow,
    answering_calls,
    build_ledger_rows,
    call_to_json,
    count_cache_write_tokens,
    ledger_to_json,
    total_ledger_rows,
    unexplained_turns,
)
from lamella.schemas.prompts import fingerprint_to_json


def call(
    usage: Usage | None = None, *, outcome: CacheOutcome = CacheOutcome.HIT, cost: TurnInputCost | None = None
) -> ModelCall:
    movement = PrefixChange(cause=PrefixChangeCause.ARTIFACT_ADDED, segment="garden.md")
    return ModelCall(
        model="anthropic:claude-opus-5-5",
        verdict=CacheVerdict(outcome=outcome, prefix_change=movement),
        predicted=CacheUsage(read=5, write=2, uncached=1),
        usage=usage or Usage(),
        by_layer={"L1_SYSTEM": 8},
        cost=cost,
        billed=None if cost is None else cost.amount * 2,
        timing=CallTiming(build=0.1, first=0.2, total=0.3),
        stop="end",
        id="msg_1",
        diagnosis=CacheDiagnosis(verdict="miss", reason="changed", missed=3),
        retries=1,
    )


def told(reply: str | None) -> TurnRecord:
    question = MessageNode(event=QuestionEvent(id="q1", parent="", text="What grows here?"), at="2026-03-01T12:00:00Z")
    answer = None if reply is None else MessageNode(event=ReplyEvent(id="a1", parent="q1", text=reply))
    return TurnRecord(message=question, reply=answer)


def row(*calls: ModelCall, number: int = 1) -> TurnLedgerRow:
    return TurnLedgerRow(number=number, message="q1", at="", text="", status="called", calls=calls)


@pytest.mark.parametrize(
    ("reply", "calls", "standing"),
    [
        (None, (), "waiting"),
        ("Beans.", (call(),), "called"),
        ("Beans.", (), "no_call"),
        ("", (), "unanswered"),
        ("Beans.", (replace(call(), purpose="summary"),), "no_call"),
        ("Beans.", (replace(call(), purpose="summary"), call()), "called"),
    ],
)
def test_ledger_row_describes_its_turn(reply: str | None, calls: tuple[ModelCall, ...], standing: str) -> None:
    (made,) = build_ledger_rows([told(reply)], [calls])
    assert made == TurnLedgerRow(
        number=1,
        message="q1",
        at="2026-03-01T12:00:00Z",
        text="What grows here?",
        status=standing,
        calls=calls,
    )


def test_turns_without_their_calls_make_no_rows() -> None:
    with pytest.raises(ValueError, match="shorter"):
        build_ledger_rows([told(None)], [])


def test_totals_include_known_values() -> None:
    cost = TurnInputCost(amount=Decimal("0.5"), naive=Decimal("0.8"), limit=Decimal("0.3"))
    reported = call(Usage(plain=10, read=30, write=5, write_long=5, output=7), cost=cost)
    sums = total_ledger_rows([row(reported, call(Usage(output=1))), row(number=2), row(reported, number=3)])
    assert (sums.calls, sums.predicted_tokens, sums.retries, sums.unpriced_calls) == (3, 15, 3, 1)
    assert (sums.read_tokens, sums.written_tokens, sums.plain_tokens, sums.output_tokens) == (60, 20, 20, 15)
    assert (sums.billed, sums.estimated_cost, sums.naive_cost, sums.perfect_cache_cost) == tuple(
        map(Decimal, ("2", "1", "1.6", "0.6"))
    )
    assert sums.seconds == pytest.approx(0.9)
    assert sums.read_share == 0.6


def test_auxiliary_calls_are_in_totals_and_counted_separately() -> None:
    cost = TurnInputCost(amount=Decimal("0.5"), naive=Decimal("0.8"), limit=Decimal("0.3"))
    paid = call(Usage(plain=10, read=30, output=7), cost=cost)
    aside = replace(paid, purpose="summary", cost=None)
    sums = total_ledger_rows([row(aside, paid)])
    assert (sums.calls, sums.auxiliary_calls, sums.read_tokens, sums.output_tokens, sums.billed) == (
        2,
        1,
        60,
        14,
        Decimal(2),
    )
    assert answering_calls([aside, paid]) == [paid]
    assert call_to_json(aside).purpose == "summary"


def test_unknown_totals_are_none() -> None:
    sums = total_ledger_rows([row(call(Usage()))])
    assert (
        sums.read_tokens,
        sums.written_tokens,
        sums.plain_tokens,
        sums.output_tokens,
        sums.billed,
        sums.read_share,
    ) == (None,) * 6
    assert total_ledger_rows([row(call(Usage(plain=0, read=0)))]).read_share == 0.0


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(Usage(), None), (Usage(write=3), 3), (Usage(write_long=4), 4), (Usage(write=3, write_long=4), 7)],
)
def test_cache_writes_of_all_lifetimes_are_summed(usage: Usage, tokens: int | None) -> None:
    assert count_cache_write_tokens(call(usage)) == tokens


def test_unexplained_turns_are_listed_by_number() -> None:
    odd = call(outcome=CacheOutcome.UNEXPLAINED)
    assert unexplained_turns([row(call()), row(call(), odd, number=2), row(number=3)]) == [2]


def test_call_json_has_every_field() -> None:
    cost = TurnInputCost(amount=Decimal("0.50"), naive=Decimal("0.8"), limit=Decimal("0.3"))
    assert as_json(call_to_json(call(Usage(plain=10, read=30, output=7), cost=cost))) == {
        "purpose": "answer",
        "model": "anthropic:claude-opus-5-5",
        "verdict": {
            "outcome": "hit",
            "cause": "artifact_added",
            "segment": "garden.md",
            "ours": False,
            "says": "hit",
        },
        "predicted": {"read": 5, "write": 2, "uncached": 1},
        "reported": {
            "plain": 10,
            "read": 30,
            "write": None,
            "write_long": None,
            "output": 7,
            "reasoning": None,
            "fault": None,
        },
        "by_layer": {"L1_SYSTEM": 8},
        "billed": "1",
        "cost": {"currency": "USD", "amount": "0.5", "naive": "0.8", "limit": "0.3"},
        "seconds": {"build": 0.1, "first": 0.2, "total": 0.3, "phases": {}},
        "stop": "end",
        "id": "msg_1",
        "diagnosis": {"verdict": "miss", "reason": "changed", "missed": 3},
        "retries": 1,
    }


def test_ledger_json_fields_are_all_documented() -> None:
    rows = build_ledger_rows([told("Beans.")], [(call(Usage(plain=2, read=1)),)])
    body = as_json(ledger_to_json("garden", rows))
    assert list(body) == ["lamella", "conversation", "turns", "totals", "unexplained", "doubts"]
    known = set(re.findall(r"`(\w+)`", doc("reference/json-output.md")))
    assert _names(body) - known - {"L1_SYSTEM"} == set()
    totals = body["totals"]
    assert (totals["turns"], totals["calls"], totals["cache_read_share"]) == (1, 1, 0.333333)


def _names(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for inner in value.values() for name in _names(inner)}
    return {name for inner in value for name in _names(inner)} if isinstance(value, list) else set()


def test_fingerprint_json_has_hashes_and_ratios() -> None:
    sent = RequestFingerprint(
        renderer=2,
        system="sha256:1",
        library="sha256:2",
        prefix="sha256:3",
        whole="sha256:4",
        segments=(1, 2, 3, 4, 1),
        attached=3,
        referred=1,
        context=4,
        compacted=1,
        unparsed=5,
    )
    assert as_json(fingerprint_to_json(sent)) == {
        "renderer": 2,
        "hashes": {"L1_SYSTEM": "sha256:1", "L2_PREVIOUS": "sha256:2", "prefix": "sha256:3", "whole": "sha256:4"},
        "segments": {"L1_SYSTEM": 1, "L2_PREVIOUS": 2, "L3_TURN": 3, "L4_STRIP": 4, "L5_USER": 1},
        "dedup_ratio": 0.333333,
        "compacted_share": 0.25,
        "unparsed": 5,
    }
    known = set(re.findall(r"`(\w+)`", doc("reference/json-output.md")))
    assert _names(as_json(fingerprint_to_json(sent))) - known == set()
