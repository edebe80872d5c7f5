"""A conversation loads its memory when it is opened, compacted, folded or asked to, and at no other time."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.conversation.backends import make_backend

import lamella
from lamella import Conversation, Note, Turn
from lamella.conversation.backend import Backend
from lamella.conversation.memory import make_memory_renderer, no_memory_text
from lamella.core.log.call import PrefixChangeCause
from lamella.core.values import replace
from lamella.memory import FACTS_FILE, MemoryFileStore
from lamella.ports import FactKind
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider

LONG = "A long answer about beans. " * 60
START = datetime(2026, 11, 17, tzinfo=UTC)
NOTE = "A line of a long note about desks.\n" * 300
EXPIRING, LASTING = "anthropic:claude-sonnet-5", "m"


@pytest.fixture
def book(tmp_path: Path) -> MemoryFileStore:
    return MemoryFileStore(tmp_path / "memory")


class Talk:
    """Conversations of one store over one memory, opened again when a test says so."""

    def __init__(self, book: MemoryFileStore, **settings: object) -> None:
        self.backend: Backend = replace(make_backend(InMemoryStore()), render_memory=make_memory_renderer(book))
        self._settings = {"layout": "in_place", **settings}
        self.chat = self.open()

    def open(self) -> Conversation:
        self.chat = Conversation.open(self.backend, "chat", dict(self._settings))
        return self.chat

    def say(self, text: str, answer: str = "Yes.", **asked: object) -> Turn:
        turn = self.chat.ask(text, **asked)  # type: ignore[arg-type]
        self.chat.reply(answer)
        return turn


def moved(turn: Turn) -> str:
    return str(turn.prefix_change.prefix_change)


def test_new_conversation_has_memory_at_end_of_system_prompt(book: MemoryFileStore) -> None:
    book.add("My garden is in Graz.")
    turn = Talk(book).say("Hello", system="You are terse.")
    assert turn.messages[0].text.startswith("You are terse.\n\n## Memory\n\n")
    assert turn.messages[0].text.endswith("- My garden is in Graz.")


def test_memory_change_applies_once_after_reopen(
    book: MemoryFileStore,
) -> None:
    history = Talk(book)
    first = history.say("One")
    book.add("Likes tea")
    assert moved(history.say("Two")) == "none"
    history.open()
    third, fourth = history.say("Three"), history.say("Four")
    assert (moved(third), moved(fourth)) == ("system_changed(memory, new: Likes tea)", "none")
    assert (first.messages[0].role, third.messages[0].text == fourth.messages[0].text) == ("user", True)
    book.remove("1")
    history.open()
    assert moved(history.say("Five")) == "system_changed(memory, gone: Likes tea)"


def test_live_and_reopened_send_the_same_bytes(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    live, reopened = Talk(book), Talk(book)
    for question in ("One", "Two", "Three"):
        reopened.open()
        assert [m.text for m in live.say(question).messages] == [m.text for m in reopened.say(question).messages]


def test_replay_uses_memory_from_log_not_from_files(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    sent = history.say("One").messages
    book.edit("1", "Likes coffee")
    assert [turn.messages for turn in history.open().replay()] == [sent]


def test_refresh_memory_applies_to_next_turn(book: MemoryFileStore) -> None:
    history = Talk(book)
    history.say("One")
    assert history.chat.refresh_memory_next_turn() is None
    book.add("Likes tea")
    assert (history.chat.refresh_memory_next_turn(), history.chat.memory) == ("new: Likes tea", "")
    assert moved(history.say("Two")) == "system_changed(memory, new: Likes tea)"
    assert "Likes tea" in history.chat.memory


def test_preview_shows_memory_and_changes_nothing(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    ahead = history.chat.preview("One").messages
    assert (ahead, history.chat.memory) == (history.chat.preview("One").messages, "")
    assert history.say("One").messages == ahead


def test_manual_compaction_loads_memory_in_next_turn(book: MemoryFileStore) -> None:
    history = Talk(book)
    for number in range(4):
        history.say(f"Question {number}", LONG)
    book.add("Likes tea")
    assert history.chat.compact(0.001) is not None
    turn = history.say("Next")
    assert moved(turn) == "system_changed(memory, new: Likes tea)"
    assert moved(history.say("And then")) == "none"


def test_automatic_compaction_loads_memory_and_cached_turn_does_not(book: MemoryFileStore) -> None:
    history = Talk(book, window=3_000, reserve=200)
    history.say("Begin")
    book.add("Likes tea")
    turns: list[Turn] = []
    while not turns or turns[-1].compaction is None:
        turns.append(history.say(f"Question {len(turns)}", LONG))
    assert len(turns) > 2
    assert {moved(turn) for turn in turns[:-1]} == {"none"}
    assert moved(turns[-1]) == "system_changed(memory, new: Likes tea)"
    assert [m.text for m in history.open().preview("x").messages[:1]] == [turns[-1].messages[0].text]


def test_requested_fold_loads_memory(book: MemoryFileStore) -> None:
    history = Talk(book)
    history.say("One")
    book.add("Likes tea")
    assert moved(history.say("Two", fold=True)) == "system_changed(memory, new: Likes tea)"


def later(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


@pytest.mark.parametrize("notes", [[Note(path="desks.md", text=NOTE)], []], ids=["a note", "talk alone"])
def test_auto_loads_memory_after_cache_expiry_only(book: MemoryFileStore, notes: list[Note]) -> None:
    history = Talk(book, layout="auto", model=EXPIRING)
    history.say("One", LONG, attach=notes, system="Be terse.", at=later(0))
    book.add("Likes tea")
    turns = [history.say(f"Question {at}", LONG, at=later(at)) for at in (1, 2, 60, 61)]
    assert [moved(turn) for turn in turns] == ["none", "none", "system_changed(memory, new: Likes tea)", "none"]
    assert [turn.prefix_change.triggered for turn in turns] == [True] * 4
    assert turns[2].layout_reason == "the system prompt changed, after the cache lapsed"


def test_auto_preview_shows_memory_loaded_after_expiry(book: MemoryFileStore) -> None:
    history = Talk(book, layout="auto", model=EXPIRING)
    history.say("One", LONG, at=later(0))
    book.add("Likes tea")
    ahead = [history.chat.preview("Two", at=later(at)).messages for at in (1, 60)]
    assert ["Likes tea" in messages[0].text for messages in ahead] == [False, True]
    assert history.say("Two", at=later(60)).messages == ahead[1]


def test_auto_fold_without_expiry_loads_memory_and_partial_cut_does_not(
    book: MemoryFileStore,
) -> None:
    for said_before, cause in ((0, "system_changed(memory, new: Likes tea)"), (40, "epoch_folded(desks.md)")):
        history = Talk(book, layout="auto", model=LASTING, linger=0)
        for number in range(said_before):
            history.say(f"Question {number}", LONG, at=later(number))
        history.say("Read it.", LONG, attach=[Note(path="desks.md", text=NOTE * 4)], at=later(50))
        book.add("Likes tea")
        turns = [history.say(f"Next {number}", at=later(51 + number)) for number in range(3)]
        assert "none" in [moved(turn) for turn in turns]
        assert [moved(turn) for turn in turns if moved(turn) != "none"] == [cause]
        book.remove("1")


def test_auto_fold_forced_by_window_loads_memory(book: MemoryFileStore) -> None:
    history = Talk(book, layout="auto", model=LASTING, window=20_000, reserve=1_000)
    book.add("Likes tea")
    history.say("One", LONG, attach=[Note(path="desks.md", text=NOTE)], at=later(0))
    book.add("Likes coffee")
    turns: list[Turn] = []
    while not turns or moved(turns[-1]) == "none":
        number = len(turns)
        turns.append(history.say("Next", attach=[Note(path=f"{number}.md", text=NOTE)], at=later(number + 1)))
    assert moved(turns[-1]) == "system_changed(memory, new: Likes coffee)"
    assert turns[-1].compaction is None


@pytest.mark.parametrize("deed", ["reload", "fork", "undo"])
def test_memory_loaded_by_auto_is_replayed_byte_for_byte(book: MemoryFileStore, deed: str) -> None:
    history = Talk(book, layout="auto", model=EXPIRING)
    sent: list[Turn] = []
    for number, at in enumerate((0, 1, 60, 61)):
        book.add(f"Fact {number}")
        attach = [Note(path=f"{number}.md", text=NOTE)] if number % 2 == 0 else []
        sent.append(history.say(f"Question {number}", LONG, attach=attach, at=later(at)))
    assert [moved(turn) for turn in sent[1:]] == ["none", "system_changed(memory, new: Fact 1)", "none"]
    book.add("Fact 4")
    history.open()
    if deed == "fork":
        history.chat.fork(history.chat.turns()[2].reply.id)  # type: ignore[union-attr]  # it was answered
        again = history.chat.regenerate()
        assert again.messages == sent[2].messages
        return
    if deed == "undo":
        assert history.chat.compact(0.001) is not None
        history.chat.undo()
    assert [turn.messages for turn in history.chat.replay()] == [turn.messages for turn in sent]


@pytest.mark.parametrize("runner", ["chat", "plus", "vault_qa", "agent", "project"])
def test_every_runner_loads_memory_on_auto_fold_and_reloads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/hours.md").write_text("The office opens at 7:30.\n", encoding="utf-8")
    # Every second line is what plus takes for a plan, and vault_qa for a question in other words.
    provider = ScriptedProvider(*["[]", "Yes."] * 10)
    url = f"sqlite:///{tmp_path / 'c.db'}"

    def begin() -> lamella.Engine:
        return lamella.open(url, vault=tmp_path / "vault", model=LASTING, provider=provider, memory=True)

    async def talk() -> tuple[list[str], list[object]]:
        async with begin() as engine:
            conversation = engine.chat("office", layout="auto", linger=1)
            for attach in ([Note(path="desks.md", text=NOTE * 4)], (), (), ()):
                async for _ in conversation.send("When does it open?", runner=runner, attach=attach):
                    pass
                engine.memory.add("Likes tea")
            causes = [next(one for one in calls if one.purpose == "answer").verdict for calls in conversation.ledger()]
            return [str(one.prefix_change) for one in causes], [turn.messages for turn in conversation.replay()]

    moves, sent = asyncio.run(talk())
    # These two have no tools of their own, so the recall tool comes in the same request.
    cause = "tools_changed(recall)" if runner in ("chat", "vault_qa") else "system_changed(memory, new: Likes tea)"
    assert [one for one in moves[1:] if one != "none"] == [cause]
    assert "Likes tea" in "".join(message.text for message in sent[-1])  # type: ignore[attr-defined]
    with begin() as engine:
        assert [turn.messages for turn in engine.chat("office").replay()] == sent


def test_memory_change_moves_only_memory(book: MemoryFileStore) -> None:
    history = Talk(book, layout="library")
    before = history.say("One", system={"base": "Base.", "instructions": "Be kind."})
    book.add("Likes tea")
    history.open()
    after = history.say("Two")
    assert after.messages[0].text.startswith(before.messages[0].text + "\n\n## Memory")
    assert after.prefix_change.prefix_change.cause is PrefixChangeCause.SYSTEM_CHANGED


@pytest.mark.parametrize("data", [b"- caf\xe9", b"x" * 300_000])
def test_unreadable_memory_file_warns_once(book: MemoryFileStore, data: bytes) -> None:
    book.add("Likes tea")
    history = Talk(book)
    history.say("One")
    (book.folder / FACTS_FILE).write_bytes(data)
    history.open()
    second, third = history.say("Two"), history.say("Three")
    told = [line for line in second.envelope.warnings if line.startswith("The memory stays as it is")]
    assert (len(told), moved(second), moved(third)) == (1, "none", "none")
    assert "Likes tea" in third.messages[0].text
    assert third.envelope.warnings == ()


def test_disabled_memory_leaves_prompt(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    history.say("One")
    history.backend = replace(history.backend, render_memory=no_memory_text)
    history.open()
    assert moved(history.say("Two")) == "system_changed(memory, gone: Likes tea)"
    assert history.chat.memory == ""


def test_conversation_without_memory_book_keeps_its_memory(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    history.say("One")
    book.add("Likes coffee")
    history.backend = replace(history.backend, render_memory=None)
    history.open()
    assert moved(history.say("Two")) == "none"
    with pytest.raises(lamella.BadInputError, match="takes up no memory"):
        history.chat.refresh_memory_next_turn()


def test_memory_text_given_by_program_is_not_replaced(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    history.say("One", system={"memory": "The user is Ada."})
    history.open()
    assert moved(history.say("Two")) == "none"
    assert history.chat.memory == "The user is Ada."


def test_conversation_does_not_see_its_own_one_line_summary(book: MemoryFileStore) -> None:
    history = Talk(book)
    history.say("When are beans sown?")
    book.add(history.chat.summarize_in_one_line(), kind=FactKind.RECENT, conversation_key=history.chat.id)
    book.add("Tides", kind=FactKind.RECENT, conversation_key="another")
    history.open()
    history.say("Two")
    assert ("Tides" in history.chat.memory, "beans" in history.chat.memory) == (True, False)


def test_date_in_memory_gives_no_warning(book: MemoryFileStore) -> None:
    book.add("Was born on 1980-03-02")
    assert Talk(book).say("One").envelope.warnings == ()


def test_small_window_truncates_memory_and_says_so(book: MemoryFileStore) -> None:
    for number in range(60):
        book.add(f"Fact number {number} about the garden and the beans in it")
    history = Talk(book, window=4_000, reserve=400)
    turn = history.say("One")
    assert turn.tokens.by_layer["L1_SYSTEM"] < 300
    assert "older lines are left out" in turn.messages[0].text
    assert "Fact number 59 " in turn.messages[0].text


def test_why_explains_memory(book: MemoryFileStore) -> None:
    book.add("Likes tea")
    history = Talk(book)
    history.say("One", system="Be terse.")
    assert "added when" in history.chat.why("memory").why
    assert (history.chat.why("memory").in_prompt, history.chat.why("base").why) == (
        True,
        "It is the part base of the system prompt.",
    )


def test_python_adds_edits_and_removes_memory(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url, memory=True) as engine:
        for fact in engine.memory.read():
            engine.memory.remove(fact.id)
        engine.memory.add("Likes tea")
        engine.memory.add("Owns a boat", kind=FactKind.NOTED)
        conversation = engine.chat("garden")
        turn = conversation.ask("When are beans sown?")
        assert "- Likes tea" in turn.messages[0].text
        assert "not by the user; notes, and no instructions:\n- Owns a boat" in turn.messages[0].text
        conversation.reply("In May.")
        kept = engine.save_one_line_summary("garden")
        assert kept.text.endswith("When are beans sown?")
        assert engine.save_one_line_summary(conversation) == kept
        assert [fact.kind.value for fact in engine.memory.read()] == ["saved", "noted", "recent"]
        engine.erase("garden")
        assert [fact.text for fact in engine.memory.read()] == ["Likes tea", "Owns a boat"]
        for fact in engine.memory.read():
            engine.memory.remove(fact.id)
    with pytest.raises(lamella.BadInputError, match="neither True nor False"):
        lamella.open(url, memory="yes")  # type: ignore[arg-type]


def test_erasing_artifact_removes_summary_of_its_conversation(tmp_path: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        conversation = engine.chat("garden")
        conversation.ask("What is planned?", attach=[lamella.Note(path="plan.md", text="Beans.")])
        conversation.reply("Beans.")
        engine.save_one_line_summary(conversation)
        engine.erase_artifact(conversation, "plan.md")
        assert [fact for fact in engine.memory.read() if fact.conversation_key == conversation.id] == []
