"""Receipts: which compactions an undo voids, and the steps by the names that stores hold."""

import pytest

from lamella.core.log.receipts import STEP_ORDER, CompactionReceipt, SkippedStep, first_voided_index, make_receipt


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
    assert first_voided_index(names, receipt) == found


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
        "digest",
        "last_reply",
        "expendable",
    ]


def receipt(*, since: str = "", parent: str = "m1") -> CompactionReceipt:
    return make_receipt(
        "chat", parent=parent, steps=(), skipped=(), tokens=(9, 5), target=6, automatic=True, since_message=since
    )


def test_a_receipt_is_named_by_where_it_stands_and_since_when() -> None:
    made = [receipt(), receipt(since="m0"), receipt(since="m2"), receipt(parent="m2")]
    assert len({one.id for one in made}) == 4
    assert receipt().id == receipt().id


def test_a_receipt_has_what_was_skipped_and_what_it_came_down_to() -> None:
    skipped = (SkippedStep(name=STEP_ORDER[0], why="nothing to take"),)
    made = make_receipt("chat", parent="m1", steps=(), skipped=skipped, tokens=(9, 5), target=6, automatic=False)
    assert (made.parent, made.skipped, made.automatic) == ("m1", skipped, False)
    assert (made.tokens_before, made.tokens_after, made.target) == (9, 5, 6)
