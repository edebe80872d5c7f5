"""Conversations out of a store and into it: nothing is written over that knows more, and one failure ends no other."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, run, spawn
from tests.waiting import HANG_SECONDS

import lamella

TALK = "**user**: one\n\n**ai**: two\n"


def keep(url: str, name: str, *said: str) -> None:
    with lamella.open(url, keep_ledger=False) as engine:
        conversation = engine.chat(name)
        for text in said:
            conversation.ask(text)
            conversation.reply(f"{text}!")


@pytest.fixture
def stores(tmp_path: Path) -> tuple[str, str]:
    return f"sqlite:///{tmp_path}/here.db", f"sqlite:///{tmp_path}/there.db"


def test_archive_of_same_named_conversation_gets_other_file(tmp_path: Path, stores: tuple[str, str]) -> None:
    here, there = stores
    keep(here, "work", "mine")
    keep(there, "work", "yours")
    folder = tmp_path / "out"
    assert run("chats", "export", "work", "--to", str(folder), "--store", here).exit == 0
    (file,) = folder.iterdir()
    before = file.read_bytes()
    ran = run("chats", "export", "work", "--to", str(folder), "--store", there)
    assert (ran.exit, ran.err) == (0, "")
    assert file.read_bytes() == before
    (other,) = (path for path in folder.iterdir() if path != file)
    assert ran.out == f"{other}\n"
    assert run("chats", "import", str(other), "--store", here).out.startswith("new  work-2")


def test_export_keeps_newer_archive_and_says_how_to_merge(tmp_path: Path, stores: tuple[str, str]) -> None:
    here, there = stores
    folder = tmp_path / "out"
    export = ("chats", "export", "work", "--to", str(folder), "--store")
    keep(here, "work", "one")
    assert run(*export, here).exit == 0
    (file,) = folder.iterdir()
    assert run("chats", "import", str(file), "--store", there).exit == 0
    keep(here, "work", "two")
    assert run(*export, here).exit == 0
    newer = file.read_bytes()
    ran = run(*export, there)
    assert ran.exit == 2
    assert "hint: Import the file first" in ran.err
    assert file.read_bytes() == newer
    assert run("chats", "import", str(file), "--store", there).out.startswith("extended  work")
    assert run(*export, there).exit == 0
    assert file.read_bytes() == newer


def test_names_are_all_checked_before_any_file_is_written(tmp_path: Path, stores: tuple[str, str]) -> None:
    keep(stores[0], "work", "one")
    for options in ((), ("--transcript",)):
        ran = run("chats", "export", "work", "wrok", *options, "--to", str(tmp_path / "out"), "--store", stores[0])
        assert (ran.exit, ran.out) == (2, "")
        assert "There is no conversation 'wrok'" in ran.err
        assert not (tmp_path / "out").exists()


def test_conversation_that_cannot_be_exported_ends_no_other(tmp_path: Path, stores: tuple[str, str]) -> None:
    here, there = stores
    folder = tmp_path / "out"
    for name in "abc":
        keep(here, name, "mine")
    assert run("store", "copy", "--from", here, "--to", there).exit == 0
    keep(there, "b", "newer")
    assert run("chats", "export", "b", "--to", str(folder), "--store", there).exit == 0
    ran = run("chats", "export", "--all", "--to", str(folder), "--store", here)
    assert ran.exit == 2
    assert len(ran.out.splitlines()) == 2
    assert len(list(folder.iterdir())) == 3
    assert "Exporting: 1 of 3 failed; the others succeeded." in ran.err


def test_bad_file_ends_the_import_of_no_other(tmp_path: Path, stores: tuple[str, str]) -> None:
    for name, text in {"a.md": TALK, "b.md": "no chat", "c.md": TALK.replace("one", "three")}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "d.md").write_bytes(b"**user**: caf\xe9")
    files = [str(tmp_path / name) for name in ("b.md", "a.md", "gone.md", "d.md", "c.md")]
    ran = run("chats", "import", *files, "--store", stores[0])
    assert ran.exit == 2
    assert [line.split()[-1] for line in ran.out.splitlines()] == ["one", "three"]
    assert ran.err.count("error: ") == ran.err.count("hint: ") == 3
    assert "Importing: 3 of 5 failed; the others succeeded." in ran.err


@pytest.mark.parametrize("words", [("chats", "import"), ("replay",)])
def test_devices_and_pipes_are_refused_without_waiting(tmp_path: Path, words: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    store = {"LAMELLA_STORE": f"sqlite:///{tmp_path}/chats.db"}
    for file, what in ((str(tmp_path / "pipe.md"), "a pipe"), ("/dev/zero", "a device"), ("/dev/random", "a device")):
        ran = spawn(*words, file, environment=store)
        assert ran.exit == 2
        assert f"error: {file} cannot be read: it is {what}, not a file." in ran.err


def test_settings_profiles_and_scripts_are_plain_files_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = str(tmp_path / "pipe")
    models = ({"LAMELLA_MODEL": f"scripted:{pipe}"}, {"LAMELLA_MODEL": f"gguf:{pipe}"})
    for environment in ({"LAMELLA_CONFIG": pipe}, {"LAMELLA_MODEL_FACTS": pipe}, *models):
        ran = spawn("ask", "Why?", environment=environment)
        assert (ran.exit, "cannot be read: it is a pipe, not a file." in ran.err) == (2, True), (environment, ran.err)


def test_endless_line_is_refused_without_filling_memory(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["Yes."]', encoding="utf-8")
    command = ["bash", "-c", 'ulimit -v 2000000; exec "$@" < /dev/zero', "-", *COMMAND, "chat", "--store", "memory:"]
    environment = {**os.environ, "LAMELLA_MODEL": f"scripted:{tmp_path}/script.json"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=HANG_SECONDS)
    assert done.returncode == 2
    assert b"A line on stdin has more than 50,000,000 bytes." in done.stderr


def test_debug_shows_unparsed_blocks_by_their_hashes_alone(tmp_path: Path, stores: tuple[str, str]) -> None:
    file = tmp_path / "a.md"
    file.write_text("**user**: Why?\n<localSearch>\nhush\n</localSearch>\n", encoding="utf-8")
    plain, debug = (run(*words, "chats", "import", str(file), "--store", stores[0]) for words in ((), ("--debug",)))
    assert "<localSearch>" in plain.err
    assert "sha256:" not in plain.err
    assert "debug: unparsed block in message 1: tag localSearch, 33 characters, sha256:" in debug.err
    assert "hush" not in debug.err


def test_many_warnings_of_file_are_truncated_with_count(tmp_path: Path, stores: tuple[str, str]) -> None:
    file = tmp_path / "a.md"
    file.write_text(f"**user**: Why?\n[Context: Notes: {', '.join(f'n{n}' for n in range(150))}]\n", encoding="utf-8")
    ran = run("chats", "import", str(file), "--store", stores[0])
    assert ran.err.count("warning: ") == 101
    assert ran.err.endswith("warning: a.md: 50 more warnings\n")


def test_transcript_is_overwritten_only_by_superset(tmp_path: Path, stores: tuple[str, str]) -> None:
    here, there = stores
    folder = tmp_path / "out"
    export = ("chats", "export", "work", "--transcript", "--to", str(folder), "--store")

    def turns() -> dict[str, list[str]]:
        files = {path.name: json.loads(path.read_bytes()) for path in sorted(folder.iterdir())}
        return {name: [turn["user"] for turn in told["turns"]] for name, told in files.items()}

    keep(here, "work", "one")
    keep(there, "work", "another")
    assert run(*export, here).exit == 0
    assert stat.S_IMODE((folder / "work.json").stat().st_mode) == 0o600
    keep(here, "work", "two")
    assert run(*export, here).exit == 0
    assert turns() == {"work.json": ["one", "two"]}
    assert run(*export, there).exit == 0
    assert turns() == {"work.json": ["one", "two"], "work 2.json": ["another"]}
