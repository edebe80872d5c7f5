"""The recall tool is in a request from which something was left out, if tools are possible."""

import asyncio
from pathlib import Path

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella import Note, Tool, ToolResult
from lamella.core.messages import ToolCall
from lamella.testing import ScriptedReply

LOG = ToolResult(name="read_log", arguments={}, output="Pump 7 failed at noon. " + "Nothing else. " * 400)


def send(chat: lamella.Conversation, text: str, **given: object) -> str:
    async def collect() -> str:
        return "".join([event.text async for event in chat.send(text, **given)])  # type: ignore[arg-type]

    return asyncio.run(collect())


def open_chat(speaker: Speaker, **settings: object) -> lamella.Conversation:
    return lamella.open("memory:", model="scripted:x", provider=speaker).chat("x", **settings)  # type: ignore[arg-type]


def offered(speaker: Speaker) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in speaker.requests]


@pytest.mark.parametrize("runner", ["chat", "vault_qa"])
def test_recall_is_offered_after_removal(tmp_path: Path, runner: str) -> None:
    (tmp_path / "a.md").write_text("# Pumps\n\nThere are nine pumps.\n")
    call = ToolCall(id="c1", name="recall", arguments='{"query": "pump failed"}')
    speaker = Speaker("Read.", ScriptedReply(text="", calls=(call,)), "Pump 7.", "Yes.")
    engine = lamella.open("memory:", model="scripted:x", provider=speaker, vault=tmp_path)  # type: ignore[arg-type]
    chat = engine.chat("x", layout="library")
    send(chat, "Read this.", results=[LOG])
    assert send(chat, "Which pump failed?", runner=runner) == "Pump 7."
    assert "Pump 7 failed at noon." in speaker.requests[2].messages[-1].text
    send(chat, "Really?", runner=runner)
    assert offered(speaker) == [[], ["recall"], ["recall"], ["recall"]]


def test_recall_is_offered_beside_python_tools() -> None:
    def weather(city: str) -> str:
        """Look up the weather."""
        return f"Rain in {city}."

    speaker = Speaker("Read.", "Rain.")
    chat = open_chat(speaker, layout="library")
    send(chat, "Read this.", results=[LOG], tools=[weather])
    send(chat, "And the weather?")
    assert offered(speaker) == [["weather"], ["weather", "recall"]]


def test_recall_is_not_offered_while_everything_is_in_the_request() -> None:
    speaker = Speaker("Read.", "Yes.")
    chat = open_chat(speaker, layout="library")
    send(chat, "Read this.", attach=[Note(path="a.md", text="Pump 7 failed.")])
    send(chat, "Did it fail?")
    assert offered(speaker) == [[], []]


def test_recall_is_not_offered_with_caller_tools_or_withdrawn_tools() -> None:
    speaker = Speaker("Read.", "Yes.", "No.")
    chat = open_chat(speaker, layout="library")
    send(chat, "Read this.", results=[LOG])
    send(chat, "Did it fail?", tools=[Tool(name="ask_operator", description="Asks the operator.")])
    send(chat, "Did it?", tools=[])
    assert offered(speaker) == [[], ["ask_operator"], []]


def test_preview_has_recall_like_the_request_that_is_sent() -> None:
    speaker = Speaker("Read.", "Pump 7.", "Yes.")
    chat = open_chat(speaker, layout="library")
    send(chat, "Read this.", results=[LOG])
    for question in ("Which pump failed?", "Really?"):
        previewed = chat.preview(question)
        send(chat, question)
        sent = chat.turns()[-1].message.id
        assert [tool.name for tool in previewed.envelope.prompt.tools] == ["recall"]
        assert previewed.messages == next(turn for turn in chat.replay() if turn.envelope.message_id == sent).messages
    assert chat.preview("And now?", tools=[]).envelope.prompt.tools == ()


def test_question_that_the_program_sends_itself_gets_no_recall() -> None:
    chat = open_chat(Speaker("Read."), layout="library")
    send(chat, "Read this.", results=[LOG])
    assert chat.ask("Which pump failed?").envelope.prompt.tools == ()
