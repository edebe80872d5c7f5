"""Doors: the real SDKs of OpenAI and Anthropic as clients, the upstream being a script."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.server.running import RunningServer, running

from lamella import ToolCall
from lamella.core.messages import StopReason, Usage
from lamella.testing import ScriptedProvider, ScriptedReply

SPEC = "# Spec\n\n" + "The sluice opens at noon, and closes when the heron leaves. " * 8
DOCUMENT = f'<document path="spec.md">\n{SPEC}\n</document>'
USAGE = Usage(plain=20, read=80, write=0, output=7, reasoning=2)
CALL = ToolCall(id="call_1", name="tide_table", arguments='{"day": "today"}')
PARAMETERS: dict[str, object] = {"type": "object", "properties": {"day": {"type": "string"}}}

Messages = list[dict[str, Any]]
# Asks a history through one of the doors, streaming or not: the answer's text, and how it ended.
Ask = Callable[..., str]


@pytest.fixture
def script() -> ScriptedProvider:
    return ScriptedProvider(
        *[ScriptedReply(text=f"Answer {number}.", usage=USAGE, chunk_size=4) for number in range(1, 30)]
    )


@pytest.fixture
def server(script: ScriptedProvider) -> Iterator[RunningServer]:
    with running("memory:", script) as one:
        yield one


@pytest.fixture
def chat_client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
def claude_client(server: RunningServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture(params=["chat", "chat-stream", "responses", "responses-stream", "messages", "messages-stream"])
def ask(request: pytest.FixtureRequest, chat_client: openai.OpenAI, claude_client: anthropic.Anthropic) -> Ask:
    door, _, stream = str(request.param).partition("-")
    asks = {"chat": _ask_chat, "responses": _ask_responses, "messages": _ask_messages}
    client = claude_client if door == "messages" else chat_client
    return lambda messages: asks[door](client, messages, bool(stream))


# Clients are taken for what they do here: their types know every field of every API.
def _ask_chat(client: Any, messages: Any, stream: bool) -> str:  # noqa: ANN401, FBT001
    made = client.chat.completions.create(model="tides", messages=messages, stream=stream)
    if not stream:
        return str(made.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in made if chunk.choices)


def _ask_responses(client: Any, messages: Any, stream: bool) -> str:  # noqa: ANN401, FBT001
    made = client.responses.create(model="tides", input=messages, stream=stream)
    if not stream:
        return str(made.output_text)
    events = list(made)
    assert events[-1].type == "response.completed"
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def _ask_messages(client: Any, messages: Any, stream: bool) -> str:  # noqa: ANN401, FBT001
    if not stream:
        made = client.messages.create(model="tides", max_tokens=200, messages=messages)
        return "".join(block.text for block in made.content if block.type == "text")
    with client.messages.stream(model="tides", max_tokens=200, messages=messages) as told:
        return "".join(told.text_stream)


def test_a_history_goes_on_in_one_conversation_and_what_is_sent_extends_the_prefix(
    ask: Ask, server: RunningServer, script: ScriptedProvider
) -> None:
    history: Messages = [{"role": "user", "content": f"{DOCUMENT}\n\nWhen does the sluice open?"}]
    for number in range(1, 4):
        answer = ask(history)
        assert answer == f"Answer {number}."
        history += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": f"{DOCUMENT}\n\nAnd what of question {number}?"},
        ]
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    said = server.client.get(f"/v1/conversations/{listed['conversation']}").json()
    assert [turn["text"] for turn in said["turns"]] == [
        "When does the sluice open?",
        "And what of question 1?",
        "And what of question 2?",
    ]
    assert [turn["attached"] for turn in said["turns"]] == [["spec.md"]] * 3
    sent = [[message.text for message in request.messages] for request in script.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))
    assert sum(text.count("The sluice opens at noon") for text in sent[-1]) == 8


@pytest.mark.parametrize("stream", [False, True])
def test_usage_and_the_end_are_told_as_the_api_tells_them(
    *, stream: bool, chat_client: openai.OpenAI, claude_client: anthropic.Anthropic
) -> None:
    history: Any = [{"role": "user", "content": f"Streaming: {stream}?"}]
    if stream:
        chunks = list(
            chat_client.chat.completions.create(
                model="tides", messages=history, stream=True, stream_options={"include_usage": True}
            )
        )
        usage, finish = chunks[-1].usage, chunks[-2].choices[0].finish_reason
        with claude_client.messages.stream(model="tides", max_tokens=200, messages=history) as told:
            message: Any = told.get_final_message()
    else:
        made = chat_client.chat.completions.create(model="tides", messages=history)
        usage, finish = made.usage, made.choices[0].finish_reason
        message = claude_client.messages.create(model="tides", max_tokens=200, messages=history)
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens) == (100, 80, 7)
    assert finish == "stop"
    counts = message.usage
    assert (counts.input_tokens, counts.cache_read_input_tokens, counts.output_tokens) == (20, 80, 7)
    assert message.stop_reason == "end_turn"


@pytest.fixture
def calling() -> Iterator[RunningServer]:
    lines = [
        ScriptedReply(text="Let me look.", calls=(CALL,), usage=USAGE),
        ScriptedReply(text="At noon.", usage=USAGE),
    ]
    with running("memory:", ScriptedProvider(*lines, *lines)) as one:
        yield one


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_an_openai_client_pass_through_and_come_back(calling: RunningServer, *, stream: bool) -> None:
    told = {"name": "tide_table", "description": "Tides of a day.", "parameters": PARAMETERS}
    tools: Any = [{"type": "function", "function": told}]
    history: Any = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "When is high tide?"}]
    with openai.OpenAI(base_url=f"{calling.url}/v1", api_key="unused", max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(model="tides", messages=history, tools=tools) as events:
                made: Any = events.get_final_completion()
        else:
            made = client.chat.completions.create(model="tides", messages=history, tools=tools)
        (call,) = made.choices[0].message.tool_calls
        assert (call.id, call.function.name, call.function.arguments) == ("call_1", "tide_table", '{"day": "today"}')
        assert made.choices[0].finish_reason == "tool_calls"
        history += [
            {
                "role": "assistant",
                "content": made.choices[0].message.content,
                "tool_calls": [{"id": "call_1", "type": "function", "function": call.function.model_dump()}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "12:00"},
        ]
        again = client.chat.completions.create(model="tides", messages=history, tools=tools)
    assert again.choices[0].message.content == "At noon."
    (listed,) = calling.client.get("/v1/conversations").json()["chats"]
    (turn,) = calling.client.get(f"/v1/conversations/{listed['conversation']}").json()["turns"]
    assert turn["rounds"][0]["calls"][0]["output"] == "12:00"
    assert turn["reply"]["text"] == "At noon."


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_an_anthropic_client_pass_through_and_come_back(calling: RunningServer, *, stream: bool) -> None:
    tools: Any = [{"name": "tide_table", "description": "Tides of a day.", "input_schema": PARAMETERS}]
    history: Any = [{"role": "user", "content": "When is high tide?"}]
    with anthropic.Anthropic(base_url=calling.url, api_key="unused", max_retries=0) as client:
        given: Any = {"model": "tides", "max_tokens": 200, "messages": history, "tools": tools, "system": "Be terse."}
        if stream:
            with client.messages.stream(**given) as events:
                made = events.get_final_message()
        else:
            made = client.messages.create(**given)
        assert made.stop_reason == "tool_use"
        used = made.content[-1]
        assert used.type == "tool_use"
        assert (used.id, used.name, used.input) == ("call_1", "tide_table", {"day": "today"})
        history += [
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in made.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "12:00"}]},
        ]
        again = client.messages.create(**given)
    assert again.content[0].type == "text"
    assert again.content[0].text == "At noon."
    (listed,) = calling.client.get("/v1/conversations").json()["chats"]
    assert len(calling.client.get(f"/v1/conversations/{listed['conversation']}").json()["turns"]) == 1


def test_tools_of_a_responses_client_come_back_after_the_response_that_called_them(calling: RunningServer) -> None:
    tools: Any = [{"type": "function", "name": "tide_table", "parameters": PARAMETERS, "strict": False}]
    with openai.OpenAI(base_url=f"{calling.url}/v1", api_key="unused", max_retries=0) as client:
        made = client.responses.create(model="tides", input="When is high tide?", tools=tools)
        called = made.output[-1]
        assert called.type == "function_call"
        result: Any = [{"type": "function_call_output", "call_id": called.call_id, "output": "12:00"}]
        again = client.responses.create(model="tides", input=result, previous_response_id=made.id, tools=tools)
        assert again.output_text == "At noon."


def test_a_response_is_gone_on_from_by_its_id(chat_client: openai.OpenAI, server: RunningServer) -> None:
    first = chat_client.responses.create(model="tides", input="When?")
    second = chat_client.responses.create(model="tides", input="And then?", previous_response_id=first.id)
    other = chat_client.responses.create(model="tides", input="Or else?", previous_response_id=first.id)
    assert len({first.id, second.id, other.id}) == 3
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    said = server.client.get(f"/v1/conversations/{listed['conversation']}").json()
    assert [turn["text"] for turn in said["turns"]] == ["When?", "Or else?"]
    assert len(said["branches"]) == 2
    with pytest.raises(openai.BadRequestError):
        chat_client.responses.create(model="tides", input="Hm?", previous_response_id="resp-elsewhere")
    with pytest.raises(openai.NotFoundError):
        chat_client.responses.create(model="tides", input="Hm?", previous_response_id="resp_nobody_none")


def test_a_conversation_is_named_by_a_header_or_a_field_and_attachments_ride_in_the_field(
    chat_client: openai.OpenAI, claude_client: anthropic.Anthropic, server: RunningServer
) -> None:
    attach = [{"kind": "note", "path": "spec.md", "text": SPEC}]
    raw = chat_client.chat.completions.with_raw_response.create(
        model="tides",
        messages=[{"role": "user", "content": "When?"}],
        extra_body={"lamella": {"conversation": "sluices", "attach": attach}},
    )
    key = server.client.get("/v1/conversations/sluices").json()["conversation"]
    assert raw.headers["x-lamella-conversation"] == key
    claude_client.messages.create(
        model="tides",
        max_tokens=100,
        messages=[{"role": "user", "content": "And why?"}],
        extra_headers={"X-Lamella-Conversation": "sluices"},
    )
    said = server.client.get("/v1/conversations/sluices").json()
    assert [(turn["text"], turn["attached"]) for turn in said["turns"]] == [("When?", ["spec.md"]), ("And why?", [])]


def test_a_history_that_begins_elsewhere_is_taken_up_as_it_is_told(
    chat_client: openai.OpenAI, server: RunningServer, script: ScriptedProvider
) -> None:
    history: Any = [
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "First."},
        {"role": "user", "content": "Two?"},
    ]
    chat_client.chat.completions.create(model="tides", messages=history)
    assert [message.text for message in script.requests[0].messages] == ["Be terse.", "One?", "First.", "Two?"]
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    assert len(server.client.get(f"/v1/conversations/{listed['conversation']}").json()["turns"]) == 2


def test_an_earlier_question_that_the_client_changed_makes_a_branch(
    chat_client: openai.OpenAI, server: RunningServer, script: ScriptedProvider
) -> None:
    history: Any = [{"role": "user", "content": "One?"}]
    for text in ("Two?", "Three?"):
        made = chat_client.chat.completions.create(model="tides", messages=history)
        history += [
            {"role": "assistant", "content": made.choices[0].message.content},
            {"role": "user", "content": text},
        ]
    changed = [*history[:2], {"role": "user", "content": "Two, otherwise?"}]
    chat_client.chat.completions.create(model="tides", messages=changed)
    again = chat_client.chat.completions.create(model="tides", messages=changed)
    assert again.choices[0].message.content == "Answer 4."
    assert [message.text for message in script.requests[-1].messages if message.role == "user"] == [
        "One?",
        "Two, otherwise?",
    ]
    assert len(server.client.get("/v1/conversations").json()["chats"]) == 1


def test_a_host_that_compacts_by_itself_is_noticed_and_the_conversation_has_all_of_it(
    chat_client: openai.OpenAI, server: RunningServer, script: ScriptedProvider
) -> None:
    headers = {"X-Lamella-Conversation": "long"}
    history: Any = []
    for number in range(3):
        history.append({"role": "user", "content": f"Question {number}?"})
        made = chat_client.chat.completions.create(model="tides", messages=history, extra_headers=headers)
        history.append({"role": "assistant", "content": made.choices[0].message.content})
    shortened = [
        {"role": "user", "content": "Summary of what was said: much."},
        {"role": "assistant", "content": "I see."},
        *history[-2:],
        {"role": "user", "content": "And now?"},
    ]
    raw = chat_client.chat.completions.with_raw_response.create(
        model="tides", messages=shortened, extra_headers=headers
    )
    assert raw.headers["x-lamella-note"] == "host_compacted"
    asked = [message.text for message in script.requests[-1].messages if message.role == "user"]
    assert asked == ["Question 0?", "Question 1?", "Question 2?", "And now?"]


def test_what_cannot_be_had_is_refused_and_what_changes_little_is_told_as_ignored(
    chat_client: openai.OpenAI, claude_client: anthropic.Anthropic
) -> None:
    history: Any = [{"role": "user", "content": "When?"}]
    raw = chat_client.chat.completions.with_raw_response.create(model="tides", messages=history, top_p=0.5, seed=1)
    assert raw.headers["x-lamella-note"] == "ignored: seed, top_p"
    odd: dict[str, Any] = {"": 1, "a\r\nForged: yes": 1, "ключ": 1, "plain": 1}
    raw = chat_client.chat.completions.with_raw_response.create(model="tides", messages=history, extra_body=odd)
    assert raw.headers["x-lamella-note"] == "ignored: plain, 3 more"
    assert "forged" not in raw.headers
    refused: list[dict[str, Any]] = [
        {"n": 2},
        {"stop": ["."]},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"tool_choice": "required"},
    ]
    for one in refused:
        with pytest.raises(openai.BadRequestError) as told:
            chat_client.chat.completions.create(model="tides", messages=history, **one)
        assert told.value.code == "bad_call"
    with pytest.raises(anthropic.BadRequestError) as stopped:
        claude_client.messages.create(model="tides", max_tokens=9, messages=history, stop_sequences=["."])
    assert stopped.value.body == {
        "type": "error",
        "error": {
            "code": "bad_call",
            "message": "stop_sequences cannot be had here.",
            "hint": "Leave it out.",
            "type": "invalid_request_error",
        },
    }


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Hello."}],
        [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}],
        [{"role": "user", "content": "Hi."}, {"role": "tool", "tool_call_id": "x", "content": "y"}],
        [{"role": "oracle", "content": "Hi."}],
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
    ],
)
def test_a_history_that_makes_no_sense_is_refused(server: RunningServer, messages: Messages) -> None:
    answer = server.client.post("/v1/chat/completions", json={"model": "tides", "messages": messages})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_call")


def test_an_answer_that_was_cut_by_its_length_says_so() -> None:
    cut = ScriptedReply(text="At n", stop_reason=StopReason.LENGTH, usage=USAGE)
    with running("memory:", ScriptedProvider(cut, cut, cut)) as server:
        history: Any = [{"role": "user", "content": "When?"}]
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
            made = client.chat.completions.create(model="tides", messages=history)
            response = client.responses.create(model="tides", input="And?")
        with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as claude:
            message = claude.messages.create(model="tides", max_tokens=9, messages=[{"role": "user", "content": "Or?"}])
    assert made.choices[0].finish_reason == "length"
    assert (response.status, message.stop_reason) == ("incomplete", "max_tokens")


def test_models_are_listed_for_both_sdks(chat_client: openai.OpenAI, claude_client: anthropic.Anthropic) -> None:
    assert [model.id for model in chat_client.models.list()] == ["scripted:tides"]
    assert [model.id for model in claude_client.models.list()] == ["scripted:tides"]


def test_a_key_that_no_header_can_hold_is_told_and_taken_encoded() -> None:
    with running("memory:", ScriptedProvider("At noon.", "At six.", "At ten.")) as server:
        begun = server.begin("empty")
        archive = server.client.get(f"/v1/conversations/{begun}/export").text
        archive = archive.replace(begun, "ключ_1").replace("name: empty", "name: other")
        assert server.client.post("/v1/conversations/import", json={"archive": archive}).status_code == 201
        body = {"model": "lamella", "input": "When?", "lamella": {"conversation": "other"}}
        first = server.client.post("/v1/responses", json=body)
        assert (first.status_code, first.headers["x-lamella-conversation"]) == (200, "%D0%BA%D0%BB%D1%8E%D1%87_1")
        named = {"X-Lamella-Conversation": first.headers["x-lamella-conversation"]}
        asked = {"model": "lamella", "messages": [{"role": "user", "content": "And then?"}]}
        assert server.client.post("/v1/chat/completions", json=asked, headers=named).status_code == 200
        again = {"model": "lamella", "input": "And?", "previous_response_id": first.json()["id"]}
        assert server.client.post("/v1/responses", json=again).status_code == 200
        assert len(server.client.get("/v1/conversations/other").json()["branches"]) == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x.png", "http://169.254.169.254/x.png", "file:///etc/passwd"])
def test_no_picture_is_fetched_from_an_address_that_is_not_public(server: RunningServer, url: str) -> None:
    text = {"type": "text", "text": "What is this?"}
    for path, picture in (
        ("/v1/chat/completions", {"type": "image_url", "image_url": {"url": url}}),
        ("/v1/messages", {"type": "image", "source": {"type": "url", "url": url}}),
    ):
        body = {"model": "lamella", "max_tokens": 9, "messages": [{"role": "user", "content": [text, picture]}]}
        refused = server.client.post(path, json=body)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["code"] in ("source_refused", "bad_artifact")


@pytest.mark.parametrize("kind", ["text", "input_text"])
def test_a_document_that_is_a_part_of_its_own_is_attached_and_known_again(
    chat_client: openai.OpenAI, server: RunningServer, script: ScriptedProvider, kind: str
) -> None:
    parts = [{"type": kind, "text": DOCUMENT}, {"type": kind, "text": "When?"}]
    first = _ask_responses(chat_client, [{"role": "user", "content": parts}], False)
    # The same in one part is the same message.
    told = [{"role": "user", "content": f"{DOCUMENT}\n\nWhen?"}, {"role": "assistant", "content": first}]
    again = [{"type": kind, "text": DOCUMENT}, {"type": kind, "text": "And why?"}]
    _ask_responses(chat_client, [*told, {"role": "user", "content": again}], False)
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    said = server.client.get(f"/v1/conversations/{listed['conversation']}").json()["turns"]
    assert [(turn["text"], turn["attached"]) for turn in said] == [("When?", ["spec.md"]), ("And why?", ["spec.md"])]
    assert sum(message.text.count("the heron leaves") for message in script.requests[1].messages) == 8


def test_a_message_that_is_a_document_and_nothing_else_is_what_was_typed(
    chat_client: openai.OpenAI, server: RunningServer
) -> None:
    _ask_responses(chat_client, [{"role": "user", "content": [{"type": "input_text", "text": DOCUMENT}]}], False)
    (listed,) = server.client.get("/v1/conversations").json()["chats"]
    (said,) = server.client.get(f"/v1/conversations/{listed['conversation']}").json()["turns"]
    assert (said["text"], said["attached"]) == (DOCUMENT, [])


def test_a_host_that_cut_off_the_beginning_of_a_conversation_that_nobody_named_is_noticed() -> None:
    long = "The tide is high at noon, as on most days in this part of the bay, and low at six."
    with running("memory:", ScriptedProvider(*[long] * 9)) as server:

        def ask(*messages: dict[str, str]) -> httpx2.Response:
            body = {"model": "lamella", "messages": list(messages)}
            answer = server.client.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            return answer

        history: list[dict[str, str]] = []
        for number in range(3):
            history.append({"role": "user", "content": f"Question {number}?"})
            key = ask(*history).headers["x-lamella-conversation"]
            history.append({"role": "assistant", "content": long})
        summary = [{"role": "user", "content": "Said so far: much."}, {"role": "assistant", "content": "I see."}]
        cut = ask(*summary, *history[-2:], {"role": "user", "content": "And now?"})
        assert cut.headers["x-lamella-conversation"] == key
        assert cut.headers["x-lamella-note"] == "host_compacted"
        said = [turn["text"] for turn in server.client.get(f"/v1/conversations/{key}").json()["turns"]]
        assert said == ["Question 0?", "Question 1?", "Question 2?", "And now?"]
        # It is cut once more, after the turn that was asked last.
        tail = [{"role": "user", "content": "And now?"}, {"role": "assistant", "content": long}]
        assert ask(*summary, *tail, {"role": "user", "content": "Then?"}).headers["x-lamella-conversation"] == key
        # What others end with is no conversation of this one.
        other = ask({"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello."}, summary[0])
        assert other.headers["x-lamella-conversation"] != key
        server.client.delete(f"/v1/conversations/{key}")
        gone = ask(*summary, {"role": "user", "content": "Then?"}, {"role": "assistant", "content": long}, summary[0])
        assert gone.headers["x-lamella-conversation"] != key


def test_short_exchanges_tell_a_conversation_by_several_of_them() -> None:
    with running("memory:", ScriptedProvider(*[f"At {number} o'clock." for number in range(9)])) as server:

        def ask(history: list[dict[str, str]], text: str) -> httpx2.Headers:
            history.append({"role": "user", "content": text})
            answer = server.client.post("/v1/chat/completions", json={"model": "lamella", "messages": history})
            assert answer.status_code == 200, answer.text
            history.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
            return answer.headers

        history: list[dict[str, str]] = []
        keys = {ask(history, f"When is tide {number}?")["x-lamella-conversation"] for number in range(5)}
        cut = [{"role": "user", "content": "So far: tides."}, {"role": "assistant", "content": "I see."}, *history[-6:]]
        told = ask(cut, "And the next?")
        assert {told["x-lamella-conversation"]} == keys
        assert told["x-lamella-note"] == "host_compacted"
        # Cut down to one short exchange it could be anybody's.
        assert "x-lamella-note" not in ask(cut[-2:], "And then?")
