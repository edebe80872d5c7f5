"""Compactions in an archive: one that could not be applied as it was made is refused, and its event is named."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.archive.markdown.chats import NAME, export_log, import_log, make_backend
from tests.unit.raw_events import parse_body

from lamella import Conversation, Note
from lamella.archive.markdown.archive import parse_archive, render_archive
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.events.kinds import EventKind
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import BadInputError
from lamella.ports import ConversationExport
from lamella.sources.open_sources import make_source_opener

WRONG = hash_text("never written")


class Telling:
    """A summariser that always tells the same."""

    def summarize(self, messages: object, *, max_tokens: int) -> str:
        return "- [1] The user asked for much."


@pytest.fixture
def compacted() -> ConversationExport:
    """A conversation whose oldest turns stand as a summary."""
    backend = make_backend()
    telling = replace(backend, adapters=replace(backend.adapters, summarizer=Telling()))
    conversation = Conversation.open(telling, NAME, {"compaction": {"steps": ["summary"]}})
    for number in range(8):
        conversation.ask(f"Question {number}?")
        conversation.reply(f"Answer {number}. " + "because " * 300)
    assert conversation.compact(0.001) is not None
    return export_log(backend)


def summary_of(chronicle: ConversationExport) -> tuple[int, Mapping[str, object]]:
    """The number and the body of its compaction."""
    found = [(n, one) for n, one in enumerate(chronicle.records, start=1) if one.kind is EventKind.COMPACTION]
    return found[0][0], parse_body(found[0][1])


def test_compaction_round_trips(compacted: ConversationExport) -> None:
    assert parse_archive(render_archive(compacted), sources=None) == compacted
    assert import_log(make_backend(), compacted) == "new"


def _other_message(text: str, chronicle: ConversationExport) -> str:
    removed = re.search(r'"removed":\["(\w+)"', text)
    assert removed
    return text.replace(f'"removed":["{removed[1]}"', '"removed":["0000"')


def _other_text(text: str, chronicle: ConversationExport) -> str:
    name = next(name for one in chronicle.records if one.kind is EventKind.COMPACTION for name in one.contents)
    return text.replace(f'"text":"{name}"', f'"text":"{WRONG}"')


def _other_parent(text: str, chronicle: ConversationExport) -> str:
    _, body = summary_of(chronicle)
    (line,) = (line for line in text.split("\n") if '"kind":"compaction"' in line)
    return text.replace(line, line.replace(f'"parent":"{body["parent"]}"', '"parent":"0000"'))


@pytest.mark.parametrize(
    ("tamper", "what"),
    [
        (lambda text, _: text.replace('"name":"summary"', '"name":"magic"'), "cannot be read"),
        (lambda text, _: re.sub(r'"removed":\[[^\]]*\]', '"removed":"all"', text), "Expected `array`"),
        (lambda text, _: re.sub(r'"steps":\[', '"steps":[3,', text), "Expected `object`"),
        (_other_message, "names a message that was never said: 0000"),
        (_other_parent, "names a message that was never said: 0000"),
        (_other_text, "names other texts than it lists: sha256:"),
    ],
)
def test_inapplicable_compaction_is_refused_by_event_number(
    compacted: ConversationExport, tamper: Callable[[str, ConversationExport], str], what: str
) -> None:
    text = render_archive(compacted)
    tampered = tamper(text, compacted)
    assert tampered != text
    number, _ = summary_of(compacted)
    with pytest.raises(BadInputError, match=f"(?i)event {number}\\b.*{re.escape(what)}") as caught:
        parse_archive(tampered, sources=None)
    assert "export the conversation again" in caught.value.hint


def test_summary_with_wrong_hash_is_refused(compacted: ConversationExport) -> None:
    text = render_archive(compacted).replace("asked for much.", "asked for more.")
    with pytest.raises(BadInputError, match="has the hash"):
        parse_archive(text, sources=None)


def test_verify_reports_same_damage_as_import(compacted: ConversationExport) -> None:
    number, body = summary_of(compacted)
    steps = body["steps"]
    assert isinstance(steps, list)
    wrong = compacted.records[number - 1].body.replace(steps[0]["removed"][0], "0000")
    records = list(compacted.records)
    records[number - 1] = replace(records[number - 1], body=wrong)
    backend = make_backend()
    conversations = ConversationRepository(backend.store, backend.clock)
    conversations.import_conversation(replace(compacted, records=tuple(records)))
    (damage,) = conversations.verify(NAME)
    assert (damage.location, damage.description) == (f"event {number}", "names a message that was never said: 0000")


def test_compaction_of_unanswered_question_survives_changed_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text of a", encoding="utf-8")
    backend = make_backend(tmp_path)
    conversation = Conversation.open(backend, NAME, {"compaction": {"steps": ["expendable"]}})
    for number in range(6):
        conversation.ask(f"Question {number}?", attach=[Note(path="a.md")] if number == 0 else [])
        conversation.reply(f"Answer {number}. " + "because " * 300)
    answer = conversation.turns()[1].reply
    assert answer is not None
    conversation.delete(answer.id)
    assert conversation.compact(0.001) is not None
    archived = render_archive(export_log(backend), sources=make_source_opener(tmp_path)())
    (tmp_path / "a.md").write_text("another text of a", encoding="utf-8")
    later = make_backend(tmp_path)
    assert import_log(later, parse_archive(archived, sources=make_source_opener(tmp_path)())) == "new"
    asked = [
        m.text.rsplit("\n")[-1] for m in Conversation.open(later, NAME, {}).ask("And now?").messages if m.role == "user"
    ]
    assert asked == ["Question 5?", "And now?"]
