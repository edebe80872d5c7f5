"""Receipts: which compactions an undo voids, and the steps by the names that stores hold."""

import pytest

from lamella.core.log.receipt import STEP_ORDER, find_voided


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
def test_an_undo_begins_with_the_receipt_that_is_named_and_by_default_with_the_last(
    names: list[str], receipt: str | None, found: int | None
) -> None:
    assert find_voided(names, receipt) == found


def test_the_steps_have_the_names_that_stores_hold_in_the_order_of_the_chain() -> None:
    assert [step.value for step in STEP_ORDER] == [
        "chitchat",
        "handle",
        "preview",
        "tool_results",
        "oldest_stages",
        "replies",
        "summary",
        "recent_stages",
        "expendable",
    ]
