"""Receipts in a line, and where one was undone."""

from lamella import CompactionReceipt
from lamella.cli.prompt_tables import format_compaction_marker, format_receipt
from lamella.conversation.log import CompactionMarker
from lamella.core.log.receipts import CompactionStep, CompactionStepName, SkippedStep


def step(name: CompactionStepName, *removed: str) -> CompactionStep:
    return CompactionStep(name=name, removed=removed, tokens_before=9, tokens_after=8)


def receipt(*steps: CompactionStep, skipped: tuple[SkippedStep, ...] = ()) -> CompactionReceipt:
    return CompactionReceipt(
        id="r1", parent="m1", steps=steps, skipped=skipped, tokens_before=12_000, tokens_after=3_400, target=4_000
    )


def test_receipt_lists_tokens_and_removals_by_step() -> None:
    taken = receipt(
        step(CompactionStepName.CHITCHAT, "m1", "m2"),
        step(CompactionStepName.PREVIEW, "a.md"),
        step(CompactionStepName.CHITCHAT, "m3"),
    )
    assert format_receipt(taken) == "12,000 → 3,400 tokens by chitchat 3, preview 1 (receipt r1)"


def test_receipt_lists_skipped_step_escaped() -> None:
    skipped = SkippedStep(name=CompactionStepName.SUMMARY, why="no\x1b[2J summariser")
    told = format_receipt(receipt(skipped=(skipped,)))
    assert told == "12,000 → 3,400 tokens by folding only (receipt r1; summary skipped: no\\x1b[2J summariser)"


def test_marker_describes_compaction_undone_one_and_undo() -> None:
    made = receipt(step(CompactionStepName.PREVIEW, "a.md"))
    told = f"compacted: {format_receipt(made)}"
    assert format_compaction_marker(CompactionMarker(message="m1", receipt=made)) == told
    assert (
        format_compaction_marker(CompactionMarker(message="m1", receipt=made, undone=True)) == f"{told}, undone later"
    )
    assert format_compaction_marker(CompactionMarker(message="m2", voided=("r1", "r2"))) == "undone: r1, r2"
