"""The library and what waits, as data."""

from tests.bodies import as_json
from tests.contracts.repository import doc
from tests.contracts.tables import names

from lamella import Conversation, Note
from lamella.schemas.library import ArtifactJson, commands_to_json, cost_difference, estimated_cost, library_to_json


def test_library_json_fields_are_documented_and_complete() -> None:
    chat = Conversation(model="openai:gpt-5")
    chat.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    chat.reply("Yes.")
    artifacts = as_json(library_to_json("c", chat.library(), chat.pending_commands))["artifacts"]
    assert [(one["id"], one["saves"]) for one in artifacts] == [(row.id, row.tokens_saved) for row in chat.library()]
    promised = ("id", "kind", "title", "form", "tokens", "in_working_set", "cached", "age_turns", "saves")
    assert tuple(artifacts[0])[: len(promised)] == promised
    assert list(artifacts[0]) == list(ArtifactJson.__struct_fields__)
    assert list(artifacts[0]) == names(doc("reference/json-output.md"), under="ArtifactJson")


def test_library_command_json_has_extra_tokens_and_cost() -> None:
    chat = Conversation(model="openai:gpt-5")
    before = chat.preview()
    waits = chat.attach(Note(path="a.md", text="Alpha."))
    after = chat.preview()
    body = commands_to_json("c", waits, before=before, after=after)
    assert body.next.more_tokens == after.tokens.total - before.tokens.total > 0
    assert (estimated_cost(after), cost_difference(before, after)) != (None, None)
    assert [one.id for one in body.waiting.attach] == ["a.md"]


def test_unknown_price_gives_no_amount() -> None:
    chat = Conversation()
    turn = chat.preview()
    assert (estimated_cost(turn), cost_difference(turn, turn)) == (None, None)
