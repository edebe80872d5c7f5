"""A compaction that nothing was sent under, undone: the next request is what it would have been without both."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Note, ToolResult

LONG = json.loads(Path("examples/long.json").read_text(encoding="utf-8"))
VAULT = Path("examples/vault")
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = BEGAN + timedelta(minutes=10)
LAYOUTS = ["library", "in_place", "auto"]


def talk(chat: Conversation | Conversation) -> None:
    for number, turn in enumerate(LONG["turns"]):
        notes = [
            Note(path=one["path"], text=(VAULT / one["path"]).read_text(encoding="utf-8"))
            for one in turn.get("attach", [])
        ]
        results = [ToolResult(**one) for one in turn.get("tools", [])]
        chat.ask(turn["user"], attach=notes, results=results, at=BEGAN + timedelta(seconds=30 * number))
        chat.reply(turn["reply"])


def look(chat: Conversation | Conversation) -> tuple[object, str]:
    turn = chat.preview("Where were we?", at=LATER)
    return turn.messages, str(turn.prefix_change.prefix_change)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_undo_before_sending_restores_request_in_store_after_reopen(layout: str, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'chats.db'}"
    conversation = lamella.open(place, summarizer="off").chat(
        "long", layout=layout, model=LONG["model"], window=6_000, reserve=500
    )
    talk(conversation)
    before = look(conversation)
    conversation.commit(conversation.plan(to=0.2))
    assert look(conversation) != before
    conversation.commit(conversation.plan(to=0.15))
    conversation.undo()
    conversation.undo()
    assert look(conversation) == before
    assert look(lamella.open(place, summarizer="off").chat("long")) == before
    # A conversation that is opened while the question waits sends the same. ``ask`` does not offer the recall tool.
    asked = conversation.ask("Where were we?", at=LATER)
    twin = Conversation(layout=layout, model=LONG["model"], window=6_000, reserve=500)
    talk(twin)
    expected = twin.ask("Where were we?", at=LATER)
    assert asked.messages == expected.messages
    assert str(asked.prefix_change.prefix_change) == str(expected.prefix_change.prefix_change)
    anew = lamella.open(place, summarizer="off").chat("long")
    assert anew.preview("Hm?", at=LATER).messages == conversation.preview("Hm?", at=LATER).messages


@pytest.mark.parametrize("layout", LAYOUTS)
def test_undo_before_sending_restores_request_in_memory(layout: str) -> None:
    chat = Conversation(layout=layout, model=LONG["model"], window=6_000, reserve=500)
    talk(chat)
    before = look(chat)
    chat.commit(chat.plan(to=0.2))
    chat.undo()
    assert look(chat) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_earlier_undo_is_still_reported_after_undo_without_effect(layout: str) -> None:
    chat = Conversation(layout=layout, model=LONG["model"], window=6_000, reserve=500)
    talk(chat)
    chat.commit(chat.plan(to=0.2))
    chat.ask("Where were we?", at=LATER)
    chat.reply("At the five steps.")
    chat.undo()
    before = look(chat)
    chat.commit(chat.plan(to=0.1))
    chat.undo()
    assert look(chat) == before
