"""Receipts as events: written and read back exactly; unreadable ones are reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady
from tests.unit.raw_events import parse_body

from lamella.core.log.branch import iter_invalid_receipts
from lamella.core.log.events.codec import build_compaction_batch, decode_event
from lamella.core.log.events.compaction import CompactionEvent, make_compaction_event, read_receipt
from lamella.core.log.events.kinds import EventBatch, EventRecord, referenced_content_hashes, summary_content_hashes
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName, SkippedStep, make_receipt
from lamella.core.text.content import canonical_json, hash_text
from lamella.core.values import replace

AT = "2026-03-01T12:00:00Z"
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_tokens = st.integers(0, 10**9)
_told = st.builds(
    CompactionStep,
    name=st.sampled_from(CompactionStepName),
    removed=st.lists(_texts, max_size=3).map(tuple),
    text=_texts,
    content=_texts.filter(bool),
    tokens_before=_tokens,
    tokens_after=_tokens,
)
_silent = st.builds(
    CompactionStep,
    name=st.sampled_from(CompactionStepName),
    removed=st.lists(_texts, max_size=3).map(tuple),
    tokens_before=_tokens,
    tokens_after=_tokens,
)
_steps = _told | _silent
receipts = st.builds(
    CompactionReceipt,
    id=_texts,
    parent=_texts,
    steps=st.lists(_steps, max_size=4).map(tuple),
    skipped=st.lists(st.builds(SkippedStep, name=st.sampled_from(CompactionStepName), why=_texts), max_size=2).map(
        tuple
    ),
    tokens_before=_tokens,
    tokens_after=_tokens,
    target=_tokens,
    automatic=st.booleans(),
)


def read(record: EventRecord) -> CompactionEvent:
    event = decode_event(record)
    assert isinstance(event, CompactionEvent)
    return event


@steady
@given(receipts, st.none() | _texts)
def test_receipt_round_trips(receipt: CompactionReceipt, before: str | None) -> None:
    batch = build_compaction_batch(receipt, timestamp=AT, resent_message=before)
    (record,) = batch.records
    event = read(record)
    assert event == make_compaction_event(receipt, resent_message=before)
    assert event.before == before
    assert read_receipt(event, batch.contents) == receipt
    assert (
        set(referenced_content_hashes(event))
        == set(summary_content_hashes(event))
        == set(record.contents)
        == set(batch.contents)
    )


def one() -> CompactionReceipt:
    step = CompactionStep(
        name=CompactionStepName.SUMMARY,
        removed=("m1", "m2"),
        text="They talked.",
        content="Talk.",
        tokens_before=90,
        tokens_after=40,
    )
    return make_receipt("chat", parent="m9", steps=(step,), skipped=(), tokens=(100, 40), target=50, automatic=True)


def test_texts_are_contents_and_not_part_of_the_event() -> None:
    batch = build_compaction_batch(one(), timestamp=AT)
    assert "talk" not in batch.records[0].body.lower()
    assert batch.contents == {hash_text("They talked."): b"They talked.", hash_text("Talk."): b"Talk."}


def test_erased_text_of_receipt_is_none() -> None:
    (step,) = read_receipt(read(build_compaction_batch(one(), timestamp=AT).records[0]), {}).steps
    assert (step.text, step.content, step.removed) == (None, "", ("m1", "m2"))


def outlines(*gists: str) -> CompactionReceipt:
    return replace(
        one(), steps=(CompactionStep(name=CompactionStepName.REPLIES, removed=("m1", "m2"), outlines=gists),)
    )


def test_outlines_are_stored_as_contents() -> None:
    batch = build_compaction_batch(outlines("The pump.", "The hall."), timestamp=AT)
    assert "pump" not in batch.records[0].body
    (step,) = read_receipt(read(batch.records[0]), batch.contents).steps
    assert step.outlines == ("The pump.", "The hall.")
    assert batch.records[0].contents == tuple(batch.contents)


@pytest.mark.parametrize("kept", [None, b"", b"[1]", b"nothing", b'["one"]'])
def test_outlines_without_contents_are_empty(kept: bytes | None) -> None:
    batch = build_compaction_batch(outlines("The pump.", "The hall."), timestamp=AT)
    (name,) = batch.contents
    (step,) = read_receipt(read(batch.records[0]), {} if kept is None else {name: kept}).steps
    assert step.outlines == ()


def test_old_receipt_reads_content_from_block() -> None:
    block = "<stage_digest>\n<made_from>x</made_from>\n<content>\nThey talked.\n</content>\n</stage_digest>\n"
    batch = build_compaction_batch(
        replace(one(), steps=(replace(one().steps[0], text=block, content=""),)), timestamp=AT
    )
    (step,) = read_receipt(read(batch.records[0]), batch.contents).steps
    assert (step.text, step.content) == (block, "They talked.")


def test_receipt_id_depends_on_effect_and_position() -> None:
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
def test_damaged_receipt_is_detected(wrong: dict[str, object]) -> None:
    (record,) = build_compaction_batch(one(), timestamp=AT).records
    damaged = replace(record, body=canonical_json({**parse_body(record), **wrong}))
    with pytest.raises(ValueError, match=next(iter(wrong))):
        decode_event(damaged)
    ((number, what),) = iter_invalid_receipts([damaged], message_ids=set(), contents={})
    assert (number, what[:15]) == (1, "cannot be read:")


def faults(written: EventBatch, said: set[str]) -> list[tuple[int, str]]:
    return list(iter_invalid_receipts(written.records, message_ids=said, contents=written.contents))


def test_receipt_with_unnamed_content_is_faulty() -> None:
    batch = build_compaction_batch(one(), timestamp=AT)
    (record,) = batch.records
    said = {"m1", "m2", "m9"}
    assert faults(batch, said) == []
    listed = replace(record, contents=(*record.contents, "sha256:more"))
    assert faults(replace(batch, records=(record, listed)), said) == [
        (2, "names other texts than it lists: sha256:more")
    ]


def test_shortened_artifacts_of_receipt_are_not_messages() -> None:
    step = CompactionStep(name=CompactionStepName.PREVIEW, removed=("docs/a.md",))
    batch = build_compaction_batch(replace(one(), steps=(step,)), timestamp=AT)
    assert faults(batch, {"m9"}) == []
    assert faults(batch, set()) == [(1, "names a message that was never said: m9")]
