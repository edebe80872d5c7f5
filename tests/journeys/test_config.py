"""Settings from files: the user's, the project's, the environment and flags, the nearest winning; and bad files."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, SECONDS, Ran, one_turn, refusal, spawn, spawn_in

from lamella.settings.model import DEFAULT_SYSTEM

SECRET = "sk-secret-1"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "LAMELLA_API_KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine with a user, a project and a folder deep inside it where commands run."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "project" / "lamella.toml"

    @property
    def user(self) -> Path:
        return self.root / "config" / "lamella" / "lamella.toml"

    @property
    def here(self) -> Path:
        return self.root / "project" / "notes" / "deep"

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> Ran:
        """A command as the user would give it."""
        kept = {name: value for name, value in os.environ.items() if name not in KEYS and "LAMELLA" not in name}
        own = {"HOME": str(self.root), "XDG_CONFIG_HOME": str(self.root / "config"), **(environment or {})}
        return spawn_in({**kept, **own}, *words, folder=self.here)

    def show(self, **environment: str) -> dict[str, tuple[object, str]]:
        """Every setting with its value and where it is from."""
        ran = self.run("config", "show", "--json", environment=environment)
        assert ran.exit == 0, ran
        return {name: (told["value"], told["from"]) for name, told in json.loads(ran.out)["settings"].items()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(root=tmp_path)
    machine.here.mkdir(parents=True)
    machine.user.parent.mkdir(parents=True)
    return machine


def test_without_files_everything_is_the_default(machine: Machine) -> None:
    shown = machine.show()
    assert {origin for _, origin in shown.values()} == {"default"}
    assert shown["window"] == (128_000, "default")
    assert shown["compaction"] == ({}, "default")


def test_nearer_setting_wins_and_others_remain(machine: Machine) -> None:
    machine.user.write_text('window = 1\nreserve = 2\nlayout = "in_place"\nimage_notes = "handle"\n', encoding="utf-8")
    machine.project.write_text('window = 10\nreserve = 20\n[compaction]\nwords = ["ok"]\n', encoding="utf-8")
    shown = machine.show(LAMELLA_WINDOW="100")
    assert shown["window"] == (100, "environment")
    assert shown["reserve"] == (20, "project file")
    assert shown["layout"] == ("in_place", "user file")
    assert shown["image_notes"] == ("handle", "user file")
    assert shown["compaction"] == ({"words": ["ok"]}, "project file")
    assert shown["warn"] == (0.6, "default")


def test_nearest_project_file_above_is_the_one(machine: Machine) -> None:
    machine.project.write_text("window = 10\nreserve = 3\n", encoding="utf-8")
    (machine.here / "lamella.toml").write_text("window = 9000\n", encoding="utf-8")
    shown = machine.show()
    assert shown["window"] == (9_000, "project file")
    assert shown["reserve"] == (4_096, "default")


def test_profile_ranks_below_explicit_values(machine: Machine) -> None:
    machine.user.write_text('profile = "seed-paper"\nhard = 0.99\n', encoding="utf-8")
    shown = machine.show()
    assert shown["profile"] == ("seed-paper", "user file")
    assert shown["trigger"] == (0.85, "profile")
    assert shown["hard"] == (0.99, "user file")


def test_flag_and_a_transcript_are_nearer_than_files(machine: Machine) -> None:
    machine.project.write_text('layout = "in_place"\nwindow = 9000\n', encoding="utf-8")
    file = machine.here / "chat.json"
    file.write_text(json.dumps({**one_turn(), "window": 8_000}), encoding="utf-8")
    limits = [
        json.loads(machine.run("replay", "chat.json", "--json", *flags).out)["turns"][0]["tokens"]["limit"]
        for flags in ([], ["--window", "7000"])
    ]
    assert limits == [8_000 - 4_096, 7_000 - 4_096]


def test_config_variable_selects_other_user_file(machine: Machine) -> None:
    machine.user.write_text("window = 8000\n", encoding="utf-8")
    other = machine.root / "other.toml"
    other.write_text("window = 9000\n", encoding="utf-8")
    assert machine.show(LAMELLA_CONFIG=str(other))["window"] == (9_000, "user file")
    assert machine.show(LAMELLA_CONFIG=os.devnull)["window"] == (128_000, "default")
    ran = machine.run("config", "show", "--json", environment={"LAMELLA_CONFIG": str(machine.root / "none.toml")})
    assert "none.toml cannot be read" in refusal(ran, code="bad_setting")


def test_one_file_is_not_read_as_both(machine: Machine) -> None:
    machine.project.write_text("window = 9000\n", encoding="utf-8")
    assert machine.show(LAMELLA_CONFIG=str(machine.project))["window"] == (9_000, "user file")


def test_keys_are_shown_as_set_or_unset_only(machine: Machine) -> None:
    machine.user.write_text(f'store = "postgresql://me:{SECRET}@db/chats"\n', encoding="utf-8")
    for words in (("config", "show"), ("config", "show", "--json")):
        ran = machine.run(*words, environment={"OPENAI_API_KEY": SECRET})
        assert ran.exit == 0
        assert SECRET not in ran.out + ran.err
        assert "postgresql://me:***@db/chats" in ran.out
    told = json.loads(ran.out)
    assert told["keys"] == {name: "set" if name == "OPENAI_API_KEY" else "not set" for name in KEYS}
    assert told["files"] == {"user file": str(machine.user)}


BAD = {
    "no TOML": ("window = = 1", "is not TOML: Invalid value (at line 1, column 10)", "window = 200000"),
    "the same twice": ("window = 1\nwindow = 2", "is not TOML", "window"),
    "no such setting": (
        "windw = 1",
        "There is no setting windw.",
        "hint: Did you mean window? Settings are: model, profile, window",
    ),
    "no such setting in a table": (
        "[compaction]\nstep = 1",
        "There is no setting compaction.step.",
        "compaction.steps?",
    ),
    "a table nobody knows": ("[lamella]\nwindow = 1", "There is no setting lamella.", "Settings are"),
    "another type": (
        'window = "wide"',
        "The setting window is 'wide': input should be a valid integer.",
        "window takes",
    ),
    "a number for a word": (
        "layout = 1",
        "The setting layout is 1: input should be a valid string.",
        "one of: library",
    ),
    "a number for a choice": ("image_notes = 1", "The setting image_notes is 1: input should be a", "text, handle"),
    "a key": (
        f'openai_api_key = "{SECRET}"',
        "There is no setting openai_api_key.",
        "Keys are read from the environment",
    ),
    "a password in a list": (f'store = ["postgresql://me:{SECRET}@db"]', "'postgresql://me:***@db'", "store takes"),
    "not UTF-8": (b"# \xff", "is not UTF-8.", "Save it as UTF-8."),
}


@pytest.mark.parametrize(("text", "what", "hint"), BAD.values(), ids=BAD)
def test_invalid_file_is_named_with_key_and_hint(machine: Machine, text: str | bytes, what: str, hint: str) -> None:
    machine.project.write_bytes(text if isinstance(text, bytes) else text.encode())
    ran = machine.run("config", "show", "--json")
    message = refusal(ran, code="bad_setting")
    assert message.startswith(f"{machine.project}")
    assert what in message
    assert hint in ran.err
    assert SECRET not in ran.out + ran.err


def test_missing_profile_is_refused(machine: Machine) -> None:
    machine.project.write_text('profile = "frugal"\n', encoding="utf-8")
    ran = machine.run("config", "show", "--json")
    assert refusal(ran, code="bad_setting") == f"{machine.project}: There is no profile 'frugal'."


def test_invalid_setting_is_named_with_its_file(machine: Machine) -> None:
    machine.user.write_text('layout = "sideways"\nreserve = 900000\n', encoding="utf-8")
    machine.project.write_text('model_facts = "none.toml"\n[compaction]\nsteps = ["shred"]\n', encoding="utf-8")
    ran = machine.run(
        "config",
        "show",
        environment={"LAMELLA_WARN": "nan", "LAMELLA_STORE": "mysql://db", "LAMELLA_HISTORY_TURNS": "0"},
    )
    assert ran.exit == 2
    assert "layout              user file     sideways" in ran.out
    told = [line.removeprefix("error: ") for line in ran.err.splitlines() if line.startswith("error: ")]
    assert f"{machine.user}: There is no layout 'sideways'." in told
    assert f"{machine.user}: A window of 128,000 tokens with a reserve of 900,000 leaves no room." in told
    assert f"{machine.project}: There is no step 'shred'." in told
    assert any(line.startswith("LAMELLA_WARN: Thresholds are not in order: warn nan") for line in told)
    assert "LAMELLA_STORE: There is no kind of store 'mysql'." in told
    assert "LAMELLA_HISTORY_TURNS: Invalid history_turns: 0" in told
    assert any(line.startswith(f"{machine.project}: ") and "none.toml" in line for line in told)
    assert len(told) == 7


def test_conversation_and_config_show_report_same_error(machine: Machine) -> None:
    machine.project.write_text('layout = "sideways"\n', encoding="utf-8")
    (machine.here / "chat.json").write_text(json.dumps(one_turn()), encoding="utf-8")
    shown, replayed = machine.run("config", "show", "--json"), machine.run("replay", "chat.json", "--json")
    assert refusal(shown, code="bad_setting") == f"{machine.project}: There is no layout 'sideways'."
    assert refusal(replayed, code="bad_setting") == refusal(shown, code="bad_setting")
    talked = machine.run("chat", "talk", "--store", "memory:")
    assert (talked.exit, talked.err.splitlines()[0]) == (2, f"error: {machine.project}: There is no layout 'sideways'.")


def test_config_show_lists_settings_of_new_chat(machine: Machine) -> None:
    chat = json.loads(machine.run("config", "show", "--json").out)["chat"]
    told = {"model": "local", "layout": "auto", "window": 8_192, "reserve": 1_024, "missing": None}
    assert chat == {**told, "system": DEFAULT_SYSTEM}
    line = machine.run("config", "show").out.splitlines()[-1]
    assert line == "a new chat          model local, layout auto, window 8,192, reserve 1,024"
    machine.project.write_text('layout = "library"\nmodel = "openai:gpt-6"\n', encoding="utf-8")
    line = machine.run("config", "show").out.splitlines()[-1]
    assert "model openai:gpt-6, layout library, " in line
    assert line.endswith("lamella.toml names the model openai:gpt-6, and you have not.")
    line = machine.run("config", "show", "--model", "openai:gpt-6").out.splitlines()[-1]
    assert line.endswith("; it cannot be used yet: There is no key for OpenAI.")


def test_misspelt_variable_warns_once_and_is_ignored(machine: Machine) -> None:
    misspelt = {
        "LAMELLA_LAYUOT": "in_place",
        "LAMELLA_SERVICE_PORT": "80",
        "LAMELLA_API_KEY": "k",
        "lamella_window": "9000",
    }
    ran = machine.run("config", "show", "--json", environment=misspelt)
    assert ran.err == "warning: Unknown setting LAMELLA_LAYUOT is ignored. Did you mean LAMELLA_LAYOUT?\n"
    settings = json.loads(ran.out)["settings"]
    assert settings["layout"]["from"] == "default"
    assert settings["window"] == {"value": 9_000, "from": "environment"}


def test_table_in_the_environment_is_json_or_refused(machine: Machine) -> None:
    assert machine.show(LAMELLA_COMPACTION='{"words": ["ok"]}')["compaction"] == ({"words": ["ok"]}, "environment")
    ran = machine.run("config", "show", "--json", environment={"LAMELLA_COMPACTION": "{"})
    assert refusal(ran, code="bad_setting") == "LAMELLA_COMPACTION is not JSON."


def test_model_facts_path_is_relative_to_its_file(machine: Machine) -> None:
    machine.project.write_text('model_facts = "facts.toml"\nmodel = "house-1"\n', encoding="utf-8")
    facts = machine.project.parent / "facts.toml"
    facts.write_text('[[model]]\nmatch = "house"\nas_of = 2026-11-16\nminimum = 7\n', encoding="utf-8")
    assert machine.show()["model_facts"] == (str(facts), "project file")
    turn = {"user": "word " * 100}
    (machine.here / "chat.json").write_text(json.dumps({"lamella": 1, "turns": [turn, turn]}), encoding="utf-8")
    replayed = machine.run("replay", "chat.json", "--json")
    assert json.loads(replayed.out)["turns"][1]["cache"]["read"] > 100
    facts.write_text('[[model]]\nmatch = "house"\nas_of = 2026-11-16\nminimum = 100000\n', encoding="utf-8")
    replayed = machine.run("replay", "chat.json", "--json")
    assert json.loads(replayed.out)["turns"][1]["cache"]["read"] == 0
    facts.unlink()
    ran = machine.run("replay", "chat.json", "--json")
    assert str(facts) in refusal(ran, code="bad_setting")


def test_deleted_working_folder_has_no_project(machine: Machine) -> None:
    script = "import os, sys; os.rmdir(os.getcwd()); from lamella.cli import main; sys.exit(main(['config', 'show']))"
    done = subprocess.run(
        [COMMAND[0], "-c", script], cwd=machine.here, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done
    assert "not found in this folder or above" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("LAMELLA_STORE", "postgresql://h/x?password=secretpw", "secretpw"),
        ("LAMELLA_STORE", "postgresql://u:sec@r3t/pw@h/x", "r3t"),
        ("LAMELLA_MODEL", "openai-compatible:http://h?api_key=hidden#m", "hidden"),
    ],
)
def test_secrets_in_addresses_are_not_shown(name: str, value: str, secret: str) -> None:
    shown = spawn("config", "show", environment={name: value})
    assert shown.exit == 0
    assert secret not in shown.out
    assert "***" in shown.out


def test_set_writes_one_value_and_keeps_the_rest_of_the_file(machine: Machine) -> None:
    machine.user.write_text("# mine\n[serve]\nport = 8000 # fixed\n\n[compaction]\n", encoding="utf-8")
    assert machine.run("config", "set", "window", "9000").out == f"window = 9000 in {machine.user}\n"
    assert machine.run("config", "set", "serve.hosts", '["a.example"]').exit == 0
    written = machine.user.read_text(encoding="utf-8")
    assert "# mine" in written
    assert "port = 8000 # fixed" in written
    assert machine.show()["window"] == (9_000, "user file")
    assert machine.run("config", "get", "serve.hosts").out == '["a.example"]\n'
    assert machine.run("config", "unset", "window").exit == 0
    assert machine.show()["window"] == (128_000, "default")


@pytest.mark.parametrize(("name", "value"), [("window", "many"), ("serve.port", "many"), ("windw", "9"), ("a.b", "9")])
def test_invalid_value_leaves_the_file_unchanged(machine: Machine, name: str, value: str) -> None:
    machine.user.write_text("window = 9000\n", encoding="utf-8")
    ran = machine.run("config", "set", name, value)
    assert (ran.exit, ran.err.startswith("error: ")) == (2, True), ran
    assert machine.user.read_text(encoding="utf-8") == "window = 9000\n"


def test_set_creates_file_and_reports_override(machine: Machine) -> None:
    assert machine.run("config", "path").out == f"{machine.user}\n"
    ran = machine.run("config", "set", "layout", "library", environment={"LAMELLA_LAYOUT": "auto"})
    assert ran.err == "note: LAMELLA_LAYOUT overrides it here.\n"
    assert machine.show()["layout"] == ("library", "user file")
    assert machine.user.stat().st_mode & 0o077 == 0


def test_project_option_uses_the_nearest_project_file(machine: Machine) -> None:
    assert machine.run("config", "path", "--project").out == f"{machine.here / 'lamella.toml'}\n"
    machine.project.write_text("", encoding="utf-8")
    assert machine.run("config", "set", "window", "9000", "--project").out == f"window = 9000 in {machine.project}\n"
    assert machine.show()["window"] == (9_000, "project file")


def test_edit_opens_the_editor_and_checks_the_file_afterwards(machine: Machine) -> None:
    editor = machine.root / "editor.sh"
    editor.write_text('#!/bin/sh\necho "window = 1" >> "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    ran = machine.run("config", "edit", environment={"EDITOR": str(editor)})
    assert ran.exit == 2, ran
    assert "window" in ran.err
    assert machine.user.read_text(encoding="utf-8").endswith("window = 1\n")
    ran = machine.run("config", "edit", environment={"EDITOR": "/nowhere/editor"})
    assert "error: The editor cannot be used" in ran.err


def test_set_refuses_path_that_is_not_a_file(machine: Machine) -> None:
    ran = machine.run("config", "set", "window", "9000", environment={"LAMELLA_CONFIG": os.devnull})
    assert "is no file that settings can be written to" in ran.err
