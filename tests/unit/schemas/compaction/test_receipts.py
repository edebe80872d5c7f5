"""Compactions as data: the fields in docs/reference/json-output.md."""

from decimal import Decimal

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella import CompactionReceipt
from lamella.conversation.compaction import CompactionProposal
from lamella.core.ledger.entry import CompactionCostEstimate
from lamella.core.log.receipts import CompactionCertificate, CompactionStep, CompactionStepName, SkippedStep
from lamella.core.prompt.envelope import PromptTokenCounts
from lamella.core.values import replace
from lamella.schemas.compaction import plan_to_json, receipt_to_json, token_counts_to_json

STEP = CompactionStep(name=CompactionStepName.PREVIEW, removed=("garden.md",), tokens_before=900, tokens_after=400)
RECEIPT = CompactionReceipt(
    id="r1",
    parent="m1",
    steps=(STEP,),
    skipped=(SkippedStep(name=CompactionStepName.SUMMARY, why="there is no summariser"),),
    tokens_before=1_000,
    tokens_after=400,
    target=500,
    automatic=False,
)
BEFORE = PromptTokenCounts(total=1_000, by_layer={"L2_PREVIOUS": 900, "overhead": 100}, limit=4_000)
AFTER = PromptTokenCounts(total=400, by_layer={"L2_PREVIOUS": 300, "overhead": 100}, limit=4_000)


def test_receipt_json_has_documented_fields() -> None:
    body = as_json(receipt_to_json(RECEIPT))
    assert [*body, "since"] == names(doc("reference/json-output.md"), under="ReceiptJson")
    assert body == {
        "id": "r1",
        "parent": "m1",
        "steps": [{"name": "preview", "removed": ["garden.md"], "tokens_before": 900, "tokens_after": 400}],
        "skipped": [{"name": "summary", "why": "there is no summariser"}],
        "tokens_before": 1_000,
        "tokens_after": 400,
        "target": 500,
        "automatic": False,
        "certificate": None,
    }
    certified = replace(RECEIPT, certificate=CompactionCertificate(exact_strings=(3, 2, 0), rules=(1, 0, 0)))
    assert as_json(receipt_to_json(certified))["certificate"] == {
        "words": {"stand": 3, "recallable": 2, "gone": 0},
        "rules": {"stand": 1, "recallable": 0, "gone": 0},
    }


def test_plan_json_has_receipt_totals_and_estimate() -> None:
    outlook = CompactionCostEstimate(changed_tokens=120, cost_now=Decimal("0.00120"), saved_per_turn=None)
    plan = CompactionProposal(
        receipt=RECEIPT,
        target_tokens=500,
        before=BEFORE,
        after=AFTER,
        cost_estimate=outlook,
        warnings=("Line 3 looks like a key.",),
    )
    body = as_json(plan_to_json("garden", plan, committed=True))
    assert list(body) == ["conversation", "committed", "receipt", "tokens", "outlook", "warnings"]
    assert body["warnings"] == ["Line 3 looks like a key."]
    assert (body["conversation"], body["committed"]) == ("garden", True)
    assert body["receipt"] == as_json(receipt_to_json(RECEIPT))
    assert body["tokens"] == {
        "before": as_json(token_counts_to_json(BEFORE)),
        "after": as_json(token_counts_to_json(AFTER)),
    }
    assert body["outlook"] == {"moved": 120, "cost_now": "0.0012", "saved_per_turn": None}


def test_empty_plan_json_has_no_receipt_or_estimate() -> None:
    nothing = CompactionProposal(receipt=None, target_tokens=500, before=BEFORE)
    body = as_json(plan_to_json("garden", nothing, committed=False))
    assert (body["receipt"], body["outlook"]) == (None, None)
    assert body["tokens"] == {
        "before": {"total": 1_000, "by_layer": dict(BEFORE.by_layer), "limit": 4_000},
        "after": None,
    }
