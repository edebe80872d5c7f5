"""Commands of a chat about conversations as wholes: another model, another conversation, titles and copies."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, spawn
from tests.journeys.terminal import ENTER, Terminal

Chat = Callable[..., Ran]


@pytest.fixture
def chat(home: Mapping[str, str]) -> Chat:
    def chatting(*lines: str, words: tuple[str, ...] = ()) -> Ran:
        return spawn("chat", *words, stdin="".join(f"{line}\n" for line in lines).encode(), environment=home)

    return chatting


def other(folder: Path, *replies: str) -> str:
    file = folder / "other.json"
    file.write_text(json.dumps(replies), encoding="utf-8")
    return f"scripted:{file}"


def listed(home: Mapping[str, str]) -> dict[str, str]:
    rows = json.loads(spawn("chats", "list", "--json", environment=home).out)["chats"]
    return {row["name"]: row["title"] for row in rows}


def models(home: Mapping[str, str], name: str) -> list[str]:
    turns = json.loads(spawn("ledger", name, "--json", environment=home).out)["turns"]
    return [turn["calls"][-1]["model"] for turn in turns]


def test_model_change_applies_from_next_message_on(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str], tmp_path: Path
) -> None:
    first, second = script("One."), other(tmp_path, "Two.", "Three.")
    ran = chat("First?", "/model", f"/model {second}", "Second?", words=("talk", "--model", first))
    assert (ran.exit, ran.out.splitlines()[-1]) == (0, "Two.")
    assert f"Model: {first} (current; context window 128,000 tokens)\n" in ran.out
    assert f"Model: {second} (from the next message on; context window 128,000 tokens)\n" in ran.out
    assert chat("Third?", words=("talk",)).err.startswith(f"Conversation talk (2 turns), model {second}.")
    assert models(home, "talk") == [first, second, second]


def test_changed_model_gets_its_own_window(chat: Chat, script: Callable[..., str], home: Mapping[str, str]) -> None:
    ran = chat("First?", "/model gguf:nowhere.gguf", "/preview Second?", words=("talk", "--model", script("One.")))
    assert "error: There is no file" in ran.err, "what the model lacks is told before anything changes"
    again = chat("/model local", words=("talk",))
    assert "Model: local (from the next message on; context window 8,192 tokens)\n" in again.out
    opened = chat("/model", words=("talk", "--model", "local"))
    assert "Model: local (current; context window 8,192 tokens)\n" in opened.out
    assert models(home, "talk")[-1].startswith("scripted:")


def test_model_change_applies_to_branch_left_behind(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str], tmp_path: Path
) -> None:
    first, second = script("One.", "Two."), other(tmp_path, "Three.", "Four.")
    chat("First?", "Second?", words=("talk", "--model", first))
    left = json.loads(spawn("ledger", "talk", "--json", environment=home).out)["turns"][0]["message"]
    chat(f"/model {second}", "Third?", f"/switch {left}", f"/model {second}", "/retry", words=("talk",))
    assert models(home, "talk") == [second]


def test_chat_starts_new_conversation_and_returns_to_others(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    model = script("One.", "Two.", "Three.")
    ran = chat("First?", "/new tides", "Second?", "/chats tal", "Third?", words=("talk", "--model", model))
    assert ran.out == "One.\nTwo.\nThree.\n"
    assert f"talk is saved; /chats talk continues it.\nConversation tides (new), model {model}. /help" in ran.err
    assert f"tides is saved; /chats tides continues it.\nConversation talk (1 turn), model {model}. /help" in ran.err
    assert ran.err.endswith("Saved. Continue with: lamella chat talk\n")
    assert listed(home) == {"talk": "First?", "tides": "Second?"}
    assert models(home, "talk") == [model, model]


def test_existing_conversation_is_not_created_again(chat: Chat, script: Callable[..., str]) -> None:
    ran = chat("First?", "/new talk", "/chats nowhere", "/chats First?", words=("talk", "--model", script("One.")))
    assert "error: The conversation talk exists already.\nhint: /chats talk continues it.\n" in ran.err
    assert "error: There is no conversation 'nowhere'." in ran.err
    assert "Conversation talk (1 turn)" in ran.err


@pytest.mark.parametrize("title", ["Tides in spring", "tides in SPRING", "tides", "Tides in…"])
def test_chats_command_continues_conversation_by_title(chat: Chat, script: Callable[..., str], title: str) -> None:
    lines = ("First?", "/rename Tides in spring", "/new other", "Second?", f"/chats {title}")
    ran = chat(*lines, words=("talk", "--model", script("One.", "Two.")))
    assert ran.err.count("Conversation talk (1 turn)") == 1, ran.err


def test_messages_are_numbered_by_position_on_branch(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    model = script("One.", "Two.", "Again.", "Edited.", "Third.")
    ran = chat("First?", "Second?", "/regenerate turn:1", "/edit turn:1 Other?", words=("talk", "--model", model))
    assert ran.out == "One.\nTwo.\nAgain.\nEdited.\n", ran.err
    ran = chat("/switch turn:9", "Next?", "/delete reply:2", words=("talk",))
    assert 'has no such message: "turn:9".' in ran.err
    assert spawn("chats", "regenerate", "talk", "turn:1", environment=home).exit == 0


def test_stage_data_writes_several_fields(chat: Chat, script: Callable[..., str], home: Mapping[str, str]) -> None:
    fields = 'problem=Desks are booked twice goals="No desk = no work" more+=one sources:=[{"a": "x y=1"}]'
    chat(f"/stage data {fields}", words=("desks", "--workflow", "rfc", "--model", script("One.")))
    body = json.loads(spawn("workflow", "rfc", "data", "desks", "--json", environment=home).out)
    assert body["data"]["problem"] == {
        "problem": "Desks are booked twice",
        "goals": "No desk = no work",
        "more": ["one"],
        "sources": [{"a": "x y=1"}],
    }


def test_conversations_are_listed_and_renamed(chat: Chat, script: Callable[..., str], home: Mapping[str, str]) -> None:
    ran = chat("/rename", "/rename  Low tide ", "First?", "/chats", words=("talk", "--model", script("One.")))
    assert "error: Missing title." in ran.err
    assert "Title of talk: Low tide\n" in ran.out
    assert "Current: talk. /chats NAME continues another one, /new starts one.\n" in ran.out
    assert listed(home) == {"talk": "Low tide"}


def test_save_never_overwrites_unknown_changes(
    chat: Chat, script: Callable[..., str], tmp_path: Path, home: Mapping[str, str]
) -> None:
    folder = tmp_path / "saved"
    (folder / "d.md").mkdir(parents=True)
    mine, theirs, talk = folder / "mine.md", folder / "theirs.md", folder / "talk.json"
    theirs.write_text("# My own\n", encoding="utf-8")
    ran = chat(
        "/save", "First?", f"/save {mine}", f"/save {talk}", f"/save {theirs}", words=("a", "--model", script("One."))
    )
    assert "error: This conversation has no messages yet." in ran.err
    assert ran.out.splitlines() == ["One.", f"Saved: {mine}", f"Saved: {talk}"]
    assert f"error: {theirs} is there and holds something else.\n" in ran.err
    assert theirs.read_text(encoding="utf-8") == "# My own\n"
    assert "**user**: First?" in mine.read_text(encoding="utf-8")
    assert spawn("replay", str(talk), environment=home).exit == 0
    again = chat(
        "Second?", f"/save {mine}", f"/save {talk}", f"/save {folder}", f"/save {folder / 'd.md'}", words=("a",)
    )
    assert again.out.splitlines()[1:] == [
        f"Saved: {mine}",
        f"Saved: {talk}",
        f"Saved: {mine}",
        f"Saved: {folder / 'd.md' / 'First.md'}",
    ]
    assert "**user**: Second?" in mine.read_text(encoding="utf-8")
    foreign = chat("Other?", f"/save {mine}", f"/save {talk}", words=("b", "--model", script("One.")))
    assert foreign.err.count("is there and holds something else.") == 2


def test_copy_sends_last_answer_to_terminal_clipboard(home: Mapping[str, str], script: Callable[..., str]) -> None:
    with Terminal(["chat", "talk", "--model", script("At noon. ☼")], home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("/copy", ENTER)
        terminal.wait_for("error: No answer to copy yet.")
        terminal.wait_for("tokens used")
        terminal.press("When?", ENTER)
        terminal.wait_for("At noon.")
        terminal.wait_for("tokens used")
        terminal.press("/copy", ENTER)
        terminal.wait_for("Copied 10 characters")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert f"\x1b]52;c;{b64encode('At noon. ☼'.encode()).decode()}\x07" in terminal.raw


@pytest.mark.parametrize(("kind", "program"), [("linux", ""), ("dumb", ""), ("xterm", "Apple_Terminal")])
def test_copy_without_terminal_support_explains_alternative(
    home: Mapping[str, str], script: Callable[..., str], kind: str, program: str
) -> None:
    environment = {**home, "TERM_PROGRAM": program}
    with Terminal(["chat", "talk", "--model", script("At noon.")], environment, kind=kind) as terminal:
        terminal.wait_for("> " if kind == "dumb" else "tokens used")
        terminal.press("When?", ENTER)
        terminal.wait_for("At noon.")
        terminal.wait_for("tokens used")
        terminal.press("/copy", ENTER)
        terminal.wait_for("hint: `lamella chats show talk` prints the messages; /save writes them")
        terminal.wait_for("> " if kind == "dumb" else "tokens used")
        assert terminal.end_chat() == 0
    assert "\x1b]52" not in terminal.raw


def test_command_arguments_are_completed(
    home: Mapping[str, str], script: Callable[..., str], chat: Chat, tmp_path: Path
) -> None:
    chat("When is high tide?", words=("tides", "--model", script("One.")))
    chat("What grows here?", words=("garden", "--model", script("One.")))
    with Terminal(["chat", "garden"], home) as terminal:
        for typed, shown in [
            ("/chats t", "When is high tide?"),
            ("/chats when", "tides"),
            ("/model anthropic:claude-op", "anthropic:claude-opus-5-5"),
            ("/model scr", "used here"),
            ("/edit ", "What grows here?"),
            ("/delete One", "One."),
            (f"/save {tmp_path}/repl", "replies.json"),
            ("/rename What", "What grows here?"),
        ]:
            terminal.wait_for("tokens used")
            terminal.press(typed)
            terminal.wait_for(shown)
            terminal.press("\x15\x03")
        terminal.wait_for("tokens used")
        terminal.press("/chats t", "\t", ENTER, ENTER)
        terminal.wait_for("Conversation tides (1 turn)")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
