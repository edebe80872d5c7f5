"""Possible secrets are reported once before they leave, or refused, and never repeated."""

from pathlib import Path

import pytest
from tests.unit.providers.secret_scanner.test_formats import MADE

import lamella
from lamella import Conversation, Note, Tool, ToolOutput, ToolResult
from lamella.conversation.turn_reader import with_secret_warnings
from lamella.core.log.turn import SecretPolicy, Turn
from lamella.core.prompt.state import PromptState
from lamella.errors import SecretError, SettingError
from lamella.ports import SecretScanner

TOKEN = MADE["ghp_"]
NOTE = Note(path="keys.md", text=f"# Keys\n\ntoken = {TOKEN}\n")
SAID = "Line 3 of keys.md looks like a GitHub token, and goes to openai:gpt-5."
CALLED = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}  # fmt: skip


def said(chat: Conversation, text: str, *attach: Note) -> list[str]:
    turn = chat.ask(text, attach=attach)
    chat.reply("Yes.")
    return [line for line in turn.envelope.warnings if "looks like" in line]


def test_note_is_warned_of_once_per_content() -> None:
    chat = Conversation(model="openai:gpt-5", layout="in_place")
    assert said(chat, "Read.", NOTE) == [SAID]
    assert said(chat, "Again.", NOTE) == []
    assert said(chat, "Changed.", Note(path="keys.md", text=f"{TOKEN}\n")) == [SAID.replace("Line 3", "Line 1")]


def test_typed_text_results_and_the_system_prompt_are_looked_at_too() -> None:
    chat = Conversation(model="openai:gpt-5", system=f"Use {TOKEN}.")
    result = ToolResult(name="env", arguments={}, output=f"\n{TOKEN}")
    turn = chat.ask(f"Is {TOKEN} good?", results=[result])
    told = [line.partition(" looks")[0] for line in turn.envelope.warnings]
    assert told[1:] == ["Line 1 of what was typed", "Line 1 of the system prompt's base"]
    assert told[0].startswith("Line 2 of tool:env:")
    assert all(TOKEN not in line for line in turn.envelope.warnings)


def test_tool_output_is_scanned_for_secrets() -> None:
    chat = Conversation(model="openai:gpt-5")
    chat.ask("Look.", tools=[Tool(name="look", description="", parameters={})])
    chat.reply({"object": "chat.completion", "choices": [{"message": CALLED, "finish_reason": "tool_calls"}]})
    turn = chat.submit_tool_outputs([ToolOutput(call="c1", output=TOKEN)])
    assert "Line 1 of what look gave looks like a GitHub token, and goes to openai:gpt-5." in turn.envelope.warnings


def test_local_model_gives_no_secret_warning_until_model_changes() -> None:
    chat = Conversation(model="local", layout="in_place")
    assert said(chat, "Read.", NOTE) == []
    turn = chat.ask("And you?", model="openai:gpt-5")
    assert SAID in turn.envelope.warnings


def test_refused_secret_turn_can_be_asked_again() -> None:
    chat = Conversation(model="openai:gpt-5", secrets="refuse")
    with pytest.raises(SecretError) as refused:
        chat.ask("Read.", attach=[NOTE])
    assert refused.value.locations == ("Line 3 of keys.md looks like a GitHub token",)
    assert TOKEN not in refused.value.message + refused.value.hint
    assert chat.ask("Read.").number == 1


def test_refused_turn_is_not_stored_and_pending_commands_stay(tmp_path: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", model="openai:gpt-5") as engine:
        conversation = engine.chat("keys", secrets="refuse")
        conversation.attach(NOTE)
        with pytest.raises(SecretError):
            conversation.ask("Read.")
        assert conversation.turns() == []
        again = engine.chat("keys", secrets="off")
        assert [one.id for one in again.pending_commands.attach] == ["keys.md"]
        assert not any("looks like" in line for line in again.ask("Read.").envelope.warnings)


@pytest.mark.parametrize(("written", "own", "said"), [("off", "warn", 1), ("warn", "off", 1), ("off", "off", 0)])
def test_stored_secret_rule_can_only_be_stricter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, written: str, own: str, said: int
) -> None:
    monkeypatch.setenv("LAMELLA_SECRETS", own)
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", model="openai:gpt-5") as engine:
        engine.chat("keys", secrets=written).ask("Hello.")
        # Whoever opens it later may have it from an archive of somebody else.
        warnings = engine.chat("keys").ask("Read.", attach=[NOTE]).envelope.warnings
        assert len([line for line in warnings if "looks like" in line]) == said


def test_stored_secret_rule_refuses_where_settings_warn(tmp_path: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", model="openai:gpt-5") as engine:
        engine.chat("keys", secrets="refuse").ask("Hello.")
        with pytest.raises(SecretError):
            engine.chat("keys").ask("Read.", attach=[NOTE])


def test_unknown_secret_rule_is_refused() -> None:
    with pytest.raises(SettingError, match="There is no secrets 'maybe'"):
        Conversation(secrets="maybe")


def test_same_secret_warning_is_given_once_per_turn() -> None:
    watch = SecretScanner(
        anchors=("x",), find_secrets=lambda text, content: ((1, "a key"),), is_local_model=lambda model: False
    )
    turn, state = Turn(text="x"), PromptState(conversation="c")
    once = with_secret_warnings(turn, state, [("a", "x")], scanner=watch, policy=SecretPolicy.WARN)
    assert once.warnings == ("Line 1 of a looks like a key, and goes to a model.",)
    assert with_secret_warnings(once, state, [("a", "x")], scanner=watch, policy=SecretPolicy.WARN) == once
