"""Receipts in a line, and where one was undone."""

from lamella import Receipt
from lamella.core.log.receipt import Skip, Step, StepName
from lamella.engine.keeping.marks import CompactionMark
from lamella.faces.cli.tables.receipts import tell_mark, tell_receipt


def step(name: StepName, *removed: str) -> Step:
    return Step(name=name, removed=removed, tokens_before=9, tokens_after=8)


def receipt(*steps: Step, skipped: tuple[Skip, ...] = ()) -> Receipt:
    return Receipt(
        id="r1", parent="m1", steps=steps, skipped=skipped, tokens_before=12_000, tokens_after=3_400, target=4_000
    )


def test_a_receipt_tells_its_tokens_and_how_much_each_step_took_out_in_all() -> None:
    taken = receipt(step(StepName.CHITCHAT, "m1", "m2"), step(StepName.PREVIEW, "a.md"), step(StepName.CHITCHAT, "m3"))
    assert tell_receipt(taken) == "12,000 → 3,400 tokens by chitchat 3, preview 1 (receipt r1)"


def test_a_receipt_tells_which_step_was_skipped_and_cannot_act_on_a_terminal() -> None:
    skipped = Skip(name=StepName.SUMMARY, why="no\x1b[2J summariser")
    told = tell_receipt(receipt(skipped=(skipped,)))
    assert told == "12,000 → 3,400 tokens by folding alone (receipt r1; summary skipped: no\\x1b[2J summariser)"


def test_a_mark_tells_of_a_compaction_of_one_that_was_undone_and_of_an_undo() -> None:
    made = receipt(step(StepName.PREVIEW, "a.md"))
    told = f"compacted: {tell_receipt(made)}"
    assert tell_mark(CompactionMark(message="m1", receipt=made)) == told
    assert tell_mark(CompactionMark(message="m1", receipt=made, undone=True)) == f"{told}, undone later"
    assert tell_mark(CompactionMark(message="m2", voided=("r1", "r2"))) == "undone: r1, r2"
