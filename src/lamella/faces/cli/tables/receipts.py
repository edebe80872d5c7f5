"""Receipts in a line: what a compaction did, and that it was undone."""

from collections import Counter

from lamella import Receipt
from lamella.engine.keeping.marks import CompactionMark
from lamella.faces.cli.terminal.lines import show_line


def tell_receipt(receipt: Receipt) -> str:
    """A receipt in a line: its size before and after, and how much each step took out."""
    taken: Counter[str] = Counter()
    for step in receipt.steps:
        taken[step.name.value] += len(step.removed)
    steps = ", ".join(f"{name} {number:,}" for name, number in taken.items()) or "folding alone"
    skipped = "".join(f"; {one.name} skipped: {show_line(one.why)}" for one in receipt.skipped)
    tokens = f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens"
    return f"{tokens} by {steps} (receipt {receipt.id}{skipped})"


def tell_mark(mark: CompactionMark) -> str:
    """What happened after a message, to be shown below it."""
    if mark.receipt is None:
        return f"undone: {', '.join(mark.voided)}"
    return f"compacted: {tell_receipt(mark.receipt)}{', undone later' if mark.undone else ''}"
