"""Receipts: which compactions an undo voids, and the stored names of the steps."""

import pytest

from lamella.core.log.receipts import STEP_ORDER, CompactionReceipt, SkippedStep, find_first_voided_index, make_receipt


@pytest.mark.parametrize(
    ("names", "receipt", "found"),
    [
        ([], None, None),
        (["r1"], None, 0),
        (["r1", "r2", "r3"], None, 2),
        (["r1", "r2", "r3"], "r1", 0),
        (["r1", "r2", "r3"], "r2", 1),
        (["r1", "r2", "r3"], "r4", None),
    ],
)
def test_undo_starts_at_named_or_last_receipt(names: list[str], receipt: str | None, found: int | None) -> None:
    assert find_first_voided_index(names, receipt) == found


def test_steps_have_stored_names_in_chain_order() -> None:
    assert [step.value for step in STEP_ORDER] == [
        "chitchat",
        "handle",
        "preview",
        "tool_results",
        "oldest_stages",
        "replies",
        "summary",
        "recent_stages",
        "digest",
        "last_reply",
        "expendable",
    ]


def receipt(*, since: str = "", parent: str = "m1") -> CompactionReceipt:
    return make_receipt(
        "chat", parent=parent, steps=(), skipped=(), tokens=(9, 5), target=6, automatic=True, since_message=since
    )


def test_receipt_id_depends_on_position_and_start() -> None:
    made = [receipt(), receipt(since="m0"), receipt(since="m2"), receipt(parent="m2")]
    assert len({one.id for one in made}) == 4
    assert receipt().id == receipt().id


def test_receipt_has_skipped_steps_and_totals() -> None:
    skipped = (SkippedStep(name=STEP_ORDER[0], why="nothing to take"),)
    made = make_receipt("chat", parent="m1", steps=(), skipped=skipped, tokens=(9, 5), target=6, automatic=False)
    assert (made.parent, made.skipped, made.automatic) == ("m1", skipped, False)
    assert (made.tokens_before, made.tokens_after, made.target) == (9, 5, 6)
