"""Window, reserve and shares per model, from the user's own facts: under what anybody set, over what ships."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.running import refusal, spawn

import lamella

FACTS = """
[[model]]
match = "guest"
as_of = 2026-11-17
window = 300000
reserve = 20000
warn = 0.1
target = 0.3
trigger = 0.4
hard = 0.9

[[model]]
match = "small"
as_of = 2026-11-17
window = 4000
"""


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    file = tmp_path / "facts.toml"
    file.write_text(FACTS, encoding="utf-8")
    return file


@pytest.fixture
def known(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_MODEL_FACTS", str(facts))


@pytest.mark.usefixtures("known")
def test_conversation_uses_window_of_model_facts() -> None:
    def limit(**settings: Any) -> int:  # noqa: ANN401 - as they are typed
        return lamella.Conversation(**settings).ask("Hello?").tokens.limit

    with lamella.open("sqlite://") as engine:

        def kept(name: str, **settings: object) -> int:
            return engine.chat(name, **settings).ask("Hello?").tokens.limit

        for found in (limit(model="house:guest"), kept("one", model="house:guest")):
            assert found == 280_000
        for found in (limit(model="house:small"), kept("two", model="house:small")):
            assert found == 3_500
        assert limit(model="house:guest", window=50_000) == kept("three", model="house:guest", window=50_000) == 30_000
        assert limit(model="house:other") == kept("four", model="house:other") == 123_904
        # Another model has what is said of it.
        assert kept("one", model="house:small") == 3_500
        assert dict(engine.default_settings_for("house:guest"))["window"] == 300_000
        assert "trigger" not in engine.default_settings_for("house:guest")


@pytest.mark.usefixtures("known")
def test_model_thresholds_control_warning_and_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "word " * 30_000
    assert lamella.Conversation(model="house:guest").ask(long).envelope.warnings
    assert not lamella.Conversation(model="house:guest", warn=0.2).ask(long).envelope.warnings
    monkeypatch.setenv("LAMELLA_WARN", "0.2")
    assert not lamella.Conversation(model="house:guest").ask(long).envelope.warnings
    with lamella.open("sqlite://") as engine:
        conversation = engine.chat("one", model="house:guest")
        conversation.ask(long)
        conversation.reply(long)
        assert conversation.plan().target_tokens == 84_000


def test_cli_shows_and_uses_model_budget(facts: Path, home: Mapping[str, str]) -> None:
    environment = {**home, "LAMELLA_MODEL_FACTS": str(facts)}
    told = json.loads(spawn("config", "show", "--model", "house:guest", "--json", environment=environment).out)["chat"]
    assert (told["window"], told["reserve"]) == (300_000, 20_000)
    file = facts.with_name("talk.json")
    file.write_text(json.dumps({"lamella": 1, "model": "house:guest", "turns": [{"user": "Hello?"}]}))
    (turn,) = json.loads(spawn("replay", str(file), "--json", environment=environment).out)["turns"]
    assert turn["tokens"]["limit"] == 280_000


@pytest.mark.parametrize("wrong", ["warn = 0.9", "reserve = 200000", "hard = 1.5", "trigger = 0.5"])
def test_invalid_thresholds_are_reported_with_place(wrong: str, facts: Path, home: Mapping[str, str]) -> None:
    facts.write_text(f'[[model]]\nmatch = "guest"\nas_of = 2026-11-17\n{wrong}\n', encoding="utf-8")
    ran = spawn("config", "show", "--json", environment={**home, "LAMELLA_MODEL_FACTS": str(facts)})
    assert f"{facts}: model[0]: " in refusal(ran, code="bad_setting")
