"""Receipts as they are printed: what a compaction did, as data and in a line."""

from collections import Counter

from lamella.core.log.receipt import Receipt
from lamella.faces.cli.lines import show_line


def receipt_body(receipt: Receipt) -> dict[str, object]:
    """A receipt, in the names of docs/replay.md."""
    return {
        "id": receipt.id,
        "parent": receipt.parent,
        "steps": [
            {
                "name": step.name.value,
                "removed": list(step.removed),
                "tokens_before": step.tokens_before,
                "tokens_after": step.tokens_after,
            }
            for step in receipt.steps
        ],
        "skipped": [{"name": skipped.name.value, "why": skipped.why} for skipped in receipt.skipped],
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "target": receipt.target,
        "automatic": receipt.automatic,
    }


def tell_receipt(receipt: Receipt) -> str:
    """A receipt in a line: its size before and after, and how much each step took out."""
    taken: Counter[str] = Counter()
    for step in receipt.steps:
        taken[step.name.value] += len(step.removed)
    steps = ", ".join(f"{name} {number:,}" for name, number in taken.items()) or "folding alone"
    skipped = "".join(f"; {one.name} skipped: {show_line(one.why)}" for one in receipt.skipped)
    tokens = f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens"
    return f"{tokens} by {steps} (receipt {receipt.id}{skipped})"
