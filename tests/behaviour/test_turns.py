"""The turn runner: ask, then reply; what cannot be built changes nothing."""

import pytest
from tests.conftest import Watched

from lamella import Note
from lamella.errors import InvalidOperationError, LamellaError, SettingError


def test_turns_are_numbered_from_one(converse: type[Watched]) -> None:
    chat = converse()
    assert [chat.ask("q").number for _ in range(3)] == [1, 2, 3]


def test_reply_before_any_question_is_an_error(converse: type[Watched]) -> None:
    with pytest.raises(InvalidOperationError, match="no open turn") as caught:
        converse().reply("r")
    assert caught.value.code == "bad_call"


def test_second_reply_is_error_and_first_is_kept(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one")
    chat.reply("first")
    with pytest.raises(InvalidOperationError):
        chat.reply("second")
    assert [message.text for message in chat.ask("two").messages] == ["one", "first", "two"]


def test_turn_that_failed_leaves_no_trace(converse: type[Watched]) -> None:
    chat = converse(system={"base": "B."}, layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    for _ in range(2):
        with pytest.raises(LamellaError):
            chat.ask("bad", attach=[Note(path="", text="x")], system={"base": "changed"}, drop=["a.md"])
        with pytest.raises(SettingError):
            chat.ask("bad", system={"bass": "x"})
    turn = chat.ask("two", attach=[Note(path="a.md", text="A")])
    assert turn.number == 2
    assert turn.messages[0].text == "B."
    assert turn.envelope.layers[2].segments[0].form == "reference"


def test_failed_turn_does_not_answer_the_open_one(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one")
    with pytest.raises(LamellaError):
        chat.ask("bad", attach=[Note(path="", text="x")])
    chat.reply("late answer")
    assert [message.text for message in chat.ask("two").messages] == ["one", "late answer", "two"]


def test_two_conversations_share_no_state(converse: type[Watched]) -> None:
    one, other = converse(), converse()
    one.ask("one", attach=[Note(path="a.md", text="A")])
    assert [message.text for message in other.ask("hello").messages] == ["hello"]
