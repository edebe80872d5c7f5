"""A compaction for people: what goes, what stays, and what it brings."""

from decimal import Decimal

import pytest

from lamella import Receipt
from lamella.core.ledger.outlook import Outlook
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.envelope import TokenCounts
from lamella.engine.dialogue.proposal import Proposal
from lamella.faces.cli.tables import compaction
from lamella.faces.cli.tables.compaction import lower_share, print_planned

BEFORE = TokenCounts(total=1_000, by_layer={"L2_PREVIOUS": 900, "L4_STRIP": 100, "L5_USER": 0}, limit=4_000)
AFTER = TokenCounts(total=400, by_layer={"L2_PREVIOUS": 300, "L4_STRIP": 100, "L5_USER": 0}, limit=4_000)
STEPS = (
    Step(name=StepName.CHITCHAT, removed=("m1",), tokens_before=950, tokens_after=900),
    Step(name=StepName.PREVIEW, removed=("a.md", "b\x1b.md", "c.md"), tokens_before=900, tokens_after=400),
)


def planned(outlook: Outlook | None = None) -> Proposal:
    receipt = Receipt(id="r1", parent="m1", steps=STEPS, tokens_before=1_000, tokens_after=400, target=500)
    return Proposal(receipt=receipt, goal=500, before=BEFORE, after=AFTER, outlook=outlook)


def test_steps_that_take_out_what_has_a_name_are_steps_of_the_chain() -> None:
    assert set(compaction._NAMED) <= set(StepName)


def test_a_plan_shows_layers_steps_and_what_it_brings(capsys: pytest.CaptureFixture[str]) -> None:
    outlook = Outlook(moved=1_200, cost_now=Decimal("0.0020"), saved_per_turn=Decimal("0.001"))
    print_planned("garden", planned(outlook))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "garden  1,000 → 400 of 4,000 tokens  aimed at 500  █ stays  ░ goes"
    bars = {name: line for line in lines for name in BEFORE.by_layer if line.startswith(f"  {name}")}
    assert list(bars) == ["L2_PREVIOUS", "L4_STRIP"]
    assert (bars["L2_PREVIOUS"].count("█"), bars["L2_PREVIOUS"].count("░")) == (10, 18)
    assert any(line.startswith("  (fold)          1,000 → 950") for line in lines)
    assert "  chitchat        950 → 900           1 message" in lines
    assert "  preview         900 → 400           a.md, b\\x1b.md and 1 more" in lines
    assert "1,200 cached tokens move: the next request costs $0.002 more, each later one $0.001 less." in lines
    assert lines[-1].startswith("This is a plan; nothing has changed.")


def test_what_was_committed_says_how_to_take_it_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_planned("garden", planned(Outlook(moved=0, cost_now=None, saved_per_turn=None)), undo="/undo")
    lines = capsys.readouterr().out.splitlines()
    assert "0 cached tokens move; no price is known." in lines
    assert lines[-1] == "Committed as r1. To take it back: /undo"


def test_a_lower_share_is_half_of_what_the_next_request_takes() -> None:
    assert lower_share(planned()) == 0.125
