"""The skill for coding agents: it is installed where agents look, and each of its commands works."""

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from tests.journeys.running import spawn_in

import lamella
from lamella import Note

SKILL = files("lamella.integrations").joinpath("SKILL.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^lamella (.+)$", "\n".join(re.findall(r"```sh\n(.*?)```", SKILL, re.DOTALL)), re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path, home: dict[str, str]) -> Path:
    """A folder with a note, a source file and the conversation of the examples, in the default store."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "beans.md").write_text("# Beans\n\nThe beans were sown on 3 May.\n", encoding="utf-8")
    (folder / "sowing.py").write_text("def sow_beans(bed):\n    return bed.dig()\n", encoding="utf-8")
    with lamella.open(f"sqlite:///{tmp_path}/chats.db", vault=folder) as engine:
        chat = engine.chat("garden", model="anthropic:claude-opus-5-5", layout="in_place")
        chat.ask("When were the beans sown?", attach=[Note(path="beans.md")])
        chat.reply("On 3 May. " + "They grow. " * 400)
        chat.ask("And the peas?")
        chat.reply("In April.")
    home["LAMELLA_STORE"] = f"sqlite:///{tmp_path}/chats.db"
    return folder


def test_skill_names_commands_and_when_to_use_it() -> None:
    assert len(COMMANDS) >= 8
    front = SKILL.split("---")[1]
    assert re.search(r"^name: lamella$", front, re.MULTILINE)
    description = re.search(r"^description: (.+)$", front, re.MULTILINE)
    assert description is not None
    # Agents cut longer descriptions off.
    assert len(description[1]) <= 1_024


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_skill_works_as_text_and_json(project: Path, home: dict[str, str], command: str) -> None:
    words = shlex.split(command)
    done = spawn_in({**home, "PATH": ""}, *words, folder=project)
    assert done.exit == 0, done.err
    assert done.out.strip()
    if "--messages" in words:
        words.remove("--messages")
    as_json = spawn_in({**home, "PATH": ""}, *words, "--json", folder=project)
    assert as_json.exit == 0, as_json.err
    assert json.loads(as_json.out)["lamella"] == 1


def test_skill_is_installed_and_changed_file_is_kept(tmp_path: Path, home: dict[str, str]) -> None:
    file = tmp_path / ".claude/skills/lamella/SKILL.md"
    for _ in range(2):
        done = spawn_in({**home, "PATH": ""}, "skill", "install")
        assert done.exit == 0, done.err
        assert done.out == f"Installed: {file}\n"
        assert file.read_text(encoding="utf-8") == SKILL
    file.write_text("mine", encoding="utf-8")
    refused = spawn_in({**home, "PATH": ""}, "skill", "install")
    assert refused.exit == 2
    assert refused.err.startswith(f"error: {file} exists with another content.")
    assert file.read_text(encoding="utf-8") == "mine"
    assert spawn_in({**home, "PATH": ""}, "skill", "install", "--force").exit == 0
    assert file.read_text(encoding="utf-8") == SKILL
    other = spawn_in({**home, "PATH": ""}, "skill", "install", "--to", str(tmp_path / "skills"))
    assert other.out == f"Installed: {tmp_path}/skills/lamella/SKILL.md\n"
