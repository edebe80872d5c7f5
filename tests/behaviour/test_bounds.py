"""Bounds are where the documents say: what is exactly at one is still inside."""

import pytest
from tests.conftest import Watched
from tests.unit.seen import forms

from lamella import Conversation, Note
from lamella.core.prompt.layers.model import LayerId


def test_a_request_of_exactly_the_warn_share_has_no_warning_and_one_token_more_has_one() -> None:
    total = Conversation().ask("word " * 300).tokens.total

    def warnings(words: int) -> tuple[str, ...]:
        chat = Conversation(window=2 * total, reserve=0, warn=0.5, target=0.6, trigger=0.7, hard=0.9)
        return chat.ask("word " * words).envelope.warnings

    assert warnings(300) == ()
    assert len(warnings(301)) == 1


def in_one_line(path: str, length: int) -> str:
    return f"- {path}, {length:,} characters\n"


@pytest.mark.moves_prefix(reason="the note goes into the library")
@pytest.mark.parametrize(("more", "form"), [(0, "full"), (1, "handle")])
def test_a_note_becomes_one_line_only_if_that_line_is_shorter_than_its_text(
    converse: type[Watched], more: int, form: str
) -> None:
    path = "a-note-with-a-rather-long-name.md"
    length = len(in_one_line(path, 10)) + more
    compaction = {"steps": ["handle"], "every_kind": {"handle_after": 0}}
    chat = converse(layout="library", compaction=compaction)
    # Text that takes a token per character, so that one line weighs less in tokens either way.
    chat.ask("Read this.", attach=[Note(path=path, text=("7;" * length)[:length])])
    chat.reply("I did.")
    chat.ask("Go on.")
    chat.reply("I do.")
    chat.compact(to=0.0001)
    turn = chat.ask("And now?")
    assert forms(turn, LayerId.L2) == [(path, form)]
    assert (in_one_line(path, length) in turn.messages[0].text) == (form == "handle")
