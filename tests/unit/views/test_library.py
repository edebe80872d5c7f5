"""The library and what waits, as data."""

import re

from tests.contracts.places import doc

from lamella import Conversation, Note
from lamella.views.library import find_amount, find_more, view_artifact, view_commands, view_library


def test_every_field_of_an_artifact_is_documented_and_those_that_were_promised_are_there() -> None:
    chat = Conversation(model="openai:gpt-5")
    chat.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    chat.reply("Yes.")
    body = view_library("c", chat.library(), chat.commands)
    artifacts = body["artifacts"]
    assert isinstance(artifacts, list)
    assert artifacts == [view_artifact(row) for row in chat.library()]
    promised = ("id", "kind", "title", "form", "tokens", "in_working_set", "cached", "age_turns", "saves")
    assert tuple(artifacts[0])[: len(promised)] == promised
    told = {name for line in doc("attaching.md").splitlines() for name in re.findall(r"^\| `(\w+)` \|", line)}
    assert set(artifacts[0]) <= told


def test_a_command_tells_what_the_next_request_takes_more_and_costs_more() -> None:
    chat = Conversation(model="openai:gpt-5")
    before = chat.preview()
    waits = chat.attach(Note(path="a.md", text="Alpha."))
    after = chat.preview()
    body = view_commands("c", waits, before=before, after=after)
    amounts = body["next"]
    assert isinstance(amounts, dict)
    assert amounts["more_tokens"] == after.tokens.total - before.tokens.total > 0
    assert (find_amount(after), find_more(before, after)) != (None, None)
    waiting = body["waiting"]
    assert isinstance(waiting, dict)
    assert [one["id"] for one in waiting["attach"]] == ["a.md"]


def test_without_a_known_price_there_is_no_amount() -> None:
    chat = Conversation()
    turn = chat.preview()
    assert (find_amount(turn), find_more(turn, turn)) == (None, None)
