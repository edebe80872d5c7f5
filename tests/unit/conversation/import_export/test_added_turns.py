"""Turns from elsewhere, added to a conversation as they are."""

from pathlib import Path

import pytest

from lamella import open as open_engine
from lamella.conversation.import_export import QuestionReply
from lamella.errors import InvalidOperationError

SAID: list[QuestionReply] = [("a {[[x]]}", "b"), ("c", ""), ("d", "e")]


def test_added_turns_are_in_next_request(tmp_path: Path) -> None:
    with open_engine(f"sqlite:///{tmp_path / 'chats.db'}", vault=tmp_path) as engine:
        told, asked = (engine.chat(name, system="Be terse.", model="scripted:m") for name in ("told", "asked"))
        told.add_turns(SAID)
        for question, answer in SAID:
            asked.ask(question, verbatim=True)
            asked.reply(answer)
        one, other = told.ask("f"), asked.ask("f")
        assert one.messages == other.messages
        assert one.messages[0].text == "Be terse."
        assert engine.chat("told").preview().messages[:-2] == other.messages


def test_added_turns_follow_last_answer(tmp_path: Path) -> None:
    with open_engine(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        conversation = engine.chat("told", model="scripted:m")
        conversation.ask("a")
        with pytest.raises(InvalidOperationError, match="A question waits for its answer"):
            conversation.add_turns([("b", "c")])
        conversation.reply("so")
        conversation.add_turns([("b", "c")])
        conversation.add_turns([])
        assert [one.message.text for one in engine.chat("told").turns()] == ["a", "b"]


def test_invalid_added_turns_are_refused(tmp_path: Path) -> None:
    with open_engine(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        conversation = engine.chat("told")
        for wrong in (["ab"], [("a",)], [("a", "b", "c")], [("a", 7)], "ab"):
            with pytest.raises(InvalidOperationError):
                conversation.add_turns(wrong)  # type: ignore[arg-type]
        assert not conversation.turns()
