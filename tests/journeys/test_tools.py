"""Tools at the terminal: which are there, a change that is shown and asked about, and taken back."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import refusal, run, spawn
from tests.journeys.terminal import CTRL_C, ENTER, Terminal

NOTE = "<writeToFile>\n<path>beans.md</path>\n<content>\nSow in May.\n</content>\n</writeToFile>"
ALL = [
    *(
        "compact",
        "edit_note",
        "fetch_url",
        "list_files",
        "read_note",
        "recall",
        "remember",
        "search_notes",
        "time_range",
    ),
    "write_note",
]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "beans.md").write_text("Sow in April.\n", encoding="utf-8")
    return folder


def listed(*words: str) -> list[str]:
    body = json.loads(run("tools", "--json", *words).out)
    return [tool["name"] for tool in body["tools"]]


def test_tools_of_a_vault_are_listed_with_their_schemas(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert listed("--vault", str(vault)) == ALL
    told = json.loads(run("tools", "--json", "--vault", str(vault)).out)["tools"][-1]
    assert (told["name"], told["parameters"]["required"]) == ("write_note", ["path", "content"])
    assert "write_note(path, content)" in run("tools", "--vault", str(vault)).out
    monkeypatch.setenv("LAMELLA_NOTE_WRITES", "off")
    assert listed("--vault", str(vault)) == [name for name in ALL if name not in ("edit_note", "write_note")]


def test_tools_that_need_vault_are_omitted_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert listed() == ["compact", "fetch_url", "recall", "remember", "time_range"]
    monkeypatch.setenv("LAMELLA_MEMORY_WRITES", "off")
    assert listed() == ["compact", "fetch_url", "recall", "time_range"]
    monkeypatch.delenv("LAMELLA_MEMORY_WRITES")
    (tmp_path / ".obsidian").mkdir()
    assert listed() == ALL
    assert "no vault folder" in refusal(run("tools", "--json", "--vault", "gone"), code="source_missing")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("LAMELLA_NOTE_WRITES", "sure"), ("LAMELLA_WEB_SEARCH", "search.example"), ("LAMELLA_TOOL_OUTPUT", "3")],
)
def test_invalid_tool_setting_is_reported(
    vault: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    told = spawn("ask", "?", "--vault", str(vault), "--model", "local", "--json").out
    assert json.loads(told)["error"]["code"] == "bad_setting"
    assert variable.removeprefix("LAMELLA_").lower() in told


def talk(vault: Path, model: str, home: Mapping[str, str]) -> Terminal:
    words = ["chat", "garden", "--vault", str(vault), "--model", model]
    return Terminal(words, {**home, "LAMELLA_STORE": "memory:"})


@pytest.mark.parametrize(
    ("key", "text"),
    [("y", "Sow in May.\n"), ("n", "Sow in April.\n"), ("", "Sow in April.\n"), (CTRL_C, "Sow in April.\n")],
)
def test_change_is_shown_and_written_after_a_yes(
    vault: Path, home: Mapping[str, str], script: Callable[..., str], key: str, text: str
) -> None:
    with talk(vault, script(f"Here:\n{NOTE}", "Gladly."), home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("@composer When to sow?", ENTER)
        terminal.wait_for("Change: beans.md")
        shown = terminal.wait_for("Write this to beans.md? [y/N]")
        assert "-Sow in April." in shown
        assert "+Sow in May." in shown
        assert "\\x1b" not in terminal.shown
        # The answer is typed on the line of the question.
        assert terminal.screen[terminal.cursor_line].startswith("Write this to beans.md? [y/N]:")
        terminal.press_now(key, *([] if key == CTRL_C else [ENTER]))
        terminal.wait_for("beans.md was changed." if key == "y" else "the user said no")
        terminal.wait_for("tokens used")
        terminal.press("Thanks", ENTER)
        terminal.wait_for("Gladly.")
        terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert (vault / "beans.md").read_text(encoding="utf-8") == text


def test_ctrl_c_at_consent_prompt_means_no(vault: Path, home: Mapping[str, str], script: Callable[..., str]) -> None:
    with talk(vault, script(*[f"Here:\n{NOTE}"] * 8), home) as terminal:
        terminal.wait_for("tokens used")
        for _ in range(8):
            terminal.press("@composer When to sow?", ENTER)
            terminal.wait_for("Write this to")
            terminal.press_now(CTRL_C)
            terminal.wait_for("the user said no")
            terminal.wait_for("tokens used")
        assert terminal.end_chat() == 0
    assert (vault / "beans.md").read_text(encoding="utf-8") == "Sow in April.\n"


def test_piped_ask_writes_nothing(vault: Path, home: Mapping[str, str], script: Callable[..., str]) -> None:
    words = ("ask", "@composer When to sow?", "--vault", str(vault), "--model", script(NOTE))
    done = spawn(*words, stdin=b"y\ny\n", environment=home)
    assert "nobody can be asked here" in done.out
    assert (vault / "beans.md").read_text(encoding="utf-8") == "Sow in April.\n"


def test_written_note_is_restored_once(vault: Path, home: Mapping[str, str], script: Callable[..., str]) -> None:
    words = ("ask", "@composer When to sow?", "--vault", str(vault), "--model", script(NOTE))
    assert "was changed" in spawn(*words, environment={**home, "LAMELLA_NOTE_WRITES": "allow"}).out
    assert (vault / "beans.md").read_text(encoding="utf-8") == "Sow in May.\n"
    again = ("restore", "beans.md", "--vault", str(vault), "--json")
    restored = {"lamella": 1, "path": "beans.md", "paths": ["beans.md"], "removed": False}
    assert json.loads(spawn(*again, environment=home).out) == restored
    assert (vault / "beans.md").read_text(encoding="utf-8") == "Sow in April.\n"
    assert "no change of beans.md" in refusal(spawn(*again, environment=home), code="write_refused")
