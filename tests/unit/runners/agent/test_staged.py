"""The staged runner: tools in stages that search, none in others, and a word where no work was begun."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation
from lamella.errors import WorkflowError
from lamella.providers import ToolCall
from lamella.runners.agent import run_staged
from lamella.testing import ScriptedReply

MODEL = "anthropic:claude-opus-5-5"
STAGE_TOOLS = ["add_references", "add_table", "propose_decision", "remove_from_work", "submit_stage", "write_stage"]


@pytest.fixture
def speaker() -> Speaker:
    return Speaker("One.", "Two.", "Three.")


@pytest.fixture
def chat(tmp_path: Path, speaker: Speaker) -> Iterator[Conversation]:
    (tmp_path / "beans.md").write_text("# Beans\n", encoding="utf-8")
    with lamella.open("sqlite://", provider=speaker, model=MODEL, vault=tmp_path) as engine:  # type: ignore[arg-type]
        yield engine.chat("work", runner="staged", layout="in_place")


def say(chat: Conversation, text: str) -> list[str]:
    """The warnings that an answer came with."""

    async def main() -> list[str]:
        turns = [event.turn async for event in chat.send(text) if event.kind == "envelope"]
        return [line for turn in turns if turn is not None for line in turn.envelope.warnings]

    return asyncio.run(main())


def test_only_searching_stage_gets_tools(chat: Conversation, speaker: Speaker) -> None:
    chat.start_workflow("rfc")
    say(chat, "What is the problem?")
    chat.write_stage({"problem": "Desks.", "goals": "Fewer."})
    chat.submit_stage()
    chat.approve_stage()
    say(chat, "And how is it today?")
    chat.write_stage({"state": "By hand."})
    chat.submit_stage()
    chat.approve_stage()
    say(chat, "Which ways are there?")
    told = [[tool.name for tool in request.tools] for request in speaker.requests]
    assert told[0] == told[2] == STAGE_TOOLS
    assert {"search_notes", *STAGE_TOOLS} <= set(told[1])


def test_staged_runner_without_workflow_warns_and_answers(chat: Conversation, speaker: Speaker) -> None:
    assert any("No workflow was begun" in line for line in say(chat, "Hello?"))
    assert chat.turns()[-1].reply is not None
    assert len(speaker.requests) == 1


def test_docstring_describes_runner_to_users() -> None:
    assert (run_staged.__doc__ or "").startswith("Chat in the stages of a workflow")


def call(name: str, **arguments: object) -> ScriptedReply:
    """A reply that calls one tool."""
    return ScriptedReply(calls=(ToolCall(id=f"call-{name}", name=name, arguments=json.dumps(arguments)),))


def outputs(chat: Conversation, text: str) -> list[str]:
    """What the tools of a turn answered, and notes."""

    async def main() -> list[str]:
        events = [event async for event in chat.send(text)]
        return [
            event.output.output if event.output else event.message
            for event in events
            if event.output or event.kind == "note"
        ]

    return asyncio.run(main())


def test_model_writes_fields_references_and_decision_and_submits(chat: Conversation, speaker: Speaker) -> None:
    speaker.lines.clear()
    speaker.lines.extend(
        [
            call("add_references", references=[{"title": "Coffee", "author": ["Sari, Rina"], "year": 2021}]),
            call("write_stage", ideKasar="Kopi [@sari2021] dan [@nobody].", analisis="Bisa.", angle="Mahasiswa."),
            call("propose_decision", decision="Kopi dan tidur mahasiswa."),
            call("submit_stage"),
            "Silakan periksa.",
        ]
    )
    chat.start_workflow("paper", language="id")
    said = outputs(chat, "Tulis tahap ini.")
    assert said[0].startswith("Keys to cite: sari2021.")
    assert "Cited without a reference: nobody." in said[1]
    assert "+ Kopi [@sari2021] dan [@nobody]." in said[1]
    work = chat.workflow
    assert work is not None
    assert (work.status, work.proposed_decision) == ("pending", "Kopi dan tidur mahasiswa.")
    assert [write.by_model for write in work.writes] == [True] * 3
    approved = chat.approve_stage()
    assert approved.digest[0].decision == "Kopi dan tidur mahasiswa."
    assert not approved.writes


def test_wrong_write_of_a_model_is_refused_and_explained(chat: Conversation, speaker: Speaker) -> None:
    speaker.lines.clear()
    speaker.lines.extend(
        [call("write_stage", ideKasr="x"), call("write_stage", ideKasar=3), call("submit_stage"), "Maaf."]
    )
    chat.start_workflow("paper")
    said = outputs(chat, "Write.")
    assert "no field 'ideKasr'" in said[0]
    assert "takes a text" in said[1]
    assert "0 of 3 fields" in said[2]
    assert chat.workflow is not None
    assert not chat.workflow.writes


def test_person_sends_a_stage_back_and_undoes_what_was_written(chat: Conversation, speaker: Speaker) -> None:
    chat.start_workflow("rfc")
    chat.write_stage({"problem": "Desks.", "goals": "Fewer."})
    chat.write_stage({"problem": "Chairs."})
    chat.submit_stage()
    chat.request_stage_changes("Desks, not chairs")
    say(chat, "Go on.")
    assert "The user asks for changes: Desks, not chairs" in speaker.requests[0].messages[0].text
    work = chat.undo_stage_write()
    assert work.stages[0].data["problem"] == "Desks."
    assert [write.diff for write in work.writes] == ["problem.problem\n+ Desks.\nproblem.goals\n+ Fewer."]
    chat.undo_stage_write()
    with pytest.raises(WorkflowError):
        chat.undo_stage_write()


def test_model_without_tools_writes_a_block_of_json(tmp_path: Path) -> None:
    block = {
        "fields": {"problem": "Desks.", "goals": ["Fewer."], "cost": "low"},
        "references": {"title": "Coffee", "year": 2021},
        "decision": "Fewer desks.",
        "submit": True,
        "extra": 1,
    }
    speaker = Speaker(f"Here it is.\n\n```stage\n{json.dumps(block)}\n```", "```stage\nno json\n```")
    options = {"provider": speaker, "model": "local"}
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", **options) as engine:  # type: ignore[arg-type]
        chat = engine.chat("work", runner="staged")
        chat.start_workflow("rfc")
        said = outputs(chat, "Write.")
        assert speaker.requests[0].tools == ()
        assert "begins with ```stage" in speaker.requests[0].messages[0].text
        assert said[0].startswith("Submitted.")
        assert "Unknown in the stage block: extra." in said[0]
        assert "is not JSON" in outputs(chat, "Again.")[0]
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", **options) as engine:  # type: ignore[arg-type]
        work = engine.chat("work").workflow
        assert work is not None
        assert (work.status, work.proposed_decision, work.references) == ("pending", "Fewer desks.", 1)
