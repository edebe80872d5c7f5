"""Tab completion in a shell: the installed script and its answers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import refusal, spawn

import lamella


def ask(home: Mapping[str, str], *words: str) -> list[str]:
    """What bash is told of the last of these words."""
    typed = {"_LAMELLA_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    ran = spawn(environment={**home, **typed})
    assert (ran.exit, ran.err) == (0, "")
    return ran.out.split()


def test_commands_options_and_names_of_conversations_are_completed(home: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / ".lamella").mkdir()
    with lamella.open(f"sqlite:///{tmp_path}/.lamella/chats.db") as engine:
        for name in ("garden", "garage", "two words", "tides"):
            engine.chat(name).ask("Hello?")
    other = f"sqlite:///{tmp_path}/other.db"
    with lamella.open(other) as engine:
        engine.chat("garlic").ask("Hello?")
    assert ask(home, "lamella", "cha") == ["chat", "chats"]
    assert "--vault" in ask(home, "lamella", "chat", "--v")
    assert ask(home, "lamella", "chats", "re") == ["regenerate", "resume", "remove", "rename"]
    assert sorted(ask(home, "lamella", "chats", "show", "gar")) == ["garage", "garden"]
    assert ask(home, "lamella", "chat", "t") == ["tides"], "what would have to be quoted is not offered"
    assert ask(home, "lamella", "ledger", "--store", other, "gar") == ["garlic"]
    assert ask(home, "lamella", "ledger", "--store", "nowhere:", "gar") == []


def test_completion_prints_no_error_while_typing(home: Mapping[str, str]) -> None:
    # Where words end is not said, as bash always does.
    ran = spawn(environment={**home, "_LAMELLA_COMPLETE": "complete_bash", "COMP_WORDS": "lamella chats"})
    assert (ran.exit, ran.out, ran.err) == (1, "", "")


def test_completion_script_fits_each_shell(home: Mapping[str, str]) -> None:
    for shell, said in {"bash": "complete -o", "zsh": "#compdef lamella", "fish": "complete --command lamella"}.items():
        ran = spawn("completion", shell, environment=home)
        assert ran.exit == 0
        assert said in ran.out
        assert json.loads(spawn("completion", shell, "--json", environment=home).out)["script"] == ran.out.strip()
    assert "PowerShell" in refusal(
        spawn("completion", "powershell", "--install", "--json", environment=home), code="bad_usage"
    )
    assert spawn("completion", "tcsh", environment=home).exit == 2


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/lamella.sh"),
        ("zsh", ".zfunc/_lamella"),
        ("fish", ".config/fish/completions/lamella.fish"),
    ],
)
def test_completion_is_installed_for_shell(home: Mapping[str, str], tmp_path: Path, shell: str, file: str) -> None:
    (tmp_path / ".bashrc").write_text("alias ll=ls\n", encoding="utf-8")
    ran = spawn("completion", shell, "--install", environment=home)
    assert ran.out == f"Installed: {tmp_path / file}. Open a new shell to use it.\n"
    assert (tmp_path / file).read_text(encoding="utf-8").strip() == spawn("completion", shell).out.strip()
    assert (tmp_path / ".bashrc").read_text(encoding="utf-8").startswith("alias ll=ls\n")


def test_bash_completes_with_installed_script(home: Mapping[str, str], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    command = tmp_path / "bin" / "lamella"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nimport sys\nfrom lamella.cli import main\nsys.exit(main())\n", encoding="utf-8"
    )
    command.chmod(0o755)
    (tmp_path / "given.sh").write_text(spawn("completion", "bash", environment=home).out, encoding="utf-8")
    typed = "COMP_WORDS=(lamella chats sea); COMP_CWORD=2; _lamella_completion lamella; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        [bash, "--norc", "-c", f"source {tmp_path}/given.sh; {typed}"],
        env={**os.environ, **home, "PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("search\n", "")
