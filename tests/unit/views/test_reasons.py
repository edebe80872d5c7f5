"""A reason as data, in the names that are documented."""

import re

from tests.contracts.places import doc

from lamella import Conversation, Note
from lamella.views.reasons import view_reason


def test_a_reason_has_every_field_that_is_documented() -> None:
    chat = Conversation(layout="library")
    chat.ask("Read this.", attach=[Note(path="a.md", text="A")])
    chat.reply("I did.")
    body = view_reason("garden", chat.why("a.md"))
    tokens = chat.why("a.md").segments[0][1].tokens
    assert body == {
        "lamella": 1,
        "conversation": "garden",
        "id": "a.md",
        "kind": "note",
        "title": "a",
        "in_prompt": True,
        "why": "It came with turn 1; what was attached stays while there is room. "
        "It stands in the context library in full.",
        "turns": [1],
        "segments": [{"layer": "L2_PREVIOUS", "form": "full", "place": "system", "tokens": tokens}],
        "brings_in": [],
    }
    known = set(re.findall(r"`(\w+)`", doc("conversations.md")))
    assert {*body, "layer", "form", "place", "tokens", "do", "what"} - known == set()
    assert view_reason("garden", chat.why("b.md"))["brings_in"] == [{"do": "attach", "what": "b.md"}]
