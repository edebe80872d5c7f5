"""A chat that is reopened before every step sends the same and reports the same prefix changes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.conversation.backends import make_chat

import lamella
from lamella import Note, ToolOutput, Turn
from lamella.conversation.conversation import Conversation
from lamella.core.messages import ModelReply, StopReason, ToolCall
from lamella.stores.memory import InMemoryStore

LONG = "I would rather keep it as it is. " * 40
LAYOUTS = pytest.mark.parametrize("layout", ["in_place", "library", "auto"])


class Kept:
    """A chat over a store, which is ``closed`` and opened again before every step; what came of its steps."""

    def __init__(self, *, closed: bool, **settings: object) -> None:
        self._store = InMemoryStore()
        self._closed = closed
        self._chat = make_chat(self._store, **settings)
        self.turns: list[Turn] = []

    @property
    def chat(self) -> Conversation:
        if self._closed and self._chat.head:
            self._chat = make_chat(self._store)
        return self._chat

    def ask(self, text: str, *, answer: str | None = None, **given: object) -> str:
        turn = self.chat.ask(text, **given)  # type: ignore[arg-type]  # what a chat takes
        self.turns.append(turn)
        if answer is not None:
            self.chat.reply(answer)
        return turn.envelope.message_id

    def call(self, name: str) -> None:
        """The model calls a tool, which gives something."""
        calls = (ToolCall(id=name, name="look", arguments="{}"),)
        self.chat.reply(ModelReply(text="Let me see.", stop=StopReason.TOOL_CALLS, calls=calls))
        self.turns.append(self.chat.submit_tool_outputs([ToolOutput(call=name, output=f"found {name}")]))

    def regenerate(self, question: str | None = None) -> None:
        self.turns.append(self.chat.regenerate(question))


def undo_the_second(kept: Kept) -> None:
    """Two compactions, of which the newer is undone: the next turn is the first under the other."""
    for number in range(6):
        kept.ask(f"q{number}", answer=LONG)
    assert kept.chat.compact(0.01) is not None
    assert kept.chat.compact(0.0001) is not None
    kept.chat.undo()
    kept.ask("And now?")
    kept.regenerate()


def edit_after_an_undo(kept: Kept) -> None:
    kept.ask("q0", answer=LONG)
    kept.ask("q1", answer="a1")
    assert kept.chat.compact(0.0001) is not None
    asked = kept.ask("q2", answer="a2")
    assert kept.chat.compact(0.0001) is not None
    kept.chat.undo()
    kept.turns.append(kept.chat.edit(asked, "q2, better"))
    kept.regenerate()


def undo_after_a_round(kept: Kept) -> None:
    kept.ask("q0", answer=LONG)
    kept.ask("q1")
    kept.call("one")
    kept.chat.reply("a1")
    assert kept.chat.compact(0.0001) is not None
    kept.chat.undo()
    kept.ask("q2")
    kept.call("two")


def call_on_another_branch(kept: Kept) -> None:
    """A question of an earlier turn is answered once more, with rounds of tools."""
    asked = kept.ask("q0", attach=[Note(path="a.md", text=LONG)], answer="a0")
    kept.ask("q1", answer="a1")
    kept.regenerate(asked)
    kept.call("one")
    kept.call("two")
    kept.chat.reply("b0")
    kept.ask("q2")


DEEDS = [undo_the_second, edit_after_an_undo, undo_after_a_round, call_on_another_branch]


def check_same(do: Callable[[Kept], None], **settings: object) -> list[Turn]:
    never, often = Kept(closed=False, **settings), Kept(closed=True, **settings)
    do(never)
    do(often)
    for one, other in zip(never.turns, often.turns, strict=True):
        assert one.messages == other.messages
        assert one.envelope == other.envelope
        assert one.prefix_change == other.prefix_change
    return never.turns


@LAYOUTS
@pytest.mark.parametrize("do", DEEDS)
def test_reopened_chat_continues_from_last_request(do: Callable[[Kept], None], layout: str) -> None:
    check_same(do, layout=layout)


@LAYOUTS
def test_shrunk_question_is_last_request_after_reopen(layout: str) -> None:
    def shrink(kept: Kept) -> None:
        for number in range(4):
            kept.ask(f"q{number}", answer=LONG)
        asked = kept.ask("Does it fit?", answer="It does.")
        kept.ask("And then?", answer="Yes.")
        kept.chat.undo(kept.chat.receipts()[0].id)
        kept.regenerate(asked)
        kept.ask("And now?")

    *_, again, now = check_same(shrink, layout=layout, window=1_000, reserve=0)
    assert again.compaction is not None
    assert now.messages[: len(again.messages)] == again.messages
    assert now.prefix_change.cause == "none"


@pytest.mark.parametrize("reopens", [False, True])
def test_edit_is_predicted_to_read_what_a_request_before_the_last_one_cached(tmp_path: Path, *, reopens: bool) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    long = Note(path="long.md", text="# Tides\n\n" + "The water rises twice a day. " * 400)
    at = datetime(2026, 11, 17, 12, tzinfo=UTC)
    engine = lamella.open(url)
    chat = engine.chat("tides", model="openai:gpt-5", layout="library")
    chat.ask("When is high tide?", attach=[long], at=at)
    chat.reply("At noon.", at=at)
    second = chat.ask("And low tide?", at=at + timedelta(minutes=1))
    chat.reply("At six.", at=at)
    if reopens:
        engine.close()
        engine = lamella.open(url)
        chat = engine.chat("tides")
    edited = chat.edit("turn:1", "When is it low?", at=at + timedelta(minutes=2))
    assert second.cache is not None
    assert edited.cache is not None
    assert second.cache.read == 0, "the library is new in this request"
    assert edited.cache.read > 0.9 * edited.tokens.total, "the first request began with the same note"
    late = chat.preview("And now?", at=at + timedelta(days=2)).cache
    assert late is not None
    assert late.read == 0
    engine.close()


def test_perfect_cache_knows_texts_that_were_sent_before_reopening(tmp_path: Path) -> None:
    long = Note(path="long.md", text="# Tides\n\n" + "The water rises twice a day. " * 400)
    at = datetime(2026, 11, 17, 12, tzinfo=UTC)
    costs = []
    for reopens in (False, True):
        url = f"sqlite:///{tmp_path / f'{reopens}.db'}"
        engine = lamella.open(url)
        chat = engine.chat("tides", model="openai:gpt-5", layout="library")
        chat.ask("When is high tide?", attach=[long], at=at)
        chat.reply("At noon.", at=at)
        chat.ask("And low tide?", drop=["long.md"], at=at + timedelta(minutes=1))
        chat.reply("At six.", at=at)
        if reopens:
            engine.close()
            engine = lamella.open(url)
            chat = engine.chat("tides")
        turn = chat.ask("Once more.", attach=[long], at=at + timedelta(minutes=2))
        assert turn.cost is not None
        costs.append((turn.cost.amount, turn.cost.naive, turn.cost.limit))
        engine.close()
    assert costs[0] == costs[1]
    assert costs[1][2] < costs[1][0] / 2, "the note was sent before"
