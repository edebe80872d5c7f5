"""A value exactly at a documented limit is still allowed."""

import pytest
from tests.conftest import Watched
from tests.unit.rendered import forms

from lamella import Conversation, Note
from lamella.core.prompt.layers.model import LayerId


def test_warning_appears_one_token_above_warn_share() -> None:
    total = Conversation().ask("word " * 300).tokens.total

    def warnings(words: int) -> tuple[str, ...]:
        chat = Conversation(window=2 * total, reserve=0, warn=0.5, target=0.6, trigger=0.7, hard=0.9)
        return chat.ask("word " * words).envelope.warnings

    assert warnings(300) == ()
    assert len(warnings(301)) == 1


@pytest.mark.moves_prefix(reason="the note goes into the library")
@pytest.mark.parametrize("text", ["7", "7;" * 40])
def test_note_of_any_length_can_become_one_line(converse: type[Watched], text: str) -> None:
    path = "a-note-with-a-rather-long-name.md"
    compaction = {"steps": ["handle"], "every_kind": {"handle_after": 0}}
    chat = converse(layout="library", compaction=compaction)
    chat.ask("Read this.", attach=[Note(path=path, text=text)])
    chat.reply("I did.")
    chat.ask("Go on.")
    chat.reply("I do.")
    chat.compact(to=0.0001)
    turn = chat.ask("And now?")
    assert forms(turn, LayerId.L2) == [(path, "handle")]
    assert f"- {path}\n" in turn.messages[0].text
