"""Calls of git, and protection against the configuration of foreign repositories."""

from pathlib import Path

import pytest
from tests.unit.codebase.repositories import commit, git, write

from lamella.codebase.repository import GitFolder


def test_folder_without_git_is_untracked(tmp_path: Path) -> None:
    folder = GitFolder(tmp_path)
    assert not folder.is_in_working_tree()
    assert folder.run_ls_files("--cached") is None
    assert folder.head_commit() == ""


def test_folder_ignored_by_outer_repository_is_untracked(tmp_path: Path) -> None:
    root = write(tmp_path, {".gitignore": "installed/\n", "a.py": "", "installed/b.py": ""})
    commit(root, "Begin")
    assert GitFolder(root).is_in_working_tree()
    assert not GitFolder(root / "installed").is_in_working_tree()


def test_repository_configuration_runs_no_program(tmp_path: Path) -> None:
    root = write(tmp_path / "theirs", {"a.py": "x = 1\n"})
    commit(root, "Begin")
    trap = write(tmp_path, {"trap.sh": f"#!/bin/sh\ntouch {tmp_path}/sprung\n"}) / "trap.sh"
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.sshCommand"):
        git(root, "config", name, str(trap))
    git(root, "config", "log.showSignature", "true")
    folder = GitFolder(root)
    assert folder.is_in_working_tree()
    assert folder.run_ls_files("--cached", "--others", "--exclude-standard") == [b"a.py"]
    assert folder.read_log(maximum=5)
    assert not (tmp_path / "sprung").exists()


def test_git_environment_variables_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = write(tmp_path / "other", {"other.py": ""})
    commit(other, "Begin")
    root = write(tmp_path / "meant", {"meant.py": ""})
    commit(root, "Begin")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert GitFolder(root).run_ls_files("--cached") == [b"meant.py"]
