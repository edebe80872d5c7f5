"""Receipts as events: written down and read back exactly; what cannot be read says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.raw import parse_body
from tests.unit.steady import steady

from lamella.core.log.events.codec import read_event, write_receipt
from lamella.core.log.events.compaction import CompactionEvent, make_compaction, read_receipt
from lamella.core.log.events.hashes import named_hashes, retold_hashes
from lamella.core.log.receipt import Receipt, Skip, Step, StepName, make_receipt
from lamella.core.log.receipts import find_faulty_receipts
from lamella.core.log.records import Record, Written
from lamella.core.text.content import canonical_json, hash_text
from lamella.core.values import replace

AT = "2026-03-01T12:00:00Z"
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_tokens = st.integers(0, 10**9)
_told = st.builds(
    Step,
    name=st.sampled_from(StepName),
    removed=st.lists(_texts, max_size=3).map(tuple),
    text=_texts,
    content=_texts.filter(bool),
    tokens_before=_tokens,
    tokens_after=_tokens,
)
_silent = st.builds(
    Step,
    name=st.sampled_from(StepName),
    removed=st.lists(_texts, max_size=3).map(tuple),
    tokens_before=_tokens,
    tokens_after=_tokens,
)
_steps = _told | _silent
receipts = st.builds(
    Receipt,
    id=_texts,
    parent=_texts,
    steps=st.lists(_steps, max_size=4).map(tuple),
    skipped=st.lists(st.builds(Skip, name=st.sampled_from(StepName), why=_texts), max_size=2).map(tuple),
    tokens_before=_tokens,
    tokens_after=_tokens,
    target=_tokens,
    automatic=st.booleans(),
)


def read(record: Record) -> CompactionEvent:
    event = read_event(record)
    assert isinstance(event, CompactionEvent)
    return event


@steady
@given(receipts, st.none() | _texts)
def test_a_receipt_is_read_back_as_it_was_written(receipt: Receipt, before: str | None) -> None:
    written = write_receipt(receipt, at=AT, before=before)
    (record,) = written.records
    event = read(record)
    assert event == make_compaction(receipt, before=before)
    assert event.before == before
    assert read_receipt(event, written.contents) == receipt
    assert set(named_hashes(event)) == set(retold_hashes(event)) == set(record.contents) == set(written.contents)


def one() -> Receipt:
    step = Step(
        name=StepName.SUMMARY,
        removed=("m1", "m2"),
        text="They talked.",
        content="Talk.",
        tokens_before=90,
        tokens_after=40,
    )
    return make_receipt("chat", parent="m9", steps=(step,), skipped=(), tokens=(100, 40), target=50, automatic=True)


def test_texts_are_contents_and_not_part_of_the_event() -> None:
    written = write_receipt(one(), at=AT)
    assert "talk" not in written.records[0].body.lower()
    assert written.contents == {hash_text("They talked."): b"They talked.", hash_text("Talk."): b"Talk."}


def test_a_text_that_was_erased_is_none() -> None:
    (step,) = read_receipt(read(write_receipt(one(), at=AT).records[0]), {}).steps
    assert (step.text, step.content, step.removed) == (None, "", ("m1", "m2"))


def outlines(*gists: str) -> Receipt:
    return replace(one(), steps=(Step(name=StepName.REPLIES, removed=("m1", "m2"), gists=gists),))


def test_what_outlines_tell_is_written_down_beside_the_event() -> None:
    written = write_receipt(outlines("The pump.", "The hall."), at=AT)
    assert "pump" not in written.records[0].body
    (step,) = read_receipt(read(written.records[0]), written.contents).steps
    assert step.gists == ("The pump.", "The hall.")
    assert written.records[0].contents == tuple(written.contents)


@pytest.mark.parametrize("kept", [None, b"", b"[1]", b"nothing", b'["one"]'])
def test_outlines_whose_words_are_not_at_hand_have_none(kept: bytes | None) -> None:
    written = write_receipt(outlines("The pump.", "The hall."), at=AT)
    (name,) = written.contents
    (step,) = read_receipt(read(written.records[0]), {} if kept is None else {name: kept}).steps
    assert step.gists == ()


def test_a_receipt_of_before_tells_what_its_block_holds() -> None:
    block = "<stage_digest>\n<made_from>x</made_from>\n<content>\nThey talked.\n</content>\n</stage_digest>\n"
    written = write_receipt(replace(one(), steps=(replace(one().steps[0], text=block, content=""),)), at=AT)
    (step,) = read_receipt(read(written.records[0]), written.contents).steps
    assert (step.text, step.content) == (block, "They talked.")


def test_a_receipt_is_named_by_what_it_does_and_where() -> None:
    assert one().id == one().id
    steps = (replace(one().steps[0], text="They did not talk."),)
    changed = make_receipt("chat", parent="m9", steps=steps, skipped=(), tokens=(100, 40), target=50, automatic=True)
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
        {"before": 3},
        {"automatic": "yes"},
    ],
)
def test_a_damaged_receipt_is_told_from_a_sound_one(wrong: dict[str, object]) -> None:
    (record,) = write_receipt(one(), at=AT).records
    damaged = replace(record, body=canonical_json({**parse_body(record), **wrong}))
    with pytest.raises(ValueError, match=next(iter(wrong))):
        read_event(damaged)
    ((number, what),) = find_faulty_receipts([damaged], said=set(), contents={})
    assert (number, what[:15]) == (1, "cannot be read:")


def faults(written: Written, said: set[str]) -> list[tuple[int, str]]:
    return list(find_faulty_receipts(written.records, said=said, contents=written.contents))


def test_a_receipt_that_lists_a_text_it_does_not_name_is_faulty() -> None:
    written = write_receipt(one(), at=AT)
    (record,) = written.records
    said = {"m1", "m2", "m9"}
    assert faults(written, said) == []
    listed = replace(record, contents=(*record.contents, "sha256:more"))
    assert faults(replace(written, records=(record, listed)), said) == [
        (2, "names other texts than it lists: sha256:more")
    ]


def test_artifacts_that_a_receipt_made_smaller_are_no_messages() -> None:
    step = Step(name=StepName.PREVIEW, removed=("docs/a.md",))
    written = write_receipt(replace(one(), steps=(step,)), at=AT)
    assert faults(written, {"m9"}) == []
    assert faults(written, set()) == [(1, "names a message that was never said: m9")]
