"""A reason as data, in the names that are documented."""

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella import Conversation, Note
from lamella.schemas.prompts import explanation_to_json


def test_reason_has_every_field_that_is_documented() -> None:
    chat = Conversation(layout="library")
    chat.ask("Read this.", attach=[Note(path="a.md", text="A")])
    chat.reply("I did.")
    body = as_json(explanation_to_json("garden", chat.why("a.md")))
    tokens = chat.why("a.md").segments[0][1].tokens
    assert body == {
        "lamella": 1,
        "conversation": "garden",
        "id": "a.md",
        "kind": "note",
        "title": "a",
        "in_prompt": True,
        "why": "Attached in turn 1; attachments stay while there is room. It is in the context library in full.",
        "turns": [1],
        "segments": [{"layer": "L2_PREVIOUS", "form": "full", "place": "system", "tokens": tokens}],
        "brings_in": [],
        "misses": [],
    }
    page = doc("reference/json-output.md")
    assert list(body) == names(page, under="PromptExplanationJson")
    assert names(page, under="PlacedArtifactJson") == ["layer", "form", "place", "tokens"]
    assert names(page, under="SuggestedActionJson") == ["do", "what"]
    assert as_json(explanation_to_json("garden", chat.why("b.md")))["brings_in"] == [{"do": "attach", "what": "b.md"}]
