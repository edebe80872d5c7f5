"""``lamella code select``: files selected for a question, attached to a conversation, and bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, refusal, run
from tests.unit.codebase.repositories import commit, write

from lamella import open as open_engine
from lamella.code import select_code

FILES = {
    **{f"other/{number}.py": f"value_{number} = {number}\n" for number in range(15)},
    "src/beds.py": 'def water_beds():\n    """Water all beds."""\n    return 1\n',
    ".env": "KEY=1\n",
    ".gitignore": "build/\n",
    "build/out.py": "x = 1\n",
}
QUESTION = "Who waters the beds?"


@pytest.fixture(autouse=True)
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = write(tmp_path / "repo", FILES)
    commit(root, "Begin")
    return root


def select(root: Path, *words: str, question: str = QUESTION) -> tuple[int, str]:
    ran = run("code", "select", str(root), "--question", question, *words)
    return ran.exit, ran.out


def test_files_are_shown_with_their_form_tokens_and_score(repository: Path) -> None:
    exit_code, out = select(repository)
    assert exit_code == 0
    first = out.splitlines()[1].split()
    assert first[:2] == ["src/beds.py", "full"]
    assert "of 20,000 tokens" in out


def test_explain_shows_scores_and_reasons_for_omission(repository: Path) -> None:
    _, out = select(repository, "--explain")
    assert "symbols" in out.splitlines()[1]
    assert "left out: .env: files of this name hold secrets" in out
    assert "left out: build/: git's rules ignore it" in out


def test_python_and_the_command_give_the_same(repository: Path) -> None:
    body = json.loads(select(repository, "--json", "--explain", "--budget", "900")[1])
    selection = select_code(repository, QUESTION, budget=900)
    assert body["text"] == selection.text
    assert body["tokens"] == selection.tokens <= 900
    assert [(one["path"], one["form"], one["text"], one["parts"]) for one in body["files"]] == [
        (one.path, one.form, one.text, one.score_parts) for one in selection.files
    ]
    assert [(one["path"], one["reason"]) for one in body["left_out"]] == list(selection.left_out)


def test_text_option_prints_what_model_reads(repository: Path) -> None:
    assert select(repository, "--text")[1] == select_code(repository, QUESTION).text


def test_posted_files_are_returned_with_contents(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text(json.dumps(FILES))
    ran = run("code", "select", "--files", str(tmp_path / "files.json"), "--question", QUESTION, "--json")
    body = json.loads(ran.out)
    assert body["files"][0] == {**body["files"][0], "path": "src/beds.py", "text": FILES["src/beds.py"]}


def test_code_selection_is_pending_for_next_turn(repository: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    with open_engine(store) as engine:
        conversation = engine.chat("garden")
        conversation.ask("Hi")
        conversation.reply("Hello")
    ran = run("code", "select", str(repository), "--question", QUESTION, "--chat", "garden", "--store", store)
    assert ran.exit == 0, ran.err
    assert "codebase:" in ran.out
    assert "src/beds.py" in run("show", "garden", "--store", store).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none"], "source_missing", "There is no folder none"),
        (["repo/src/beds.py"], "source_missing", "is a file, not a folder"),
        (["repo", "--question", " "], "bad_usage", "Missing question"),
        (["repo", "--budget", "7"], "bad_call", "A budget of 7 tokens is too small for the name of one file"),
        (["empty"], "source_missing", "No files to select from in empty: 0 were left out"),
        ([], "bad_usage", "Give either a folder or --files"),
        (["repo", "--files", "a.json"], "bad_usage", "Give either a folder or --files"),
        (["--files", "none.json"], "source_missing", "none.json cannot be read"),
        (["--files", "bad.json"], "source_unreadable", "bad.json is not JSON"),
    ],
)
def test_bad_input_is_refused_with_a_hint(
    words: list[str], code: str, said: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.parent / "empty").mkdir()
    (repository.parent / "bad.json").write_text("{")
    monkeypatch.chdir(repository.parent)
    assert said in refusal(run("code", "select", "--question", "x", *words, "--json"), code=code)


def test_file_of_a_hundred_megabytes_is_not_opened(repository: Path) -> None:
    with (repository / "huge.py").open("wb") as file:
        file.truncate(100_000_000)
    _, out = select(repository, "--explain")
    assert "left out: huge.py: it has 100,000,000 bytes; files of up to 1,000,000 are looked at" in out


@pytest.mark.parametrize("below", ["", "src"])
def test_unreadable_files_and_folders_are_reported(repository: Path, below: str) -> None:
    root = repository / below
    write(root, {"drawer/a.py": "x = 1\n", "bench.py": "x = 1\n"})
    (root / "bench.py").chmod(0)
    (root / "drawer").chmod(0)
    # Who may read everything gives that up first, for good: the rights of Linux by which root passes.
    drop = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, right, 0, 0, 0) for right in (1, 2)]"
    script = f"{drop}; os.execv(sys.executable, ({', '.join(map(repr, COMMAND))}, *sys.argv[1:]))"
    words = ("code", "select", str(root), "--question", QUESTION, "--explain")
    try:
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    finally:
        (root / "drawer").chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert "left out: bench.py: it cannot be read (Permission denied)" in done.stdout
    assert "left out: drawer/: it cannot be read (Permission denied)" in done.stdout


def test_selection_creates_missing_conversation_and_reports_if_nothing_fits(repository: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    done, told = select(repository, "--chat", "new-one", "--store", url)
    assert (done, "attached to the next turn" in told) == (0, True), told
    with open_engine(url) as engine:
        assert [one.name for one in engine.chats()] == ["new-one"]
        assert engine.chat("new-one").pending_commands.attach
    said = "No file matches the question"
    assert said in run("code", "select", str(repository), "--question", "zzqqxx wwvv").err
    assert said not in run("code", "select", str(repository), "--question", QUESTION).err
    asked = ("code", "select", str(repository), "--question", "zzqqxx wwvv")
    assert run(*asked, "--chat", "new-one", "--store", url).err.count(said) == 1
    assert said in run(*asked, "--text").err
    assert said in run(*asked, "--json").out
