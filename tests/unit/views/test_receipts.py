"""Compactions as data: the fields that docs/replay.md and docs/compaction.md promise."""

from dataclasses import dataclass
from decimal import Decimal

from tests.contracts.places import doc
from tests.contracts.tables import names

from lamella import Receipt
from lamella.core.ledger.outlook import Outlook
from lamella.core.log.receipt import Certificate, Skip, Step, StepName
from lamella.core.prompt.envelope import TokenCounts
from lamella.core.values import replace
from lamella.views.receipts import view_plan, view_receipt, view_tokens, view_undo

STEP = Step(name=StepName.PREVIEW, removed=("garden.md",), tokens_before=900, tokens_after=400)
RECEIPT = Receipt(
    id="r1",
    parent="m1",
    steps=(STEP,),
    skipped=(Skip(name=StepName.SUMMARY, why="there is no summariser"),),
    tokens_before=1_000,
    tokens_after=400,
    target=500,
    automatic=False,
)
BEFORE = TokenCounts(total=1_000, by_layer={"L2_PREVIOUS": 900, "overhead": 100}, limit=4_000)
AFTER = TokenCounts(total=400, by_layer={"L2_PREVIOUS": 300, "overhead": 100}, limit=4_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A planned compaction, by its shape."""

    receipt: Receipt | None
    before: TokenCounts = BEFORE
    after: TokenCounts | None = None
    outlook: Outlook | None = None
    warnings: tuple[str, ...] = ()


def test_a_receipt_has_the_documented_fields_with_its_values() -> None:
    body = view_receipt(RECEIPT)
    assert list(body) == names(doc("replay.md"), under="compaction")
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
    certified = replace(RECEIPT, certificate=Certificate(words=(3, 2, 0), rules=(1, 0, 0)))
    assert view_receipt(certified)["certificate"] == {
        "words": {"stand": 3, "recallable": 2, "gone": 0},
        "rules": {"stand": 1, "recallable": 0, "gone": 0},
    }


def test_a_plan_has_its_receipt_both_counts_and_what_it_brings() -> None:
    outlook = Outlook(moved=120, cost_now=Decimal("0.00120"), saved_per_turn=None)
    plan = Plan(receipt=RECEIPT, after=AFTER, outlook=outlook, warnings=("Line 3 looks like a key.",))
    body = view_plan("garden", plan, committed=True)
    assert list(body) == ["conversation", "committed", "receipt", "tokens", "outlook", "warnings"]
    assert body["warnings"] == ["Line 3 looks like a key."]
    assert (body["conversation"], body["committed"]) == ("garden", True)
    assert body["receipt"] == view_receipt(RECEIPT)
    assert body["tokens"] == {"before": view_tokens(BEFORE), "after": view_tokens(AFTER)}
    assert body["outlook"] == {"moved": 120, "cost_now": "0.0012", "saved_per_turn": None}


def test_a_plan_that_gains_nothing_has_neither_receipt_nor_outlook() -> None:
    body = view_plan("garden", Plan(receipt=None), committed=False)
    assert (body["receipt"], body["outlook"]) == (None, None)
    assert body["tokens"] == {
        "before": {"total": 1_000, "by_layer": dict(BEFORE.by_layer), "limit": 4_000},
        "after": None,
    }


def test_an_undo_names_the_receipts_that_it_voided() -> None:
    assert view_undo("garden", ("r1", "r2")) == {"conversation": "garden", "undone": ["r1", "r2"]}
