"""The printed compaction: what it removes, what stays, and what it saves."""

from decimal import Decimal

import pytest

from lamella import CompactionReceipt
from lamella.cli import compaction_tables as compaction
from lamella.cli.compaction_tables import half_of_current_share, print_compaction
from lamella.conversation.compaction import CompactionProposal
from lamella.core.ledger.entry import CompactionCostEstimate
from lamella.core.log.receipts import CompactionStep, CompactionStepName
from lamella.core.prompt.envelope import PromptTokenCounts

BEFORE = PromptTokenCounts(total=1_000, by_layer={"L2_PREVIOUS": 900, "L4_STRIP": 100, "L5_USER": 0}, limit=4_000)
AFTER = PromptTokenCounts(total=400, by_layer={"L2_PREVIOUS": 300, "L4_STRIP": 100, "L5_USER": 0}, limit=4_000)
STEPS = (
    CompactionStep(name=CompactionStepName.CHITCHAT, removed=("m1",), tokens_before=950, tokens_after=900),
    CompactionStep(
        name=CompactionStepName.PREVIEW, removed=("a.md", "b\x1b.md", "c.md"), tokens_before=900, tokens_after=400
    ),
)


def planned(outlook: CompactionCostEstimate | None = None) -> CompactionProposal:
    receipt = CompactionReceipt(id="r1", parent="m1", steps=STEPS, tokens_before=1_000, tokens_after=400, target=500)
    return CompactionProposal(receipt=receipt, target_tokens=500, before=BEFORE, after=AFTER, cost_estimate=outlook)


def test_attachment_steps_are_compaction_steps() -> None:
    assert set(compaction._ATTACHMENT_STEPS) <= set(CompactionStepName)


def test_plan_shows_layers_steps_and_savings(capsys: pytest.CaptureFixture[str]) -> None:
    outlook = CompactionCostEstimate(changed_tokens=1_200, cost_now=Decimal("0.0020"), saved_per_turn=Decimal("0.001"))
    print_compaction("garden", planned(outlook))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "garden  1,000 → 400 of 4,000 tokens  target 500  █ kept  ░ removed"
    bars = {name: line for line in lines for name in BEFORE.by_layer if line.startswith(f"  {name}")}
    assert list(bars) == ["L2_PREVIOUS", "L4_STRIP"]
    assert (bars["L2_PREVIOUS"].count("█"), bars["L2_PREVIOUS"].count("░")) == (10, 18)
    assert any(line.startswith("  (fold)          1,000 → 950") for line in lines)
    assert "  chitchat        950 → 900           1 message" in lines
    assert "  preview         900 → 400           a.md, b\\x1b.md and 1 more" in lines
    assert (
        "1,200 cached tokens will be sent again. The next request costs $0.002 more, each later one $0.001 less."
        in lines
    )
    assert lines[-1].startswith("Preview only.")


def test_committed_compaction_says_how_to_undo(capsys: pytest.CaptureFixture[str]) -> None:
    print_compaction(
        "garden",
        planned(CompactionCostEstimate(changed_tokens=0, cost_now=None, saved_per_turn=None)),
        undo_command="/undo",
    )
    lines = capsys.readouterr().out.splitlines()
    assert "0 cached tokens will be sent again. No price known for this model." in lines
    assert lines[-1] == "Compacted (receipt r1). To undo: /undo"


def test_lower_target_is_half_of_next_request() -> None:
    assert half_of_current_share(planned()) == 0.125
