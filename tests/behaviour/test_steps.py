"""A step of a compaction counts only if it frees something."""

import pytest
from tests.conftest import Watched

from lamella import Note

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
def test_an_acknowledgement_shorter_than_the_line_for_what_is_left_out_stays(converse: type[Watched]) -> None:
    chat = acknowledged(converse, "ok")
    receipt = chat.compact(to=0.001)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["preview"]
    assert all(step.tokens_after < step.tokens_before for step in receipt.steps)
    assert "ok" in [message.text for message in chat.ask("And now?").messages]


@pytest.mark.moves_prefix(reason="a compaction moves the prefix")
def test_an_acknowledgement_longer_than_that_line_goes(converse: type[Watched]) -> None:
    thanks = " ".join(["so be it and on we go with the next of all these many points"] * 4)
    chat = acknowledged(converse, thanks)
    receipt = chat.compact(to=0.001)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["chitchat", "preview"]
    assert thanks not in [message.text for message in chat.ask("And now?").messages]
