"""Answers at the doors by their ids, as the SDKs keep them: one each, known from the first event on."""

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from tests.server.running import RunningServer, running

from lamella.testing import ScriptedProvider


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*[f"Answer {number}." for number in range(1, 20)])) as one:
        yield one


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as one:
        yield one


def test_a_response_has_one_id_from_its_first_event_to_its_last(client: openai.OpenAI) -> None:
    with client.responses.stream(model="tides", input="When?") as events:
        heard: list[Any] = list(events)
        response = events.get_final_response()
    ids = {event.response.id for event in heard if "response" in event.model_fields_set}
    assert (ids, response.output_text) == ({response.id}, "Answer 1.")
    assert client.responses.create(model="tides", input="And?", previous_response_id=response.id).output_text


def test_a_response_is_gone_on_from_although_the_same_was_asked_and_answered_since(
    server: RunningServer, client: openai.OpenAI
) -> None:
    first = client.responses.create(model="tides", input="When?")
    again = client.responses.create(model="tides", input="When?")
    assert (first.output_text, again.output_text) == ("Answer 1.", "Answer 2.")
    for asked, before in (("Why?", first), ("How?", again)):
        client.responses.create(model="tides", input=asked, previous_response_id=before.id)
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    branches = server.client.get(f"/v1/conversations/{listed['conversation']}").json()["branches"]
    told = [server.client.get(f"/v1/conversations/{listed['conversation']}?branch={one['branch']}") for one in branches]
    said = [[(turn["text"], turn["reply"]["text"]) for turn in one.json()["turns"]] for one in told]
    assert sorted(said) == [
        [("When?", "Answer 1."), ("Why?", "Answer 3.")],
        [("When?", "Answer 2."), ("How?", "Answer 4.")],
    ]


def test_a_response_that_a_conversation_never_had_is_not_gone_on_from(client: openai.OpenAI) -> None:
    made = client.responses.create(model="tides", input="When?")
    conversation = made.id.rpartition("_")[0]
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="tides", input="Hm?", previous_response_id=f"{conversation}_0123456789abcdef")


@pytest.mark.parametrize("stream", [False, True])
def test_no_two_answers_have_the_same_id(server: RunningServer, client: openai.OpenAI, *, stream: bool) -> None:
    messages: Any = [{"role": "user", "content": "When?"}]

    def complete() -> set[str]:
        made: Any = client.chat.completions.create(model="tides", messages=messages, stream=stream)
        return {chunk.id for chunk in made} if stream else {made.id}

    def write(claude: anthropic.Anthropic) -> set[str]:
        with claude.messages.stream(model="tides", max_tokens=50, messages=messages) as told:
            return {told.get_final_message().id}

    assert len(complete() | complete()) == 2
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as claude:
        assert len(write(claude) | write(claude)) == 2
