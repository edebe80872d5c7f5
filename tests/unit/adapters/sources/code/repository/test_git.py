"""What git is asked, and what a repository that is somebody else's cannot have it do."""

from pathlib import Path

import pytest
from tests.unit.adapters.sources.code.repositories import commit, git, write

from lamella.adapters.sources.code.repository.git import GitFolder


def test_a_folder_without_git_holds_nothing(tmp_path: Path) -> None:
    folder = GitFolder(tmp_path)
    assert not folder.holds()
    assert folder.list_paths("--cached") is None
    assert folder.find_head() == ""


def test_a_folder_that_the_repository_around_it_ignores_is_not_held_by_it(tmp_path: Path) -> None:
    root = write(tmp_path, {".gitignore": "installed/\n", "a.py": "", "installed/b.py": ""})
    commit(root, "Begin")
    assert GitFolder(root).holds()
    assert not GitFolder(root / "installed").holds()


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    root = write(tmp_path / "theirs", {"a.py": "x = 1\n"})
    commit(root, "Begin")
    trap = write(tmp_path, {"trap.sh": f"#!/bin/sh\ntouch {tmp_path}/sprung\n"}) / "trap.sh"
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.sshCommand"):
        git(root, "config", name, str(trap))
    git(root, "config", "log.showSignature", "true")
    folder = GitFolder(root)
    assert folder.holds()
    assert folder.list_paths("--cached", "--others", "--exclude-standard") == [b"a.py"]
    assert folder.read_log(most=5)
    assert not (tmp_path / "sprung").exists()


def test_variables_that_name_another_repository_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write(tmp_path / "other", {"other.py": ""})
    commit(other, "Begin")
    root = write(tmp_path / "meant", {"meant.py": ""})
    commit(root, "Begin")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert GitFolder(root).list_paths("--cached") == [b"meant.py"]
