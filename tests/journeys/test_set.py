"""Settings of a conversation on the command line: --system, --set and /set, stored with it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, spawn

from lamella.settings.model import DEFAULT_SYSTEM

Chat = Callable[..., Ran]


@pytest.fixture
def chat(home: Mapping[str, str], script: Callable[..., str]) -> Chat:
    model = script("One.", "Two.", "Three.")

    def chatting(*lines: str, words: tuple[str, ...] = (), **more: str) -> Ran:
        typed = "".join(f"{line}\n" for line in lines).encode()
        return spawn("chat", "talk", "--model", model, *words, stdin=typed, environment={**home, **more})

    return chatting


def sent(home: Mapping[str, str]) -> dict[str, object]:
    """The last request of the conversation, as Anthropic would get it."""
    words = ("request", "talk", "--provider", "anthropic", "--model", "claude-opus-5-5")
    body = json.loads(spawn(*words, environment=home).out)
    return {
        "system": "".join(part["text"] for part in body.get("system", ())),
        "temperature": body.get("temperature"),
        "effort": body.get("output_config", {}).get("effort"),
    }


def test_default_system_prompt_is_replaced_or_removed_by_settings(chat: Chat, home: Mapping[str, str]) -> None:
    assert chat("Hello?").exit == 0
    assert sent(home)["system"] == DEFAULT_SYSTEM
    assert chat("And now?", LAMELLA_SYSTEM="Another.").exit == 0
    assert sent(home)["system"] == DEFAULT_SYSTEM


@pytest.mark.parametrize("given", ["", "You are a sailor."])
def test_system_prompt_in_the_environment_or_of_the_command_replaces_the_default(
    given: str, chat: Chat, home: Mapping[str, str]
) -> None:
    assert chat("Hello?", LAMELLA_SYSTEM=given).exit == 0
    assert sent(home)["system"] == given
    assert chat("And now?", words=("--system", "You are a cook.")).exit == 0
    assert sent(home)["system"] == "You are a cook."


def test_settings_changed_in_chat_are_shown_sent_and_stored(chat: Chat, home: Mapping[str, str]) -> None:
    ran = chat(
        "/set temperature 0.25",
        "/set instructions Be brief.",
        "/set temperature",
        "Hello?",
        words=("--set", "reasoning_effort=low", "--system", ""),
    )
    assert ran.out.splitlines()[:3] == [
        "temperature = 0.25 from the next message on.",
        "instructions = Be brief. from the next message on.",
        "temperature         this chat     0.25",
    ]
    assert sent(home) == {"system": "Be brief.", "temperature": 0.25, "effort": "low"}
    again = chat("/set", "/set instructions none", "And now?")
    assert "reasoning_effort    this chat     low\n" in again.out
    assert "instructions        this chat     Be brief.\n" in again.out
    assert "history             default       full\n" in again.out
    assert sent(home) == {"system": "", "temperature": 0.25, "effort": "low"}


def test_pending_setting_survives_leaving_chat(chat: Chat, home: Mapping[str, str]) -> None:
    chat("Hello?", "/set temperature 0.25", "/runner vault_qa")
    assert sent(home)["temperature"] is None
    again = chat("/set temperature", "/set runner", "/runner chat", "And now?")
    assert again.out.splitlines()[:2] == [
        "temperature         this chat     0.25",
        "runner              this chat     vault_qa",
    ]
    assert sent(home)["temperature"] == 0.25


def test_pending_system_prompt_survives_leaving_chat(chat: Chat, home: Mapping[str, str], tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Be brief.")
    chat("/set system You are a sailor.", f"/set instructions_file {words}")
    words.unlink()
    again = chat("/set system", "/set instructions", "Hello?")
    assert again.out.splitlines()[:2] == [
        "system              this chat     You are a sailor.",
        "instructions        this chat     Be brief.",
    ]
    assert sent(home)["system"] == "You are a sailor.\n\nBe brief."
    chat("/set system You are a cook.")
    assert sent(home)["system"] == "You are a sailor.\n\nBe brief."
    chat("And now?")
    assert sent(home)["system"] == "You are a cook.\n\nBe brief."


@pytest.mark.parametrize(
    ("typed", "told", "hint"),
    [
        ("temprature 0.2", "There is no setting temprature.", "Did you mean temperature?"),
        ("nonsense", "There is no setting nonsense.", "Settings are:"),
        ("temperature warm", "The setting temperature is 'warm'", "temperature takes a number from 0"),
        ("temperature=7", "Invalid temperature: 7.0", "from 0"),
        ("temperature 7", "Invalid temperature: 7.0", "from 0"),
        ("reasoning_effort much", "There is no reasoning_effort 'much'.", "low, medium, high"),
        ("model local", "model cannot be set for one conversation.", "--model"),
        ("compaction {", "compaction is not JSON.", "JSON"),
        ("=3", "Missing setting name: /set =3", "Example: /set linger 3. Settings: window"),
        ("lingr=3", "There is no setting lingr.", "Did you mean linger?"),
    ],
)
def test_invalid_setting_is_reported_and_chat_continues(typed: str, told: str, hint: str, chat: Chat) -> None:
    ran = chat(f"/set {typed}", "Hello?")
    assert (ran.exit, ran.out) == (0, "One.\n")
    assert f"error: {told}" in ran.err
    assert hint in ran.err


def test_ask_accepts_and_refuses_same_settings(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script("One.")
    good = ("ask", "Hello?", "--chat", "talk", "--model", model, "--set", "temperature=0.5", "--system", "Be kind.")
    assert spawn(*good, environment=home).out == "One.\n"
    assert sent(home) == {"system": "Be kind.", "temperature": 0.5, "effort": None}
    near = spawn("ask", "Hello?", "--set", "temprature=1", "--json", environment=home)
    assert refusal(near, code="bad_setting") == "There is no setting temprature."
    half = spawn("ask", "Hello?", "--set", "temperature", "--json", environment=home)
    assert refusal(half, code="bad_usage") == "Missing value: --set temperature"


def test_instructions_file_of_settings_is_used(chat: Chat, home: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("Answer in one sentence.\n", encoding="utf-8")
    settings = tmp_path / "mine.toml"
    settings.write_text('instructions_file = "how.md"\nsystem = ""\n', encoding="utf-8")
    assert chat("Hello?", LAMELLA_CONFIG=str(settings)).exit == 0
    assert sent(home)["system"] == "Answer in one sentence.\n"


def test_max_tokens_beyond_window_is_refused(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script("One.", "Two.")
    small = ("--model", model, "--set", "window=3000", "--set", "reserve=500")
    for words in (("ask", "Hello?", *small), ("chat", "talk", *small)):
        for length in ("3000", "4294967297", "99999999999999999999"):
            ran = spawn(*words, "--max-tokens", length, environment=home)
            assert (ran.exit, ran.out) == (2, ""), ran
            assert "leaves no room for a request in a window of 3,000" in ran.err
    long = " ".join(["word"] * 2_000)
    told = spawn("ask", long, *small, "--max-tokens", "1500", environment=home)
    assert (told.exit, told.out) == (2, "")
    assert "The answer may have 1,500 tokens, and the window of 3,000 has" in told.err
    assert "hint: Have it answered with `--max-tokens " in told.err
    typed = f"{long}\n/set reserve 900\n/set window 5000\n/retry\n".encode()
    ran = spawn("chat", "talk", *small, "--max-tokens", "1500", stdin=typed, environment=home)
    assert "hint: Have it answered with `/retry` after you reopen the chat with `--max-tokens " in ran.err
    assert ran.out.splitlines()[-1] == "One."


def test_requested_answer_length_fits_window(home: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"lamella": 1, "window": 3_000, "reserve": 500, "turns": [{"user": "Hello?"}]}))
    words = ("request", str(file), "--provider", "anthropic", "--model", "claude-opus-5-5")
    fitted = json.loads(spawn(*words, environment=home).out)["max_tokens"]
    assert 2_900 < fitted < 3_000
    refused = spawn(*words, "--max-tokens", "3000", environment=home)
    assert (refused.exit, refused.out) == (2, "")
    assert "has 2,9" in refused.err


def test_regeneration_accepts_only_fitting_max_tokens(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script("One.", "Two.")
    small = ("--model", model, "--set", "window=3000", "--set", "reserve=500")
    assert spawn("ask", " ".join(["word"] * 2_000), "--chat", "talk", *small, environment=home).exit == 0
    told = spawn("chats", "regenerate", "talk", "--max-tokens", "1500", environment=home)
    assert (told.exit, told.out) == (2, "")
    assert "The answer may have 1,500 tokens, and the window of 3,000 has" in told.err
    assert spawn("chats", "regenerate", "talk", environment=home).out == "One.\n"


def test_weaker_consent_setting_warns_that_it_has_no_effect(chat: Chat) -> None:
    ran = chat("/set memory_writes allow", "/set note_writes off", words=("--set", "note_writes=allow"))
    assert "warning: note_writes allow has no effect: your own settings say ask" in ran.err
    assert "warning: memory_writes allow has no effect" in ran.err
    assert "warning: note_writes off" not in ran.err
    assert "no effect" not in chat(words=("--set", "note_writes=allow"), LAMELLA_NOTE_WRITES="allow").err


@pytest.mark.parametrize("value", ["inf", "nan", "-1"])
def test_invalid_limit_is_refused_with_valid_form(chat: Chat, value: str) -> None:
    ran = chat(words=("--set", f"max_cost={value}"))
    assert ran.exit == 2
    assert ran.err.splitlines()[-2:] == [
        f"error: Invalid max_cost: {value}".replace("-1", "-1.0"),
        "hint: Give a number above 0, or none for no limit.",
    ]
