"""A conversation in a store: what each deed writes, what the next turn is then compared with, and when epochs begin."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conversation.backends import Failing, Ticking, make_backend, make_chat
from tests.unit.pictures import png
from tests.unit.raw_events import write_raw
from tests.unit.rendered import attached, forms, library, sent

from lamella import ActiveNote, Image, Note, Selection, Tool, ToolResult, Turn, Url
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.turn import TurnRequest
from lamella.core.log.events.kinds import EventKind
from lamella.core.log.turn_records import TurnRecord
from lamella.core.prompt.layers.model import LayerId
from lamella.errors import (
    BadInputError,
    ConflictError,
    ContextBudgetExceededError,
    ConversationErasedError,
    InvalidOperationError,
    ReplyOnOtherBranchError,
    SettingError,
    StoreCorruptedError,
    StoreUnavailableError,
)
from lamella.stores.memory import InMemoryStore

LAYOUTS = pytest.mark.parametrize("layout", ["library", "in_place", "auto"])


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def names(chat: Conversation) -> list[str]:
    """The ids of the active branch, in order."""
    return [node.id for record in chat.turns() for node in (record.message, record.reply) if node]


def texts(told: list[TurnRecord] | tuple[TurnRecord, ...]) -> list[str]:
    return [node.text for turn in told for node in (turn.message, turn.reply) if node]


def converse(chat: Conversation, turns: int = 3) -> list[str]:
    """So many turns, the first with a note; the ids of their messages."""
    for number in range(1, turns + 1):
        chat.ask(f"q{number}", attach=[Note(path="a.md", text="Apple.")] if number == 1 else [])
        chat.reply(f"a{number}")
    return names(chat)


def kinds(store: InMemoryStore) -> list[str]:
    return [record.kind.value for record in store.load("chat")]


@LAYOUTS
def test_reopened_chat_has_its_messages(store: InMemoryStore, layout: str) -> None:
    converse(make_chat(store, layout=layout))
    conversation = make_chat(store)
    assert texts(list(conversation.turns())) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    turn = conversation.ask("q4")
    assert turn.number == 4
    assert (turn.envelope.layout, library(turn)) == (layout, ["a.md"])


@LAYOUTS
def test_edit_branches_before_message_with_same_attachments(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation)
    turn = conversation.edit(old[0], "q1, better")
    assert attached(turn) == [("a.md", "full")]
    assert (turn.number, turn.prefix_change.cause) == (1, "history_edited")
    conversation.reply("a1, better")
    assert texts(list(conversation.turns())) == ["q1, better", "a1, better"]
    assert texts(list(conversation.turns(old[-1]))) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert set(conversation.branches()) == {old[-1], conversation.head}
    assert kinds(store)[-2:] == ["edit", "reply"]


@pytest.mark.layout("library")
def test_edit_keeps_all_parts_of_request(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    conversation.ask("q1", attach=[Note(path="a.md", text="Apple.")], system={"base": "B.", "memory": "M."})
    conversation.reply("a1")
    conversation.ask(
        "q2",
        attach=[Selection(path="s.md", text="selected"), Image(data=png(1, 1))],
        results=[ToolResult(name="search", output="found")],
        tools=[Tool(name="search")],
        system={"memory": ""},
        model="openai:gpt-5",
        drop=["a.md"],
    )
    conversation.reply("a2")
    before = conversation.ask("q3")
    turn = conversation.edit(names(conversation)[2], "q2, better")
    assert attached(turn)[0][0].startswith("tool:search")
    assert len(attached(turn)) == 3
    assert (turn.envelope.model, [tool.name for tool in turn.envelope.tools]) == ("openai:gpt-5", ["search"])
    assert turn.messages[0].text == before.messages[0].text.partition("\n")[0] == "B."
    assert "Apple." not in sent(turn)


def test_only_questions_of_this_conversation_can_be_edited(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    old = converse(conversation, 1)
    for wrong in ("nobody", ""):
        with pytest.raises(InvalidOperationError, match="has no such message") as caught:
            conversation.edit(wrong, "x")
        assert "`chat.turns()`" in caught.value.hint
    with pytest.raises(InvalidOperationError, match="is an answer") as caught:
        conversation.edit(old[1], "x")
    assert old[0] in caught.value.hint
    assert names(conversation) == old


@LAYOUTS
def test_regenerated_last_question_sends_same_request(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    converse(conversation, 1)
    first = conversation.ask("q2", attach=[Note(path="b.md", text="Bear.")])
    conversation.reply("a2")
    old = conversation.head
    again = conversation.regenerate()
    assert again.envelope == first.envelope
    assert (again.number, str(again.prefix_change.prefix_change)) == (2, "none")
    conversation.reply("a2, better")
    assert set(conversation.branches()) == {old, conversation.head}
    following = conversation.ask("q3")
    assert following.envelope.epoch == first.envelope.epoch + (layout == "library")
    assert following.prefix_change.cause == ("artifact_added" if layout == "library" else "none")


def test_pending_question_is_regenerated_without_event(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    turn = conversation.ask("q1")
    assert conversation.regenerate().envelope == turn.envelope
    assert kinds(store) == ["message"]
    conversation.reply("a1")
    assert texts(list(conversation.turns())) == ["q1", "a1"]


@LAYOUTS
def test_regenerated_earlier_question_makes_branch(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation)
    again = conversation.regenerate(old[3])
    assert (again.number, again.prefix_change.cause) == (2, "branch")
    conversation.reply("a2, better")
    assert texts(list(conversation.turns())) == ["q1", "a1", "q2", "a2, better"]
    turn = conversation.ask("q3, other")
    assert turn.prefix_change.cause == "branch"


def test_regeneration_without_question_is_refused(store: InMemoryStore) -> None:
    with pytest.raises(InvalidOperationError, match="no such message"):
        make_chat(store).regenerate()


REWRITES: dict[str, tuple[Callable[[Conversation, list[str]], object], str]] = {
    "edit": (lambda chat, old: chat.edit(old[2], "q2, better"), "history_edited"),
    "delete question": (lambda chat, old: chat.delete(old[2]), "history_edited"),
    "delete first": (lambda chat, old: chat.delete(old[0]), "history_edited"),
    "delete answer": (lambda chat, old: chat.delete(old[3]), "history_edited"),
    "fork": (lambda chat, old: chat.fork(old[1]), "branch"),
    "fork at a question": (lambda chat, old: chat.fork(old[2]), "branch"),
}


# What came before the next question was sent as it is: nothing of it was rewritten.
UNMOVED = ("edit", "fork")


@LAYOUTS
@pytest.mark.parametrize("deed", REWRITES)
def test_history_change_is_named_and_starts_epoch(store: InMemoryStore, layout: str, deed: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation)
    act, cause = REWRITES[deed]
    done = act(conversation, old)
    turn = done if isinstance(done, Turn) else conversation.ask("next")
    assert turn.prefix_change.cause == cause
    assert (turn.envelope.epoch > 0) is (layout == "library" or deed not in UNMOVED)
    conversation.reply("yes")
    following = conversation.ask("and now?")
    assert following.prefix_change.cause == "none"
    assert following.envelope.epoch == turn.envelope.epoch + (layout == "library")
    assert texts(list(conversation.turns(old[-1]))) == ["q1", "a1", "q2", "a2", "q3", "a3"]


@LAYOUTS
def test_deleted_last_answer_leaves_question_with_empty_reply(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation)
    conversation.delete(old[-1])
    assert names(conversation) == old[:-1]
    turn = conversation.ask("next")
    assert texts(list(conversation.turns())) == ["q1", "a1", "q2", "a2", "q3", "", "next"]
    # In layout library the request extends the last one all the same; in place, everything folds.
    assert turn.prefix_change.cause == ("none" if layout == "library" else "history_edited")


@LAYOUTS
def test_switching_back_is_branch_and_starts_epoch(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation)
    conversation.fork(old[1])
    conversation.ask("elsewhere")
    conversation.reply("yes")
    conversation.switch(old[-1])
    turn = conversation.ask("back")
    assert (turn.prefix_change.cause, turn.number) == ("branch", 4)
    assert texts(list(conversation.turns())) == ["q1", "a1", "q2", "a2", "q3", "a3", "back"]
    if layout == "in_place":
        assert turn.envelope.epoch == 1


def test_deleting_the_question_that_set_the_system_prompt_leaves_the_prompt(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    conversation.ask("q1", system="You are terse.", model="openai:gpt-5")
    conversation.reply("a1")
    conversation.delete(names(conversation)[0])
    turn = conversation.ask("q2")
    assert (turn.messages[0].text, turn.envelope.model) == ("You are terse.", "openai:gpt-5")


def test_fork_continues_with_system_prompt_of_branch(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    conversation.ask("q1", system="One.")
    conversation.reply("a1")
    conversation.ask("q2", system="Two.")
    conversation.fork(names(conversation)[1])
    assert conversation.ask("q3").messages[0].text == "One."


def test_only_messages_of_active_branch_can_be_deleted(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    old = converse(conversation)
    conversation.fork(old[1])
    for wrong in ("nobody", ""):
        with pytest.raises(InvalidOperationError, match="no such message"):
            conversation.delete(wrong)
    with pytest.raises(InvalidOperationError, match=f"The message {old[3]} of chat is on another branch") as caught:
        conversation.delete(old[3])
    assert f'`chat.switch("{old[-1]}")`' in caught.value.hint
    for go in (conversation.fork, conversation.switch):
        with pytest.raises(InvalidOperationError, match="no such message"):
            go("nobody")


def test_turn_without_a_reply_gets_the_empty_one_with_the_next_turn(store: InMemoryStore) -> None:
    failing = Failing(store)
    conversation = make_chat(failing)
    conversation.ask("q1")
    conversation.ask("q2")
    assert [[r.kind.value for r in batch.records] for batch in failing.appended] == [
        ["message"],
        ["reply", "message"],
    ]
    assert texts(list(conversation.turns())) == ["q1", "", "q2"]
    assert names(make_chat(store)) == names(conversation)


def test_reply_without_open_turn_is_refused_and_stores_nothing(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    with pytest.raises(InvalidOperationError, match="no open turn"):
        conversation.reply("hello?")
    converse(conversation, 1)
    with pytest.raises(InvalidOperationError, match="no open turn"):
        conversation.reply("again")
    assert len(store.load("chat")) == 2


def test_event_time_is_utc(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    east = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    conversation.ask("q1", at=east)
    conversation.reply("a1", at=datetime(2026, 3, 1, 12, 30, 0, 5, tzinfo=UTC))
    conversation.rename("T")
    assert [record.at for record in store.load("chat")] == [
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:30:00.000005Z",
        "2026-03-01T12:00:01Z",
    ]


DOWN: dict[str, Callable[[Conversation, list[str]], object]] = {
    "ask": lambda chat, old: chat.ask("more", attach=[Note(path="b.md", text="Bear.")]),
    "edit": lambda chat, old: chat.edit(old[0], "better"),
    "regenerate": lambda chat, old: chat.regenerate(),
    "delete": lambda chat, old: chat.delete(old[0]),
    "fork": lambda chat, old: chat.fork(old[0]),
    "switch": lambda chat, old: chat.switch(old[1]),
    "rename": lambda chat, old: chat.rename("T"),
}


@pytest.mark.parametrize("deed", DOWN)
def test_failed_append_changes_nothing_and_can_be_retried(deed: str) -> None:
    failing, calm = Failing(InMemoryStore()), Failing(InMemoryStore())
    conversation, other = make_chat(failing, layout="in_place"), make_chat(calm, layout="in_place")
    old = converse(conversation, 2)
    assert converse(other, 2) == old
    failing.down = True
    with pytest.raises(StoreUnavailableError, match="disk is full"):
        DOWN[deed](conversation, old)
    assert (names(conversation), conversation.title, conversation.head, conversation.branches()) == (
        old,
        "q1",
        old[-1],
        (old[-1],),
    )
    failing.down = False
    done, expected = DOWN[deed](conversation, old), DOWN[deed](other, old)
    if isinstance(done, Turn) and isinstance(expected, Turn):
        assert (done.envelope, done.prefix_change) == (expected.envelope, expected.prefix_change)
    assert [r.body for r in failing.load("chat")] == [r.body for r in calm.load("chat")]
    assert conversation.ask("and now?").envelope == other.ask("and now?").envelope


def test_failed_reply_can_be_given_again() -> None:
    failing = Failing(InMemoryStore())
    conversation = make_chat(failing)
    conversation.ask("q1")
    failing.down = True
    with pytest.raises(StoreUnavailableError, match="disk is full"):
        conversation.reply("a1")
    failing.down = False
    conversation.reply("a1")
    assert texts(list(conversation.turns())) == ["q1", "a1"]


def test_failed_build_stores_nothing(store: InMemoryStore) -> None:
    conversation = make_chat(store, window=300, reserve=100)
    conversation.ask("q1")
    with pytest.raises(ContextBudgetExceededError):
        conversation.ask("word " * 400)
    with pytest.raises(BadInputError):
        conversation.ask("q2", attach=[Note(path="missing.md")])
    assert kinds(store) == ["settings", "message"]
    conversation.reply("a1")
    assert texts(list(conversation.turns())) == ["q1", "a1"]


def test_concurrent_chats_lose_and_duplicate_nothing(store: InMemoryStore) -> None:
    one, two = make_chat(store), make_chat(store)
    one.ask("first")
    with pytest.raises(ConflictError) as caught:
        two.ask("second")
    assert (caught.value.expected, caught.value.found) == (0, 1)
    assert two.turns() == []
    two.reload()
    two.ask("second")
    with pytest.raises(ReplyOnOtherBranchError) as late:
        one.reply("late")
    two.reply("in time")
    one.reload()
    assert texts(list(one.turns())) == texts(list(two.turns())) == ["first", "", "second", "in time"]
    assert texts(list(one.turns(late.value.reply_id))) == ["first", "late"]
    assert kinds(store) == ["message", "reply", "message", "reply", "reply"]


@pytest.mark.parametrize("deed", DOWN)
def test_every_operation_of_outdated_chat_is_conflict(store: InMemoryStore, deed: str) -> None:
    ahead = make_chat(store)
    old = converse(ahead, 2)
    behind = make_chat(store)
    ahead.rename("Ahead")
    with pytest.raises(ConflictError):
        DOWN[deed](behind, old)
    assert (names(behind), behind.title) == (old, "q1")
    behind.reload()
    assert behind.title == "Ahead"
    DOWN[deed](behind, old)
    assert len(store.load("chat")) == 6


def test_settings_are_stored_with_next_event(store: InMemoryStore) -> None:
    make_chat(store, layout="in_place")
    assert store.load("chat") == ()
    conversation = make_chat(store, layout="in_place", window=9_000)
    conversation.ask("q1")
    assert kinds(store) == ["settings", "message"]
    turn = make_chat(store).ask("q2")
    assert (turn.envelope.layout, turn.tokens.limit) == ("in_place", 9_000 - 4_096)
    make_chat(store, layout="in_place").ask("q3")
    assert kinds(store).count("settings") == 1


def test_message_with_invalid_time_is_reported_as_damaged(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    conversation.ask("one")
    conversation.reply("Yes.")
    asked = {"id": "m", "parent": conversation.head, "text": "two"}
    store.append("chat", write_raw(EventKind.MESSAGE, "yesterday", **asked), expected=len(store.load("chat")))
    with pytest.raises(StoreCorruptedError, match="The time of the message m cannot be read"):
        make_chat(store).ask("three")


def foresee(chat: Conversation) -> list[dict[str, object]]:
    """What the next turn would send; nothing is written down."""
    return [message.to_dict() for message in chat.preview(TurnRequest(text="And on?")).messages]


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("path", ["secret.md", "other.md"])
def test_erased_text_stays_erased_after_reattachment(store: InMemoryStore, layout: str, path: str) -> None:
    conversation = make_chat(store, layout=layout)
    conversation.ask("first", attach=[Note(path="secret.md", text="The zebra keeps its stripes in a drawer.")])
    conversation.reply("Yes.")
    ConversationRepository(store, Ticking()).erase_artifact("chat", "secret.md")
    conversation.reload()
    for text, attach in (("second", []), ("third", [Note(path=path, text="The zebra keeps its stripes in a drawer.")])):
        conversation.ask(text, attach=attach)
        conversation.reply("Yes.")
    assert sum("zebra" in str(message) for message in foresee(conversation)) == 1
    assert foresee(make_chat(store)) == foresee(conversation)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_reattached_snapshot_after_removal_is_sent_once(store: InMemoryStore, layout: str) -> None:
    page = Url(url="https://e.org/5", text="old text " * 300, policy="snapshot")
    conversation = make_chat(store, layout=layout, window=1_750, reserve=0)
    asked = [("q", [page]), *[("q", [])] * 5, ("w " * 800, []), ("q", [page]), ("q", []), ("q", [])]
    for text, attach in asked:
        conversation.ask(text, attach=attach)
        conversation.reply("a")
    assert EventKind.COMPACTION in {record.kind for record in store.load("chat")}
    assert ("- https://e.org/5\\n" in str(foresee(conversation))) is (layout == "in_place"), "until the next epoch"
    assert foresee(make_chat(store)) == foresee(conversation)


@pytest.mark.parametrize("message", [None, [], 5])
def test_message_that_is_not_text_is_refused_and_stores_nothing(store: InMemoryStore, message: object) -> None:
    chat: Any = make_chat(store)
    chat.ask("one")
    before = list(store.load("chat"))
    doors: list[Callable[[], object]] = [
        lambda: chat.delete(message),
        lambda: chat.fork(message),
        lambda: chat.switch(message),
        lambda: chat.edit(message, "x"),
        lambda: chat.delete(chat.head, at="2026"),
        lambda: chat.fork(chat.head, at=datetime(2026, 11, 15)),  # noqa: DTZ001 - that is what is wrong
    ]
    for door in doors:
        with pytest.raises(InvalidOperationError):
            door()
    assert list(store.load("chat")) == before


def test_settings_are_written_once_also_when_the_store_was_down(store: InMemoryStore) -> None:
    failing = Failing(store)
    conversation = make_chat(failing, layout="in_place")
    failing.down = True
    with pytest.raises(StoreUnavailableError, match="disk is full"):
        conversation.ask("q1")
    failing.down = False
    conversation.ask("q1")
    conversation.reply("a1")
    assert kinds(store) == ["settings", "message", "reply"]


def test_model_given_later_is_the_model_from_then_on(store: InMemoryStore) -> None:
    first = make_chat(store, model="openai:gpt-5")
    assert first.ask("q1").envelope.model == "openai:gpt-5"
    turn = make_chat(store, model="anthropic:claude-opus-5-5").ask("q2")
    assert (turn.envelope.model, turn.prefix_change.cause) == ("anthropic:claude-opus-5-5", "model_changed")
    again = make_chat(store)
    assert again.ask("q3").envelope.model == "anthropic:claude-opus-5-5"
    assert again.ask("q4", model="openai:gpt-5").envelope.model == "openai:gpt-5"
    assert make_chat(store).ask("q5").envelope.model == "openai:gpt-5"


def test_later_model_applies_to_edit_and_after_rename(store: InMemoryStore) -> None:
    old = converse(make_chat(store, model="openai:gpt-5"), 1)
    make_chat(store, model="openai:gpt-5-mini").rename("T")
    conversation = make_chat(store)
    assert conversation.edit(old[0], "better").envelope.model == "openai:gpt-5-mini"


def test_turns_of_other_layout_count_epochs_as_asked(store: InMemoryStore) -> None:
    converse(make_chat(store, layout="library"))
    turn = make_chat(store, layout="in_place").ask("q4")
    assert turn.envelope.epoch == 3
    assert make_chat(store).ask("q5").envelope.epoch == 3
    assert make_chat(store, layout="library").ask("q6").envelope.epoch == 4


def test_full_text_of_fold_stays_until_next_fold(store: InMemoryStore) -> None:
    conversation = make_chat(store, layout="in_place", carry_forward="full")
    conversation.ask("q1", attach=[Note(path="a.md", text="# Apple\n" + "word " * 2_000)])
    folded = conversation.ask("q2", fold=True)
    turn = make_chat(store, carry_forward="preview").ask("q3")
    assert (turn.prefix_change.cause, turn.messages[0]) == ("none", folded.messages[0])
    again = make_chat(store).ask("q4", fold=True)
    assert len(again.messages[0].text) < len(folded.messages[0].text) / 2


@pytest.mark.layout("library")
def test_library_text_of_note_with_images_follows_setting_at_attachment(
    store: InMemoryStore,
) -> None:
    # It was a switch once, and what is stored of that time has it so.
    text = "Beans. " * 50 + "![[p.png]]"
    make_chat(store, image_notes=False).ask("q1", attach=[ActiveNote(path="p.md", text=text)])
    conversation = make_chat(store, image_notes=True)
    assert forms(conversation.ask("q2", attach=[ActiveNote(path="r.md", text=text)]), LayerId.L2) == [
        ("p.md", "handle")
    ]
    assert forms(make_chat(store).ask("q3"), LayerId.L2) == [("p.md", "handle"), ("r.md", "full")]


def test_settings_of_other_writer_apply_after_reload(store: InMemoryStore) -> None:
    conversation = make_chat(store)
    converse(conversation, 1)
    make_chat(store, layout="in_place").rename("T")
    conversation.reload()
    turn = conversation.ask("q2")
    assert turn.envelope.layout == "in_place"
    assert make_chat(store).regenerate().envelope == turn.envelope


def test_settings_that_make_no_sense_are_refused_before_anything_is_written(store: InMemoryStore) -> None:
    with pytest.raises(SettingError):
        make_chat(store, layout="sideways")
    with pytest.raises(SettingError):
        make_chat(store, colour="red")
    assert store.load("chat") == ()


def test_erased_conversation_is_not_opened(store: InMemoryStore) -> None:
    converse(make_chat(store), 1)
    store.erase_conversation("chat", at="2026-03-02T00:00:00Z")
    with pytest.raises(ConversationErasedError, match="was erased at 2026-03-02"):
        make_chat(store)


@LAYOUTS
def test_conversation_continues_after_artifact_erasure(store: InMemoryStore, layout: str) -> None:
    conversation = make_chat(store, layout=layout)
    old = converse(conversation, 2)
    ConversationRepository(store, make_backend(store).clock).erase_artifact("chat", "a.md")
    with pytest.raises(ConflictError):
        conversation.ask("q3")
    conversation.reload()
    turn = conversation.ask("q3", attach=[Note(path="b.md", text="Bear.")])
    assert names(conversation)[:4] == old
    assert (library(turn), "Apple." in sent(turn)) == ([], False)
    conversation.reply("a3")
    again = conversation.ask("q4", attach=[Note(path="a.md", text="Apple.")])
    assert attached(again) == [("a.md", "full")]


def test_images_of_active_note_are_resent_unchanged(store: InMemoryStore, tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("![[dot.png]]")
    (tmp_path / "dot.png").write_bytes(png(2, 2))
    chat = Conversation.open(make_backend(store, vault=tmp_path), "chat", {"layout": "in_place"})
    turn = chat.ask(TurnRequest(text="look", attach=(ActiveNote(path="p.md").to_artifact(),)))
    (tmp_path / "dot.png").unlink()
    again = Conversation.open(make_backend(store), "chat").regenerate()
    assert again.messages == turn.messages
    assert [image.data for image in again.messages[-1].images] == [png(2, 2)]


def test_version_is_the_number_of_events(store: InMemoryStore) -> None:
    chat = Conversation.open(make_backend(store), "chat")
    chat.ask(TurnRequest(text="one"))
    chat.rename("T")
    assert (chat.version, chat.id, chat.title) == (2, "chat", "T")
    assert [record.kind for record in store.load("chat")] == [EventKind.MESSAGE, EventKind.RENAME]
