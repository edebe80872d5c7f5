"""Blank names of conversations, models and tools are refused in every interface, with a hint."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import refusal, replay, run, spawn

import lamella
from lamella import BadInputError, Conversation, Tool, ToolResult
from lamella.testing import ScriptedProvider

BLANKS = ["", " ", "\t\n"]

COMMANDS = {
    "a model to ask": (["ask", "When?", "--preview", "--model", "BLANK"], "--model is blank."),
    "a conversation to ask in": (["ask", "When?", "--preview", "--chat", "BLANK"], "--chat is empty."),
    "a conversation to talk in": (["chat", "BLANK"], "The conversation name is blank."),
    "a conversation to fork into": (["chats", "fork", "demo", "x", "--into", "BLANK"], "--into is blank."),
}


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize(("words", "told"), COMMANDS.values(), ids=COMMANDS)
def test_command_refuses_a_blank_name(home: Mapping[str, str], words: list[str], told: str, blank: str) -> None:
    ran = spawn(*(blank if word == "BLANK" else word for word in words), environment=home)
    assert (ran.exit, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {told}\nhint: ")


FIELDS: dict[str, tuple[dict[str, object], str]] = {
    "a conversation": ({"conversation": "BLANK"}, "conversation"),
    "a model": ({"model": "BLANK"}, "model"),
    "a model of a turn": ({"turns": [{"user": "a", "model": "BLANK"}]}, "turns[0].model"),
    "a tool to call": (
        {"turns": [{"user": "a", "tool_definitions": [{"name": "BLANK"}]}]},
        "turns[0].tool_definitions[0].name",
    ),
    "a tool that was called": (
        {"turns": [{"user": "a", "rounds": [{"calls": [{"id": "c", "name": "BLANK"}], "results": []}]}]},
        "turns[0].rounds[0].calls[0].name",
    ),
    "a tool that gave something": (
        {"turns": [{"user": "a", "tools": [{"name": "BLANK", "output": "o"}]}]},
        "In turn 1",
    ),
}


@pytest.mark.parametrize(("blank", "what"), [(" ", "blank"), ("", "empty")])
@pytest.mark.parametrize(("fields", "place"), FIELDS.values(), ids=FIELDS)
def test_blank_name_in_transcript_is_refused_with_path(
    tmp_path: Path, fields: dict[str, object], place: str, blank: str, what: str
) -> None:
    given = json.dumps({"lamella": 1, "turns": [{"user": "a"}], **fields}).replace("BLANK", blank)
    of_tool = place == "In turn 1"
    told = "A tool has no name." if of_tool else f"this field is {what}."
    ran = replay(tmp_path, given.encode())
    assert f"{place}: {told}" in refusal(ran, code="bad_artifact" if of_tool else "bad_transcript")


@pytest.mark.parametrize("blank", BLANKS[1:])
def test_model_that_is_set_to_a_blank_is_refused(tmp_path: Path, blank: str) -> None:
    ran = replay(tmp_path, {"lamella": 1, "turns": [{"user": "a"}]}, "--model", blank)
    assert "model is blank." in refusal(ran, code="bad_setting")


def test_empty_variable_names_no_model_and_a_blank_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_MODEL", "")
    assert not Conversation().ask("a").envelope.model
    monkeypatch.setenv("LAMELLA_MODEL", " ")
    with pytest.raises(BadInputError, match="model is blank"):
        Conversation().ask("a")


DOORS: dict[str, Callable[[lamella.Engine, str], object]] = {
    "a conversation": lambda engine, blank: engine.chat(blank),
    "a conversation to fork into": lambda engine, blank: engine.fork("demo", "x", blank),
    "a model of a conversation": lambda engine, blank: engine.chat("other", model=blank),
    "a model of a turn": lambda engine, blank: engine.chat("demo").ask("a", model=blank),
    "a model that answers again": lambda engine, blank: engine.chat("demo").regenerate(model=blank),
    "a tool": lambda engine, blank: engine.chat("demo").ask("a", tools=[Tool(name=blank)]),
    "a result": lambda engine, blank: engine.chat("demo").ask("a", results=[ToolResult(name=blank, output="o")]),
}


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_python_refuses_a_blank_name(door: Callable[[lamella.Engine, str], object], blank: str) -> None:
    with lamella.open("memory:", model="scripted:x", provider=ScriptedProvider("Yes.")) as engine:
        conversation = engine.chat("demo")
        conversation.ask("first")
        conversation.reply("yes")
        with pytest.raises(BadInputError) as caught:
            door(engine, blank)
        assert caught.value.hint
        assert len(conversation.turns()) == 1


@pytest.mark.parametrize("attached", [[], ["--attach", "NOTE"]])
@pytest.mark.parametrize("shown", [[], ["--preview"]])
def test_unknown_policy_is_refused_for_every_attachment(
    tmp_path: Path, home: Mapping[str, str], attached: list[str], shown: list[str]
) -> None:
    (tmp_path / "note.md").write_text("A note.", encoding="utf-8")
    words = [str(tmp_path / "note.md") if word == "NOTE" else word for word in attached]
    ran = spawn("ask", "When?", "--policy", "zz", *words, *shown, environment=home)
    assert (ran.exit, ran.out) == (2, "")
    assert ran.err == "error: There is no policy 'zz'.\nhint: Choose one of: follow, snapshot, pin.\n"


def test_error_in_round_names_its_turn_once(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    rounds = '[{"calls": [{"id": "c", "name": "n"}], "results": []}]'
    file.write_text(f'{{"lamella": 1, "turns": [{{"user": "a", "rounds": {rounds}}}]}}', encoding="utf-8")
    assert run("replay", str(file)).err.startswith("error: In turn 1, round 1: the call c has no result.\nhint: ")
