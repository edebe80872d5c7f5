"""Keeping conversations as wholes: taking out and in, searching, forking, verifying, erasing."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.conversation.backends import Failing, Ticking, make_chat
from tests.unit.pictures import png
from tests.unit.raw_events import write_raw

from lamella import Image, Note
from lamella.conversation.import_export import ConversationRepository, ImportOutcome
from lamella.core.log.events.kinds import EventBatch, EventKind
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.core.text.content import hash_bytes, hash_text
from lamella.errors import (
    ConflictError,
    ConversationErasedError,
    HistoryConflictError,
    InvalidOperationError,
    StoreCorruptedError,
)
from lamella.ports import Store, StoreProblem
from lamella.stores.memory import InMemoryStore
from lamella.stores.open_store import open_sqlite

AT = "2026-03-01T12:00:00Z"


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def keep(store: Store) -> ConversationRepository:
    return ConversationRepository(store, Ticking())


def say(store: Store, *texts: str) -> list[str]:
    """A conversation with a note, in which each text is answered with its capitals; the ids of its messages."""
    conversation = make_chat(store)
    for text in texts:
        conversation.ask(text, attach=[Note(path="a.md", text=f"Note on {text}.")])
        conversation.reply(text.upper())
    return [node.id for record in conversation.turns() for node in (record.message, record.reply) if node]


def test_exported_and_imported_conversation_is_equal(store: InMemoryStore) -> None:
    say(store, "one", "two")
    keep(store).rename("chat", "Title")
    export = keep(store).export_conversation("chat")
    other = InMemoryStore()
    assert keep(other).import_conversation(export) is ImportOutcome.NEW
    assert list(other.load("chat")) == list(store.load("chat"))
    assert [(one.title, one.event_count) for one in other.list_conversations()] == [("Title", 5)]
    assert keep(other).export_conversation("chat") == export
    assert make_chat(other).ask("three").envelope == make_chat(store).ask("three").envelope


def test_taking_in_again_extends_and_never_doubles(store: InMemoryStore) -> None:
    say(store, "one")
    early = keep(store).export_conversation("chat")
    other = InMemoryStore()
    assert keep(other).import_conversation(early) is ImportOutcome.NEW
    assert keep(other).import_conversation(early) is ImportOutcome.SAME
    say(store, "two")
    late = keep(store).export_conversation("chat")
    assert keep(other).import_conversation(late) is ImportOutcome.EXTENDED
    assert keep(other).import_conversation(early) is ImportOutcome.OLDER
    assert list(other.load("chat")) == list(store.load("chat"))
    assert list(keep(other).verify()) == []


def test_conversation_with_other_history_is_unchanged(store: InMemoryStore) -> None:
    say(store, "one")
    other = InMemoryStore()
    say(other, "two")
    before = list(other.load("chat"))
    with pytest.raises(HistoryConflictError, match="another history from event 1 on") as caught:
        keep(other).import_conversation(keep(store).export_conversation("chat"))
    assert "Delete one of the two" in caught.value.hint
    assert list(other.load("chat")) == before


def test_erased_artifact_stays_erased_after_import(store: InMemoryStore) -> None:
    say(store, "one")
    other = InMemoryStore()
    keep(other).import_conversation(keep(store).export_conversation("chat"))
    keep(store).erase_artifact("chat", "a.md")
    assert keep(other).import_conversation(keep(store).export_conversation("chat")) is ImportOutcome.EXTENDED
    assert other.read_contents("chat", [hash_text("Note on one.")]) == {}
    third = InMemoryStore()
    assert keep(third).import_conversation(keep(store).export_conversation("chat")) is ImportOutcome.NEW
    assert list(keep(third).verify_erased("chat")) == []


def test_erased_conversation_is_not_imported(store: InMemoryStore) -> None:
    say(store, "one")
    export = keep(store).export_conversation("chat")
    keep(store).erase("chat")
    with pytest.raises(ConversationErasedError):
        keep(store).import_conversation(export)


def test_missing_conversation_cannot_be_exported_or_erased(store: InMemoryStore) -> None:
    for act in (keep(store).load_log, keep(store).export_conversation, keep(store).erase):
        with pytest.raises(InvalidOperationError, match="no conversation 'nobody'") as caught:
            act("nobody")
        assert "`engine.chats()`" in caught.value.hint
    assert store.list_conversations() == []


def test_search_finds_messages_of_every_branch_whatever_their_case(store: InMemoryStore) -> None:
    names = say(store, "green apples", "pears")
    conversation = make_chat(store)
    conversation.edit(names[2], "Apple pie")
    hits = list(keep(store).search("apple"))
    assert [(hit.message, hit.role, hit.excerpt) for hit in hits] == [
        (names[0], MessageAuthor.USER, "green apples"),
        (names[1], MessageAuthor.REPLY, "GREEN APPLES"),
        (conversation.head, MessageAuthor.USER, "Apple pie"),
    ]
    assert [hit.message for hit in keep(store).search("PEARS")] == names[2:4]
    assert list(keep(store).search("cherry")) == []


def test_search_excerpt_shows_surrounding_words(store: InMemoryStore) -> None:
    make_chat(store).ask("ß" * 300 + "\n the NEEDLE stands\nhere " + "x" * 300)
    (hit,) = keep(store).search("needle")
    assert " the NEEDLE stands here " in hit.excerpt
    assert len(hit.excerpt) <= 60 + len("needle") + 60 + len("… " + " …")


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("Find the needle here.", "Find the needle here."),
        (f"{'straw ' * 20}needle {'straw ' * 20}", f"… {'straw ' * 10}needle {'straw ' * 9}straw …"),
        (f"{'s' * 90} needle {'t' * 90}", "… needle …"),
        (f"{'s' * 90}needle{'t' * 90}", f"… {'s' * 60}needle{'t' * 60} …"),
        (f"{'haystack ' * 9}needles", f"… {'haystack ' * 6}needles"),
        (f"needle\n\n{'haystack ' * 9}", f"needle {'haystack ' * 6}…"),
    ],
    ids=["whole", "between words", "words longer than the room", "one such word", "at the end", "over lines"],
)
def test_excerpt_is_cut_between_words_with_ellipsis(store: InMemoryStore, text: str, excerpt: str) -> None:
    make_chat(store).ask(text)
    (hit,) = keep(store).search("NEEDLE")
    assert hit.excerpt == excerpt


def test_search_does_not_find_erased_text(store: InMemoryStore) -> None:
    say(store, "apple")
    keep(store).erase("chat")
    assert list(keep(store).search("apple")) == []


def test_fork_continues_from_its_message(store: InMemoryStore) -> None:
    names = say(store, "one", "two")
    keep(store).fork("chat", names[1])
    assert make_chat(store).head == names[1]
    with pytest.raises(InvalidOperationError, match='has no such message: "nobody"'):
        keep(store).fork("chat", "nobody")


def test_rename_shows_in_lists_and_in_the_chat(store: InMemoryStore) -> None:
    say(store, "one")
    keep(store).rename("chat", "A title, with [brackets]")
    assert [listed.title for listed in keep(store).list_conversations()] == ["A title, with [brackets]"]
    assert make_chat(store).title == "A title, with [brackets]"


def test_verify_recomputes_every_id(store: InMemoryStore) -> None:
    names = say(store, "one")
    assert list(keep(store).verify()) == []
    false = write_raw(EventKind.REPLY, AT, id="invented", parent=names[0], text="x")
    store.append("chat", false, expected=2)
    assert list(keep(store).verify("chat")) == [
        StoreProblem(conversation="chat", location="message invented", description="its id does not match its text")
    ]


def test_verify_names_unreadable_event(store: InMemoryStore) -> None:
    body = {"id": "m", "parent": "", "text": "x", "attached": [{"kind": "note"}]}
    store.append("chat", write_raw(EventKind.MESSAGE, AT, **body), expected=0)
    (damage,) = keep(store).verify()
    assert (damage.location, "Event 1 of chat" in damage.description) == ("log", True)
    with pytest.raises(StoreCorruptedError, match="Event 1 of chat cannot be read"):
        keep(store).erase_artifact("chat", "a.md")


def test_verify_names_event_with_missing_target(store: InMemoryStore) -> None:
    say(store, "one")
    store.append("chat", write_raw(EventKind.FORK, AT, head="nobody"), expected=2)
    (damage,) = keep(store).verify()
    assert (damage.location, "Event 3 of chat" in damage.description) == ("log", True)


def test_verify_reports_damaged_events_not_their_followers(store: InMemoryStore) -> None:
    names = say(store, "one")
    bad = write_raw(EventKind.MESSAGE, AT, id="m", parent=names[-1])
    follows = write_raw(
        EventKind.REPLY,
        AT,
        id=compute_message_id("chat", parent="m", role=MessageAuthor.REPLY, text="yes"),
        parent="m",
        text="yes",
    )
    false = write_raw(EventKind.REPLY, AT, id="invented", parent="m", text="no")
    for version, batch in enumerate((bad, follows, bad, false, bad), start=2):
        store.append("chat", batch, expected=version)
    found = [(damage.location, damage.description.split(" cannot")[0]) for damage in keep(store).verify()]
    assert found == [
        ("log", "Event 3 of chat"),
        ("log", "Event 5 of chat"),
        ("message invented", "its id does not match its text"),
        ("log", "Event 7 of chat"),
    ]


def test_verify_limits_number_of_reported_events(store: InMemoryStore) -> None:
    for version in range(140):
        store.append("chat", write_raw(EventKind.MESSAGE, AT, id="m", parent=""), expected=version)
    found = list(keep(store).verify())
    assert len(found) == 101
    assert found[-1].description == "has 40 more damaged events"


@pytest.mark.parametrize(
    ("kind", "body", "at", "place"),
    [
        (EventKind.MESSAGE, {"parent": "", "text": "x", "carry_forward": "ful"}, AT, "log"),
        (EventKind.MESSAGE, {"parent": "", "text": "x", "system": {"bose": "B"}}, AT, "log"),
        (EventKind.MESSAGE, {"parent": "", "text": "x"}, "2026-1-16T", "message m"),
        (EventKind.REPLY, {"parent": "q", "text": "x", "calls": [{"model": 5}]}, AT, "log"),
    ],
)
def test_verify_reads_what_opening_reads(
    store: InMemoryStore, kind: EventKind, body: dict[str, object], *, at: str, place: str
) -> None:
    if kind is EventKind.REPLY:
        store.append("chat", write_raw(EventKind.MESSAGE, AT, id="q", parent="", text="q"), expected=0)
    store.append("chat", write_raw(kind, at, id="m", **body), expected=len(store.load("chat")))
    assert (place, True) in [(one.location, "cannot be read" in one.description) for one in keep(store).verify()]


def test_compaction_of_question_without_answer_is_no_damage(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    for number in range(5):
        conversation.ask(f"Question {number}: " + "word " * 20)
        conversation.reply(f"Answer {number}: " + "word " * 20)
    answer = conversation.turns()[1].reply
    assert answer is not None
    conversation.delete(answer.id)
    conversation.ask("And now?")
    conversation.reply("Now.")
    receipt = conversation.commit(conversation.plan(to=0.0001))
    log = FoldedLog("chat")
    log.extend(store.load("chat"))
    assert {name for step in receipt.steps for name in step.removed}.difference(log.nodes)
    assert list(ConversationRepository(store, Ticking()).verify(conversation.id)) == []


def test_verify_accepts_tombstone(store: InMemoryStore) -> None:
    say(store, "one")
    keep(store).erase("chat")
    assert list(keep(store).verify("chat")) == []
    assert list(keep(store).verify()) == []
    assert list(keep(store).verify_erased("chat")) == []


def test_verify_erased_reports_unerased_conversation(store: InMemoryStore) -> None:
    say(store, "one")
    for name in ("chat", "nobody"):
        (damage,) = keep(store).verify_erased(name)
        assert damage.description == "was not erased from this store"


def test_erasing_artifact_removes_all_versions_and_images(store: InMemoryStore) -> None:
    say(store, "one", "two")
    make_chat(store).ask("three", attach=[Image(data=png(1, 2)), Note(path="b.md", text="Bear.")])
    assert keep(store).erase_artifact("chat", "a.md") == 2
    assert keep(store).erase_artifact("chat", hash_bytes(png(1, 2))) == 1
    assert store.read_contents("chat", [hash_text("Note on one."), hash_text("Bear.")]) == {
        hash_text("Bear."): b"Bear."
    }
    assert list(keep(store).verify()) == []
    assert list(keep(store).verify_erased("chat")) == []


def test_other_artifact_of_same_text_is_erased_with_warning(store: InMemoryStore) -> None:
    conversation = make_chat(store, layout="in_place")
    conversation.ask("one", attach=[Note(path="a.md", text="Apple."), Note(path="copy of a.md", text="Apple.")])
    keep(store).erase_artifact("chat", "a.md")
    assert make_chat(store).regenerate().envelope.warnings == (
        "a.md was erased and is left out.",
        "copy of a.md was erased and is left out.",
    )


def test_artifact_that_never_was_cannot_be_erased(store: InMemoryStore) -> None:
    say(store, "one")
    with pytest.raises(InvalidOperationError, match=r"never had an artifact 'b\.md'") as caught:
        keep(store).erase_artifact("chat", "b.md")
    assert caught.value.hint == "See its attachments with `chat.turns()`."


def test_content_reattached_after_erasure_is_no_remainder(store: InMemoryStore) -> None:
    say(store, "one")
    keep(store).erase_artifact("chat", "a.md")
    make_chat(store).ask("again", attach=[Note(path="a.md", text="Note on one.")])
    keep(store).erase_artifact("chat", "a.md")
    make_chat(store).ask("again", attach=[Note(path="c.md", text="Note on one.")])
    (damage,) = keep(store).verify_erased("chat")
    assert damage.description == "everything erased was attached again since"
    assert list(keep(store).verify()) == []


class Overtaken(Failing):
    """A store that someone else writes to just before an erasure."""

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        self.append(conversation_key, write_raw(EventKind.RENAME, AT, title="T"), expected=expected)
        return super().erase_contents(conversation_key, hashes, batch, expected=expected)


def test_erasure_after_concurrent_append_changes_nothing(store: InMemoryStore) -> None:
    say(store, "one")
    with pytest.raises(ConflictError):
        keep(Overtaken(store)).erase_artifact("chat", "a.md")
    assert store.read_contents("chat", [hash_text("Note on one.")]) != {}
    assert keep(store).erase_artifact("chat", "a.md") == 1


def plant(path: Path, sql: str, *values: object) -> None:
    """Write to a store's file behind its back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


def test_reappeared_erased_artifact_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = open_sqlite(str(path))
    say(store, "one")
    keep(store).erase_artifact("chat", "a.md")
    assert list(keep(store).verify_erased("chat")) == []
    name = hash_text("Note on one.")
    plant(path, "INSERT INTO contents (hash, data) VALUES (?, ?)", name, b"Note on one.")
    (stray,) = keep(store).verify_erased("chat")
    assert (stray.location, stray.description) == (f"content {name}", "held by no conversation")
    plant(path, "INSERT INTO holdings (conversation, hash) VALUES ('chat', ?)", name)
    (left,) = keep(store).verify_erased("chat")
    assert (left.conversation, left.location, left.description) == ("chat", f"content {name}", "left after erasure")
    store.close()
