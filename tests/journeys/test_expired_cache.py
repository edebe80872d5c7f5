"""An expired cache in ``lamella show`` and in the status line of a chat, by a documented lifetime alone."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.journeys.running import spawn
from tests.journeys.terminal import ENTER, Terminal
from tests.waiting import wait_until

import lamella
from lamella import Note

LAPSED = "he cache has expired; "


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["Said."]), encoding="utf-8")
    return file


@pytest.fixture
def url(tmp_path: Path, script: Path) -> str:
    """A chat whose last message is ten minutes old."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        conversation = engine.chat("garden", layout="auto", model=f"scripted:{script}")
        at = datetime.now(UTC) - timedelta(minutes=10)
        conversation.ask("What is in it?", attach=[Note(path="garden.md", text="Beans. " * 500)], at=at)
        conversation.reply("Beans.", at=at)
    return url


def list_purposes(url: str) -> list[str]:
    with lamella.open(url) as engine:
        return [call.purpose for calls in engine.chat("garden").ledger() for call in calls]


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    wait_until(happened, "another process has done it")


def facts(tmp_path: Path, script: Path) -> dict[str, str]:
    """The variable that gives the model a lifetime of five minutes."""
    file = tmp_path / "facts.toml"
    file.write_text(f'[[model]]\nmatch = "{script}"\nas_of = 2026-11-17\nlifetime = 300\n', encoding="utf-8")
    return {"LAMELLA_MODEL_FACTS": str(file)}


def test_show_prints_cost_of_next_message(tmp_path: Path, url: str, script: Path, home: Mapping[str, str]) -> None:
    known = {**home, **facts(tmp_path, script)}
    assert f"T{LAPSED}" in spawn("show", "garden", "--store", url, environment=known).out
    body = json.loads(spawn("show", "garden", "--store", url, "--json", environment=known).out)
    assert body["cold"]["lapsed"]
    assert body["cold"]["tokens"] >= body["cold"]["folded_tokens"] > 0
    unknown = spawn("show", "garden", "--store", url, "--json", environment=home)
    assert json.loads(unknown.out)["cold"] is None


def test_status_line_warns_of_expired_cache_until_next_message(
    tmp_path: Path, url: str, script: Path, home: Mapping[str, str]
) -> None:
    words = ["chat", "garden", "--store", url, "--model", f"scripted:{script}"]
    with Terminal(words, {**home, **facts(tmp_path, script)}, columns=500) as terminal:
        terminal.wait_for(f"t{LAPSED}")
        terminal.press("/show", ENTER)
        terminal.wait_for(f"T{LAPSED}")
        terminal.wait_for("tokens used")
        terminal.press("Go on.", ENTER)
        terminal.wait_for("Said.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
        assert LAPSED not in terminal.wait_for("Saved.")


def test_idle_chat_sends_keep_alive_if_configured(tmp_path: Path, home: Mapping[str, str]) -> None:
    script = tmp_path / "replies.json"
    script.write_text(json.dumps(["Said.", "K"]), encoding="utf-8")
    file = tmp_path / "facts.toml"
    known = f'[[model]]\nmatch = "{script}"\nas_of = 2026-11-17\nlifetime = 6\nread = 0.01\n'
    file.write_text(known, encoding="utf-8")
    url = f"sqlite:///{tmp_path}/chats.db"
    words = ["chat", "garden", "--store", url, "--model", f"scripted:{script}", "--set", "keep_alive=1"]
    with Terminal(words, {**home, "LAMELLA_MODEL_FACTS": str(file)}, columns=500) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("What is in it?", ENTER)
        terminal.wait_for("Said.")
        # It is told with its price before it is done; that it was is in the ledger, and not on the screen.
        terminal.wait_for("; keep-alive in ")
        until(lambda: "keep_alive" in list_purposes(url))
        assert terminal.end_chat() == 0
        terminal.wait_for("Saved.")
    ledger = spawn("ledger", "garden", "--store", url, "--json", environment=home).out
    assert json.dumps(json.loads(ledger)).count('"keep_alive"') == 1


def test_keep_alive_price_is_offered_if_it_pays(tmp_path: Path, script: Path, home: Mapping[str, str]) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        conversation = engine.chat("garden", layout="auto", model=f"scripted:{script}")
        at = datetime.now(UTC) - timedelta(seconds=3_000)
        conversation.ask("What is in it?", attach=[Note(path="garden.md", text="Beans. " * 500)], at=at)
        conversation.reply("Beans.", at=at)
    file = tmp_path / "facts.toml"
    known = f'[[model]]\nmatch = "{script}"\nas_of = 2026-11-17\nlifetime = 3500\nread = 0.1\n'
    file.write_text(known, encoding="utf-8")
    shown = spawn("show", "garden", "--store", url, environment={**home, "LAMELLA_MODEL_FACTS": str(file)}).out
    assert "; keep_alive = 1 would prevent that for " in shown
