"""One budget for the whole request: a warning, and an error that names the largest parts."""

from pathlib import Path

import pytest
from tests.conftest import Watched

import lamella
from lamella import ContextBudgetExceededError, Conversation, Folder, Note, Tool


def asked(limit: int) -> Conversation:
    return Conversation(window=limit + 100, reserve=100, system="Be brief.")


def test_request_above_warn_is_sent_with_a_warning_that_has_the_numbers() -> None:
    total = asked(10_000).ask("word " * 300).tokens.total
    turn = asked(int(total / 0.65)).ask("word " * 300)
    (warning,) = turn.envelope.warnings
    assert f"{total:,}" in warning
    assert "65%" in warning


def test_request_at_or_below_warn_has_no_warning() -> None:
    total = asked(10_000).ask("word " * 300).tokens.total
    assert asked(int(total / 0.55)).ask("word " * 300).envelope.warnings == ()


def test_request_above_hard_is_not_sent_and_error_names_protected_parts() -> None:
    chat = asked(1_000)
    notes = [
        Note(path=name, text="word " * words, policy="pin") for name, words in (("big.md", 2_000), ("small.md", 200))
    ]
    with pytest.raises(ContextBudgetExceededError) as caught:
        chat.ask("hello", attach=notes)
    error = caught.value
    assert error.code == "budget_exceeded"
    assert error.limit == 1_000
    assert error.hard == 950
    assert error.needed > 2_000
    assert [name.rpartition(" (")[0] for name in error.protected] == [
        "big.md, attached now",
        "small.md, attached now",
        "what marks off messages",
        "the system prompt's base",
        "what was typed now",
    ]
    assert "big.md" in error.hint
    assert f"{error.needed:,}" in error.message


def test_oversized_pinned_folder_is_named_with_its_contents(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text("word " * 500, encoding="utf-8")
    chat = Conversation(window=1_100, reserve=100, vault=tmp_path)
    for one, named in (
        (Folder(path="docs", policy="pin"), "folder docs"),
        (Note(path="docs/a.md", text="word " * 2_000, policy="pin"), ""),
    ):
        with pytest.raises(ContextBudgetExceededError) as caught:
            chat.ask("hello", attach=[one])
        assert [name.partition(" (")[0] for name in caught.value.expanded] == ([named] if named else [])
        assert caught.value.hint.startswith(
            "Attach fewer notes by their paths in place of folder docs (3 notes, 1," if named else "Kept whatever"
        )


def test_refused_turn_leaves_conversation_unchanged(converse: type[Watched]) -> None:
    chat = converse(window=1_100, reserve=100)
    first = chat.ask("hello")
    chat.reply("hi")
    with pytest.raises(ContextBudgetExceededError):
        chat.ask("too much", attach=[Note(path="big.md", text="word " * 2_000, policy="pin")])
    second = chat.ask("again")
    assert [message.text for message in second.messages] == ["hello", "hi", "again"]
    assert (first.number, second.number) == (1, 2)


@pytest.mark.parametrize("share", [0.86, 0.90, 0.94])
def test_between_trigger_and_hard_a_request_is_sent(share: float) -> None:
    total = asked(10_000).ask("word " * 300).tokens.total
    assert asked(int(total / share)).ask("word " * 300).tokens.total == total


def test_request_is_refused_one_token_above_hard_threshold() -> None:
    total = Conversation().ask("word " * 300).tokens.total

    def chat() -> Conversation:
        return Conversation(window=2 * total, reserve=0, warn=0.1, target=0.2, trigger=0.3, hard=0.5)

    assert chat().ask("word " * 300).tokens.total == total
    with pytest.raises(ContextBudgetExceededError) as caught:
        chat().ask("word " * 301)
    assert (caught.value.needed, caught.value.hard) == (total + 1, total)


def test_tool_definitions_are_part_of_the_budget() -> None:
    chat = Conversation(window=1_100, reserve=100)
    with pytest.raises(ContextBudgetExceededError):
        chat.ask("hi", tools=[Tool(name="t", description="word " * 2_000)])


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_thirty_notes_are_outlined_named_or_counted_and_reopen_the_same(layout: str, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'chats.db'}"
    conversation = lamella.open(place, summarizer="off").chat("many", layout=layout, window=1_500, reserve=0)
    notes = [Note(path=f"notes/{number}.md", text=f"heron{number} " + "stands still " * 90) for number in range(30)]
    turn = conversation.ask("Which one?", attach=notes)
    text = turn.messages[-1].text
    assert turn.tokens.total <= 0.95 * 1_500
    shown = [number for number in range(30) if f"heron{number} " in text]
    named = [number for number in range(30) if f"- notes/{number}.md\n" in text]
    assert shown
    assert named
    assert sorted((*shown, *named)) == list(range(30))
    assert any("only named: " in warning for warning in turn.envelope.warnings)
    assert conversation.recall("heron29")[0].passage.title == "notes/29.md"
    conversation.reply("The first.")
    anew = lamella.open(place, summarizer="off").chat("many")
    assert anew.preview("Why?").messages == conversation.preview("Why?").messages == conversation.ask("Why?").messages


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("how", ["link", "pin"])
def test_omitted_note_is_sent_whole_when_linked_or_pinned(layout: str, how: str) -> None:
    chat = Conversation(layout=layout, window=1_000, reserve=0)
    pinned = Note(path="law.md", text="The law. " * 275, policy="pin")
    turn = chat.ask("Which one?", attach=[Note(path="heron.md", text="The heron stands still. " * 40), pinned])
    assert any("only named: heron.md" in warning for warning in turn.envelope.warnings)
    chat.reply("None.")
    chat.ask("Let the law go.", unpin=["law.md"])
    chat.reply("It is gone.")
    asked = "And {[[heron]]}?" if how == "link" else "And the heron?"
    turn = chat.ask(asked, drop=["law.md"], pin=["heron.md"] if how == "pin" else [])
    assert turn.envelope.warnings == ()
    assert "The heron stands still. " * 40 in turn.messages[-1].text
