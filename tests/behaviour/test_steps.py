"""A step of a compaction counts only if it frees something."""

import pytest
from tests.conftest import Watched

from lamella import Conversation, Note

LONG = "# Part one\n\n" + "first words " * 600


def acknowledged(converse: type[Watched], thanks: str) -> Watched:
    """A conversation with one long note and one acknowledgement."""
    chat = converse(layout="in_place", compaction={"steps": ["chitchat", "preview"], "words": [thanks]})
    chat.ask("Read this.", attach=[Note(path="a.md", text=LONG)])
    chat.reply("I did.")
    for said in (thanks, "What does it say?", "Why?"):
        chat.ask(said)
        chat.reply("It is as it says.")
    return chat


@pytest.mark.moves_prefix(reason="a compaction moves the prefix")
def test_acknowledgement_shorter_than_notice_is_kept(converse: type[Watched]) -> None:
    chat = acknowledged(converse, "ok")
    receipt = chat.compact(to=0.001)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["preview"]
    assert all(step.tokens_after < step.tokens_before for step in receipt.steps)
    assert "ok" in [message.text for message in chat.ask("And now?").messages]


@pytest.mark.moves_prefix(reason="a compaction moves the prefix")
def test_acknowledgement_longer_than_notice_is_removed(converse: type[Watched]) -> None:
    thanks = " ".join(["so be it and on we go with the next of all these many points"] * 4)
    chat = acknowledged(converse, thanks)
    receipt = chat.compact(to=0.001)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["chitchat", "preview"]
    assert thanks not in [message.text for message in chat.ask("And now?").messages]


def test_auto_listing_does_not_prevent_preview_or_handle() -> None:
    chat = Conversation(layout="auto", window=8_000, reserve=0, attachments="sticky")
    chat.ask("One?", attach=[Note(path="dead.md", text="A line of a dead note.\n" * 300)])
    chat.reply("Yes.")
    chat.ask("Two?", attach=[Note(path="alive.md", text="A line of a note that lives.\n" * 300)], detach=["dead.md"])
    chat.reply("It is so. " * 40)
    chat.ask("Three?")
    chat.reply("Yes.")
    folded = chat.preview("", fold=True).tokens
    receipt = chat.compact(to=(folded.total - 100) / folded.limit)
    assert receipt is not None
    assert [(step.name, step.removed) for step in receipt.steps] == [("preview", ("alive.md",))]
