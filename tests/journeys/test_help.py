"""Help: every command has one, flags show no value, and every example in it runs."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.repository import ROOT
from tests.journeys.running import run, spawn

import lamella
from lamella.cli.app import COMMANDS as TABLE
from lamella.cli.app import build_click_command
from lamella.cli.overview import FIRST_COMMANDS

_EXAMPLE = re.compile(r"^ +(lamella (?!COMMAND|--help).+?) *$", re.MULTILINE)


def list_commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - typer hides its types
    yield words
    # What a group is about is before its commands: any workflow will do.
    about = ("paper",) if words == ("workflow",) else ()
    for name, inner in getattr(command, "commands", {}).items():
        yield from list_commands(inner, *words, *about, name)


COMMANDS = list(list_commands(build_click_command()))
# Commands that end when their client does. Tests of their own start them.
ENDLESS = {("acp",), ("mcp", "serve")}


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def find_examples(words: tuple[str, ...]) -> list[str]:
    return _EXAMPLE.findall(run(*words, "--help").out)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "lamella")
def test_every_command_has_help_without_side_effects(words: tuple[str, ...]) -> None:
    ran = run(*words, "--help")
    assert (ran.exit, ran.err) == (0, "")
    told = " ".join(("lamella", *words)).replace("workflow paper", "workflow {NAME}")
    assert f"Usage: {told}" in ran.out
    assert "<bool>" not in ran.out


def test_lamella_without_arguments_prints_ten_commands_on_one_screen() -> None:
    ran = run()
    lines = ran.out.splitlines()
    assert (ran.exit, ran.err) == (0, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "lamella --help lists all commands." in lines
    assert len(FIRST_COMMANDS) == 10
    assert all(len(summary.split()) <= 8 for summary in FIRST_COMMANDS.values())
    first = lines.index("Commands:") + 1
    assert [line.split()[0] for line in lines[first : first + 10]] == list(FIRST_COMMANDS)


def test_help_lists_each_command_on_one_line_the_first_ten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = re.findall(r"^│ (\S+) +(\S.+?) *│$", run("--help").out, re.MULTILINE)
    names = [name for name, _ in rows if not name.startswith("-")]
    assert names == [name for name in TABLE if name != "paper"]
    assert names[:10] == list(FIRST_COMMANDS)
    assert all(help_text.endswith(".") for _, help_text in rows)


@pytest.mark.usefixtures("wide")
def test_every_example_in_help_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Callable[..., str]
) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    for name, value in {"HOME": str(tmp_path), "LAMELLA_STORE": url, "LAMELLA_MODEL": script("Yes.")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(_make_workspace(tmp_path / "work"))
    with lamella.open(url) as engine:
        _write_first_stage(engine, "tea")
        engine.chat("tea").submit_stage()
        conversation = engine.chat("garden", layout="in_place")
        for number in range(12):
            conversation.ask(f"Bed {number} holds beans. " * 10)
            conversation.reply(f"Noted of bed {number}, and these are some words of it. " * 20)
        conversation.commit(conversation.plan(to=0.02))
        conversation.ask(
            "And what is decided?", attach=[lamella.Note(path="decisions/one-index.md", text="One index.")]
        )
        conversation.reply("One index.")
    commands = [words for words in COMMANDS if words not in ENDLESS]
    examples = dict.fromkeys(example for words in commands for example in find_examples(words))
    assert len(examples) >= 10
    failed: list[str] = []
    for example in examples:
        ran = spawn(*shlex.split(example)[1:])
        failed += [f"{example}: {ran.err}"] if ran.exit else []
        if example.startswith("lamella workflow paper new coffee"):
            with lamella.open(url) as engine:
                _write_first_stage(engine, "coffee")
    assert failed == []


def _make_workspace(folder: Path) -> Path:
    """A folder with the files of the project, in which examples may write, and those that the examples name."""
    folder.mkdir()
    for path in ROOT.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "library.bib").write_text("@article{a, title={Sleep}, author={Doe, Jane}, year={2020}}", encoding="utf-8")
    (folder / "sleep.png").write_bytes((ROOT / "docs/images").glob("*.png").__next__().read_bytes())
    return folder


def _write_first_stage(engine: lamella.Engine, name: str) -> None:
    """Have a paper whose first stage can be submitted."""
    conversation = engine.chat(name)
    progress = conversation.workflow or conversation.start_workflow("paper")
    conversation.write_stage(dict.fromkeys(progress.stages[0].required, "given"))
