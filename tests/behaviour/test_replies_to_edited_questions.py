"""Questions that were asked otherwise since: every reply stays one to the question as it was asked for it."""

import pytest
from tests.unit.core.log.log_writer import CHAT, Scribe, check, texts

from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.branch import branch_content_hashes, read_turns
from lamella.core.log.events.codec import build_erasure_batch
from lamella.core.log.events.kinds import DeleteEvent, ForkEvent, SwitchEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import make_snapshot, restore_log
from lamella.core.log.turn import SystemParts, TurnSettings


@pytest.fixture
def scribe() -> Scribe:
    return Scribe()


def ask_two(scribe: Scribe) -> tuple[str, str, str]:
    """A question that the model a answers, then b: its id, and those of both replies."""
    question = scribe.ask("q", model="a")
    one = scribe.reply("one")
    scribe.do(SwitchEvent(head=question))
    scribe.ask("q", edits=question, model="b")
    return question, one, scribe.reply("two")


def models(log: FoldedLog, head: str | None = None) -> list[str | None]:
    records = log.branch_records(head)
    return [turn.model for turn in read_turns(records, {}, defaults=TurnSettings())]


def test_each_reply_has_its_model(scribe: Scribe) -> None:
    _, one, two = ask_two(scribe)
    assert (models(scribe.log, one), models(scribe.log, two)) == (["a"], ["b"])
    check(scribe)


def test_follow_up_uses_settings_of_its_reply(scribe: Scribe) -> None:
    question, one, _ = ask_two(scribe)
    scribe.do(SwitchEvent(head=one))
    later = scribe.ask("later")
    scribe.do(ForkEvent(head=question))
    scribe.ask("q", edits=question, model="c")
    scribe.reply("three")
    assert models(scribe.log, later) == ["a", None]
    assert models(scribe.log) == ["c"]
    check(scribe)


@pytest.mark.parametrize(("reply", "model"), [(0, "a"), (1, "b")])
def test_regenerated_question_uses_settings_of_branch(scribe: Scribe, reply: int, model: str) -> None:
    question, *replies = ask_two(scribe)
    scribe.do(SwitchEvent(head=replies[reply]))
    scribe.do(SwitchEvent(head=question))
    assert models(scribe.log) == [model]
    found = scribe.log.find_question(question)
    assert found is not None
    assert found.question_event is not None
    assert found.question_event.model == model
    three = scribe.reply("three")
    scribe.do(SwitchEvent(head=replies[1 - reply]))
    assert models(scribe.log, three) == [model]
    check(scribe)


def test_question_of_deleted_answer_keeps_its_settings(scribe: Scribe) -> None:
    _, one, _ = ask_two(scribe)
    scribe.do(SwitchEvent(head=one))
    scribe.do(DeleteEvent(target=one))
    assert (texts(scribe.log), models(scribe.log)) == (["q"], ["a"])
    check(scribe)


def test_question_moved_up_keeps_its_settings(scribe: Scribe) -> None:
    first = scribe.ask("first", model="z")
    scribe.reply("yes")
    _, one, two = ask_two(scribe)
    for head in (two, one):
        scribe.do(SwitchEvent(head=head))
        scribe.do(DeleteEvent(target=first))
    assert (texts(scribe.log), models(scribe.log)) == (["q", "one"], ["a"])
    (other,) = [head for head in scribe.log.list_branch_heads() if texts(scribe.log, head) == ["q", "two"]]
    assert models(scribe.log, other) == ["b"]
    check(scribe)


@pytest.mark.parametrize(("followed", "model"), [(False, "b"), (True, "a")])
def test_equal_answer_of_other_model_is_attributed_to_it_unless_continued(
    scribe: Scribe, *, followed: bool, model: str
) -> None:
    question, one, two = ask_two(scribe)
    if followed:
        scribe.do(SwitchEvent(head=one))
        scribe.ask("later")
        scribe.do(SwitchEvent(head=two))
    scribe.do(SwitchEvent(head=question))
    assert scribe.reply("one") == one
    assert models(scribe.log) == [model]
    check(scribe)


def test_unknown_id_and_reply_id_are_not_questions(scribe: Scribe) -> None:
    _, one, _ = ask_two(scribe)
    assert scribe.log.find_question("nobody") is None
    assert scribe.log.find_question(one) is None


def test_erasure_applies_to_earlier_versions_of_question(scribe: Scribe) -> None:
    note = make_artifact(ArtifactKind.NOTE, text="A", source=ArtifactSource(path="a.md"))
    parts = SystemParts(base="B", instructions="A", typed_instructions="{a.md}", inlined=(note,))
    question = scribe.ask("q", system=parts)
    one = scribe.reply("one")
    scribe.do(SwitchEvent(head=question))
    scribe.ask("q", edits=question)
    scribe.reply("two")
    hashes = branch_content_hashes(scribe.log.branch_records(one))
    assert note.hash in hashes
    scribe.write(build_erasure_batch("a.md", hashes, timestamp="2026-03-01T12:00:00Z"))
    (record,) = scribe.log.branch_records(one)
    assert set(hashes) <= set(record.message.erased)
    check(scribe)


def test_snapshot_stores_question_settings(scribe: Scribe) -> None:
    _, one, _ = ask_two(scribe)
    early = FoldedLog(CHAT)
    early.extend(scribe.records[:2])
    log, joined = restore_log([make_snapshot(early, after=0), make_snapshot(scribe.log, after=2)], FoldedLog(CHAT))
    assert (log, len(joined)) == (scribe.log, 2)
    assert models(log, one) == ["a"]
