"""Tokens from the command line: shown once, listed without themselves, taken back."""

import json
from pathlib import Path

import pytest

from lamella.cli import main
from lamella.settings.tokens import TOKEN_PREFIX


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_token_is_shown_once_listed_and_revoked(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main(["tokens", "list"]) == 0
    assert "No tokens yet" in capsys.readouterr().out
    assert main(["tokens", "add", "laptop", "--owner", "ana"]) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith(TOKEN_PREFIX)
    assert main(["tokens", "list"]) == 0
    listed = capsys.readouterr().out
    assert "laptop  chat  ana" in listed
    assert token not in listed
    assert not any(token in path.read_text(encoding="utf-8") for path in home.rglob("*.json"))
    assert main(["tokens", "remove", "laptop"]) == 0
    capsys.readouterr()
    assert main(["tokens", "remove", "laptop"]) == 2
    assert "Token not found: laptop" in capsys.readouterr().err


def test_token_commands_print_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "add", "phone", "--scope", "read", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["name"], made["scope"], made["owner"]) == ("phone", "read", None)
    assert made["token"].startswith(TOKEN_PREFIX)
    assert main(["tokens", "list", "--json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["tokens"]
    assert "token" not in kept
    assert main(["tokens", "remove", "phone", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == "phone"


@pytest.mark.parametrize("words", [["add", "Ana B"], ["add", "x", "--owner", "../y"], ["add", "x", "--scope", "god"]])
def test_invalid_name_and_scope_are_refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["tokens", *words]) == 2
    told = capsys.readouterr().err
    assert "error: " in told
    assert "hint: " in told
