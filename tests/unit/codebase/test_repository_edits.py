"""``codebase.repository_edits``: files that a text names are read, and changes stay in the repository."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.codebase.repositories import WATCH, commit, count, write

from lamella.codebase.repository_edits import MentionedFile, RepositoryEditor
from lamella.errors import WriteDeniedError
from lamella.vault_writer import BackupFolder

KEY = "sk-ant-api03-" + "b7Kq2Zx9Lw4Tn8Vr1Yd6Hs3Mf5Jp0Gc" * 3
FILES = {
    "src/beds.py": "def water(bed):\n    return bed.wet\n",
    "src/tools.py": "SPADE = 1\n",
    "src/long.py": "".join(f"line_{number} = {number}\n" for number in range(1, 3_001)),
    "lib/tools.py": "RAKE = 1\n",
    "notes.md": "# Notes\n",
    ".env": "KEY=1\n",
    "src/keys.py": f'KEY = "{KEY}"\n',
    "build/out.py": "x = 1\n",
    "hidden.py": "x = 1\n",
    ".gitignore": "build/\n",
    ".lamellaignore": "hidden.py\n",
}
TRACEBACK = """Traceback (most recent call last):
  File "{root}/src/tools.py", line 1, in <module>
    use()
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
  File "{root}/src/beds.py", line 2, in water
AttributeError: 'dict' object has no attribute 'wet'
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write(tmp_path / "repo", FILES)
    commit(root, "Begin")
    return root


def editor(folder: Path) -> RepositoryEditor:
    ticks = iter(range(1_000))
    return RepositoryEditor(
        folder,
        secrets=WATCH,
        open_backups=lambda root: BackupFolder(root.parent / "backups"),
        now=lambda: datetime(2026, 11, 18, tzinfo=UTC) + timedelta(seconds=next(ticks)),
    )


def read(folder: Path, text: str, *, budget: int = 5_000, skip: Sequence[str] = ()) -> list[MentionedFile]:
    return editor(folder).read_named_files(text, budget=budget, count_tokens=count, skip=skip)


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def test_last_frame_of_traceback_comes_first(root: Path) -> None:
    named = read(root, TRACEBACK.format(root=root))
    assert [one.path for one in named] == ["src/beds.py", "src/tools.py"]
    assert named[0].text == FILES["src/beds.py"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("src/beds.py:2:5: error: no attribute", ["src/beds.py"]),
        ("src/beds.py(2,5): error TS2339", ["src/beds.py"]),
        ("  --> src/beds.py:2:5", ["src/beds.py"]),
        ("    at water (/app/src/beds.py:2:5)", ["src/beds.py"]),
        ("at Beds.water(beds.py:2)", ["src/beds.py"]),
        ("What does `src/beds.py` do? And notes.md.", ["src/beds.py", "notes.md"]),
        ("E   tools.py: two files have this name", []),
        ("src and lib are folders, beds is a word", []),
        ("no/such/file.py and /etc/passwd and ../wells.py", []),
    ],
)
def test_files_are_found_as_programs_name_them(root: Path, text: str, paths: list[str]) -> None:
    assert [one.path for one in read(root, text)] == paths


def test_paths_count_from_folder_and_from_root(root: Path) -> None:
    assert [one.path for one in read(root / "src", "beds.py:2 lib/tools.py:1 ../notes.md")] == [
        "src/beds.py",
        "lib/tools.py",
        "notes.md",
    ]


def test_long_file_is_read_around_named_line(root: Path) -> None:
    named = read(root, "src/long.py:1500: error", budget=1_000)
    assert [(one.path, one.lines) for one in named] == [("src/long.py", (1440, 1560))]
    assert named[0].text.startswith("line_1440 =")
    assert "tokens, and 1,000 are left" in read(root, "src/long.py is wrong", budget=1_000)[0].reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".env", "hold secrets"),
        ("src/keys.py", "line 1 looks like"),
        ("build/out.py", "git's rules ignore it"),
        ("hidden.py", ".lamellaignore leaves it out"),
        ("link.py", "it leads through a link"),
        ("linked/beds.py", "it leads through a link"),
    ],
)
def test_secret_ignored_and_linked_files_are_neither_read_nor_changed(root: Path, name: str, reason: str) -> None:
    (root / "link.py").symlink_to(root / "src/beds.py")
    (root / "linked").symlink_to(root / "src")
    before = (root / name).read_bytes()
    named = read(root, f'File "{root}/{name}", line 1')
    assert [(one.path, one.text) for one in named] == [(name, "")]
    assert reason in named[0].reason
    with pytest.raises(WriteDeniedError, match=reason):
        editor(root).plan_changes(block(name, before.decode().splitlines()[0] + "\n", "x\n"))
    assert (root / name).read_bytes() == before


