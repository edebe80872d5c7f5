"""Receipts as events: written down and read back exactly; what cannot be read says so."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.steady import steady

from lamella.core.log.branch import read_receipts
from lamella.core.log.receipt import Cut, Receipt, Skipped, Step, StepName, make_receipt
from lamella.core.log.receipts import find_faulty_receipts, read_receipt, receipt_hashes, write_receipt
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import StoreDamagedError

AT = "2026-03-01T12:00:00Z"
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_tokens = st.integers(0, 10**9)
_steps = st.builds(
    Step,
    cut=st.builds(
        Cut,
        name=st.sampled_from(StepName),
        removed=st.lists(_texts, max_size=3).map(tuple),
        text=st.none() | _texts,
    ),
    tokens_before=_tokens,
    tokens_after=_tokens,
)
receipts = st.builds(
    Receipt,
    id=_texts,
    parent=_texts,
    steps=st.lists(_steps, max_size=4).map(tuple),
    skipped=st.lists(st.builds(Skipped, name=st.sampled_from(StepName), why=_texts), max_size=2).map(tuple),
    tokens_before=_tokens,
    tokens_after=_tokens,
    target=_tokens,
    automatic=st.booleans(),
)


@steady
@given(receipts)
def test_a_receipt_is_read_back_as_it_was_written(receipt: Receipt) -> None:
    written = write_receipt(receipt, at=AT)
    (record,) = written.records
    assert read_receipt(json.loads(record.body), written.contents) == receipt
    assert set(record.contents) == set(written.contents)
    assert set(receipt_hashes([json.loads(record.body)])) == set(written.contents)


def one() -> Receipt:
    cut = Cut(name=StepName.SUMMARY, removed=("m1", "m2"), text="They talked.")
    return make_receipt(
        "chat",
        parent="m9",
        steps=(Step(cut=cut, tokens_before=90, tokens_after=40),),
        skipped=(),
        tokens=(100, 40),
        target=50,
        automatic=True,
    )


def test_texts_are_contents_and_not_part_of_the_event() -> None:
    written = write_receipt(one(), at=AT)
    assert "They talked." not in written.records[0].body
    assert written.contents == {hash_text("They talked."): b"They talked."}


def test_a_text_that_was_erased_is_none() -> None:
    (record,) = write_receipt(one(), at=AT).records
    (step,) = read_receipt(json.loads(record.body), {}).steps
    assert step.cut.text is None
    assert step.removed == ("m1", "m2")


def test_a_receipt_is_named_by_what_it_does_and_where() -> None:
    assert one().id == one().id
    other = replace(one().steps[0].cut, text="They did not talk.")
    changed = make_receipt(
        "chat",
        parent="m9",
        steps=(replace(one().steps[0], cut=other),),
        skipped=(),
        tokens=(100, 40),
        target=50,
        automatic=True,
    )
    assert changed.id != one().id


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": "none"},
        {"steps": [3]},
        {"steps": [{"name": "magic", "removed": [], "tokens": [1, 2]}]},
        {"steps": [{"name": "summary", "removed": [3], "tokens": [1, 2]}]},
        {"tokens": ["many", 2]},
        {"tokens": [1]},
        {"skipped": [["summary"]]},
        {"target": None},
        {"id": 3},
    ],
)
def test_a_damaged_receipt_is_told_from_a_sound_one(wrong: dict[str, object]) -> None:
    body = {**json.loads(write_receipt(one(), at=AT).records[0].body), **wrong}
    with pytest.raises(StoreDamagedError, match="A compaction cannot be read"):
        read_receipts([body], {})


def test_a_receipt_that_lists_a_text_it_does_not_name_is_faulty() -> None:
    written = write_receipt(one(), at=AT)
    (record,) = written.records
    said = {"m1", "m2", "m9"}
    assert list(find_faulty_receipts([record], said=said, contents=written.contents)) == []
    listed = replace(record, contents=(*record.contents, "sha256:more"))
    assert list(find_faulty_receipts([record, listed], said=said, contents=written.contents)) == [
        (2, "names other texts than it lists: sha256:more")
    ]


def test_artifacts_that_a_receipt_made_smaller_are_no_messages() -> None:
    cut = Cut(name=StepName.PREVIEW, removed=("docs/a.md",))
    (record,) = write_receipt(replace(one(), steps=(replace(one().steps[0], cut=cut),)), at=AT).records
    assert list(find_faulty_receipts([record], said={"m9"}, contents={})) == []
    assert list(find_faulty_receipts([record], said=set(), contents={})) == [
        (1, "names a message that was never said: m9")
    ]
