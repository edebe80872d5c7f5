"""Branches made in Python are seen on the command line, and the other way round."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import servers

import lamella
from lamella import Conversation, Note
from lamella.cli import main


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}" if request.param == "sqlite" else servers.shared().make_store_url()


@contextmanager
def chat_at(url: str, **settings: object) -> Iterator[Conversation]:
    """The conversation, opened again."""
    with lamella.open(url) as engine:
        yield engine.chat("demo", **settings)


def said(chat: Conversation, head: str | None = None) -> list[str]:
    return [node.text for record in chat.turns(head) for node in (record.message, record.reply) if node]


def talk(url: str, **settings: object) -> list[str]:
    """Three turns, the first with a note; the ids of their messages."""
    with chat_at(url, **settings) as conversation:
        for number in (1, 2, 3):
            conversation.ask(f"q{number}", attach=[Note(path="a.md", text="Apple.")] if number == 1 else [])
            conversation.reply(f"a{number}")
        return [node.id for record in conversation.turns() for node in (record.message, record.reply) if node]


def shown(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main(["chats", "show", "demo", *words, "--store", url]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_branch_can_be_shown_and_continued(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = talk(url)
    ends = {names[-1]: ["q1", "a1", "q2", "a2", "q3", "a3"]}
    with chat_at(url) as conversation:
        conversation.edit(names[2], "q2, edited")
        conversation.reply("a2, edited")
        ends[conversation.head] = ["q1", "a1", "q2, edited", "a2, edited"]
    with chat_at(url) as conversation:
        conversation.regenerate()
        conversation.reply("a2, again")
        ends[conversation.head] = ["q1", "a1", "q2, edited", "a2, again"]
    with chat_at(url) as conversation:
        conversation.delete(names[0])
        ends[conversation.head] = ["q2, edited", "a2, again"]
    assert main(["chats", "fork", "demo", "--at", names[3], "--store", url]) == 0
    with chat_at(url) as conversation:
        conversation.ask("q3, elsewhere")
        ends[conversation.head] = ["q1", "a1", "q2", "a2", "q3, elsewhere"]
        assert set(conversation.branches()) == set(ends)
        for head, texts in ends.items():
            assert said(conversation, head) == texts
    for head, texts in ends.items():
        lines = shown(url, capsys, "--branch", head)
        assert [line.partition(": ")[2] for line in lines[:-1] if " + " not in line] == texts
        assert set(lines[-1].removeprefix("other branches: ").split(", ")) == set(ends) - {head}
        with chat_at(url) as conversation:
            conversation.switch(head)
            assert said(conversation) == texts
    assert main(["store", "verify", "--store", url]) == 0


def test_fork_made_by_cli_is_branch_in_python(url: str) -> None:
    names = talk(url, layout="in_place")
    assert main(["chats", "fork", "demo", "--at", names[1], "--store", url]) == 0
    with chat_at(url) as conversation:
        turn = conversation.ask("elsewhere", attach=[Note(path="a.md", text="Apple.")])
        # Nothing before it was rewritten, so nothing folds.
        assert (turn.prefix_change.cause, turn.envelope.epoch, turn.number) == ("branch", 0, 2)
        assert said(conversation) == ["q1", "a1", "elsewhere"]
        conversation.reply("yes")
        assert conversation.ask("on").prefix_change.cause == "none"


def test_regenerating_after_opening_sends_the_same_request_again(url: str) -> None:
    with chat_at(url, layout="in_place") as conversation:
        conversation.ask("q1", attach=[Note(path="a.md", text="Apple.")])
        conversation.reply("a1")
        first = conversation.ask("q2", attach=[Note(path="b.md", text="Bear.")])
        conversation.reply("a2")
    with chat_at(url) as conversation:
        again = conversation.regenerate()
        assert again.envelope == first.envelope
        assert again.prefix_change.cause == "none"
        conversation.reply("a2, better")
        following = conversation.ask("q3")
        assert (following.prefix_change.cause, following.envelope.epoch) == ("none", 0)


def test_branch_made_elsewhere_is_conflict_until_reload(url: str) -> None:
    names = talk(url)
    with chat_at(url) as mine, chat_at(url) as theirs:
        theirs.fork(names[1])
        with pytest.raises(lamella.LamellaError, match="7 events; 6 were expected"):
            mine.ask("q4")
        mine.reload()
        assert mine.head == names[1]
        mine.switch(names[-1])
        mine.ask("q4")
        theirs.reload()
        assert said(theirs) == ["q1", "a1", "q2", "a2", "q3", "a3", "q4"]


def test_message_on_other_branch_is_removed_after_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    names = talk(url)
    assert main(["chats", "fork", "demo", names[1], "--store", url]) == 0
    assert main(["chats", "remove", "demo", names[4], "--store", url]) == 2
    told = capsys.readouterr().err
    assert f"error: The message {names[4]} of demo is on another branch." in told
    hinted = told.partition("`lamella ")[2].partition("`")[0]
    assert main([*hinted.split(), "--store", url]) == 0
    assert main(["chats", "remove", "demo", names[4], "--store", url]) == 0