@pytest.mark.parametrize(
    "path",
    [
        "../secret.py",
        "src/../../secret.py",
        "/etc/passwd",
        "~/secret.py",
        "..\\secret.py",
        "src/\x1b[2Kbeds.py",
        ".git/config",
        ".git/hooks/pre-commit",
    ],
)
@pytest.mark.parametrize("form", ["block", "diff", "new"])
def test_paths_outside_repository_are_refused(root: Path, path: str, form: str) -> None:
    (root.parent / "secret.py").write_text("x\n")
    answer = {
        "block": block(path, "x\n", "y\n"),
        "diff": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n",
        "new": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+y\n",
    }[form]
    with pytest.raises(WriteDeniedError):
        editor(root).plan_changes(answer)
    assert (root.parent / "secret.py").read_text() == "x\n"


@pytest.mark.parametrize("path", ["build/new.py", ".env.local", ".github/new.yml", "linked/new.py", "notes.md/new.py"])
def test_new_files_are_refused_where_no_file_belongs(root: Path, path: str) -> None:
    (root / "linked").symlink_to(root.parent)
    with pytest.raises(WriteDeniedError, match="is not created"):
        editor(root).plan_changes(block(path, "", "x = 1\n"))


def test_change_is_written_with_backup_and_undone(root: Path) -> None:
    (root / "src/beds.py").chmod(0o755)
    own = editor(root)
    changes = own.plan_changes(
        block("src/beds.py", "    return bed.wet\n", "    return 1\n") + block("src/new/bed.py", "", "WET = 1\n")
    )
    assert [(change.path, change.before is None) for change in changes] == [
        ("src/beds.py", False),
        ("src/new/bed.py", True),
    ]
    assert "-    return bed.wet\n+    return 1\n" in changes[0].diff
    own.write(changes)
    assert (root / "src/beds.py").read_text() == "def water(bed):\n    return 1\n"
    assert (root / "src/beds.py").stat().st_mode & 0o777 == 0o755
    assert sorted(own.restore()) == [("src/beds.py", False), ("src/new/bed.py", True)]
    assert (root / "src/beds.py").read_text() == FILES["src/beds.py"]
    assert not (root / "src/new/bed.py").exists()
    with pytest.raises(WriteDeniedError, match="no change to undo"):
        own.restore()


def test_one_file_of_change_can_be_undone_from_its_folder(root: Path) -> None:
    own = editor(root)
    own.write(
        own.plan_changes(
            block("src/beds.py", "    return bed.wet\n", "    return 1\n") + block("notes.md", "# Notes\n", "# N\n")
        )
    )
    assert editor(root / "src").restore("beds.py") == [("src/beds.py", False)]
    assert (root / "notes.md").read_text() == "# N\n"


def test_file_that_was_changed_meanwhile_is_neither_written_nor_restored(root: Path) -> None:
    own = editor(root)
    changes = own.plan_changes(block("src/beds.py", "    return bed.wet\n", "    return 1\n"))
    (root / "src/beds.py").write_text("mine\n")
    with pytest.raises(WriteDeniedError, match="changed meanwhile"):
        own.write(changes)
    assert (root / "src/beds.py").read_text() == "mine\n"
    own.write(own.plan_changes(block("src/beds.py", "mine\n", "yours\n")))
    (root / "src/beds.py").write_text("mine again\n")
    with pytest.raises(WriteDeniedError, match="stays as it is"):
        own.restore()


def test_if_one_edit_does_not_apply_nothing_is_planned(root: Path) -> None:
    answer = block("src/beds.py", "    return bed.wet\n", "    return 1\n") + block("notes.md", "gone\n", "x\n")
    with pytest.raises(WriteDeniedError, match=r"not in notes\.md"):
        editor(root).plan_changes(answer)


def test_if_one_file_cannot_be_written_others_get_their_text_back(root: Path) -> None:
    own = editor(root)
    changes = own.plan_changes(
        block("src/beds.py", "    return bed.wet\n", "    return 1\n") + block("docs/new.md", "", "x\n")
    )
    (root / "docs").write_text("a file where the folder was to be\n")
    with pytest.raises(WriteDeniedError):
        own.write(changes)
    assert (root / "src/beds.py").read_text() == FILES["src/beds.py"]
    assert own.last_change() is None


def test_windows_line_ends_stay(root: Path) -> None:
    (root / "src/beds.py").write_bytes(b"def water(bed):\r\n    return bed.wet\r\n")
    own = editor(root)
    own.write(own.plan_changes(block("src/beds.py", "    return bed.wet\n", "    return 1\n")))
    assert (root / "src/beds.py").read_bytes() == b"def water(bed):\r\n    return 1\r\n"


def test_without_git_folder_itself_is_repository(tmp_path: Path) -> None:
    root = write(tmp_path / "plain", {"a.py": "x = 1\n", ".env": "KEY=1\n"})
    own = editor(root)
    assert [one.path for one in read(root, "a.py:1 .env ../b.py") if one.text] == ["a.py"]
    own.write(own.plan_changes(block("a.py", "x = 1\n", "x = 2\n")))
    assert (root / "a.py").read_text() == "x = 2\n"


def test_absolute_path_in_repository_is_accepted(root: Path) -> None:
    changes = editor(root).plan_changes(block(str(root / "notes.md"), "# Notes\n", "# N\n"))
    assert [change.path for change in changes] == ["notes.md"]
