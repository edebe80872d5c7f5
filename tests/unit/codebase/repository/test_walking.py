"""Walking without git: the files that git itself would list there."""

from pathlib import Path

import pytest
from tests.unit.codebase.repositories import git, write

from lamella.codebase.repository import IGNORED_REASON, CodeWalk, is_ignored, read_ignore_file

_PATHS = """
a.log keep.log src/a.py src/a.log src/deep/b.log src/deep/keep.log build/out.py build/keep.py docs/build/page.md
tmp/a.py tmp/sub/b.py #odd.py src/gen/a.py src/gen/deep/a.py other/gen/a.py cache/one/a.py cache/two.py a1.txt ab.txt
!bang.py
"""
FILES = dict.fromkeys([*_PATHS.split(), "x y.txt"], "x\n")
RULES = [
    {".gitignore": "*.log\n!keep.log\n"},
    {".gitignore": "build/\n!build/keep.py\n"},
    {".gitignore": "/build/*\n!/build/keep.py\n"},
    {".gitignore": "*.log\n", "src/.gitignore": "!*.log\n", "src/deep/.gitignore": "*.log\n!keep.log\n"},
    {".gitignore": "tmp/**\n!tmp/sub/\n!tmp/sub/b.py\n"},
    {".gitignore": "**/gen/\n"},
    {"src/.gitignore": "gen\n"},
    {"src/.gitignore": "/gen/*\n!/gen/deep/\n"},
    {".gitignore": "\\#odd.py\n\\!bang.py\na[0-9].txt\nx\\ y.txt\n"},
    {".gitignore": "cache/*\n!cache/one\n# a comment\n\n   \n"},
    {".gitignore": "*\n!*/\n!*.py\n"},
    {".gitignore": "s**c/a.*\n[!a-z]*\n**/deep/**\n!**/deep/keep.log\n"},
    {".gitignore": "src/**/b.log\nother/**\n/a*.txt   \n?eep.log\r\n[[:digit:]a]b.txt\n"},
    {".gitignore": "!\n/\n**\n!/src/\n!/src/**\n"},
]


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: repr(sorted(rules.items())))
def test_walk_lists_files_that_git_lists(rules: dict[str, str], tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, **rules})
    walked = CodeWalk(root).list_paths()
    git(root, "init", "-q")
    listed = git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    assert [path.decode() for path in walked] == sorted(path for path in listed if path)


def test_ignored_folder_is_reported_as_one_entry(tmp_path: Path) -> None:
    walk = CodeWalk(write(tmp_path, {".gitignore": "build/\n*.log\n", "build/a.py": "", "build/b.py": "", "c.log": ""}))
    assert walk.list_paths() == [b".gitignore"]
    assert walk.left_out == [(b"build/", IGNORED_REASON), (b"c.log", IGNORED_REASON)]


def test_links_are_not_followed(tmp_path: Path) -> None:
    root = write(tmp_path, {"src/a.py": ""})
    (root / "src" / "round").symlink_to(root)
    assert CodeWalk(root).list_paths() == [b"src/a.py", b"src/round"]


def test_slow_rule_is_reported_and_skipped(tmp_path: Path) -> None:
    root = write(tmp_path, {".gitignore": "*a*a*a*a*b\n*.log\n", "c.log": "", "aaaa.py": ""})
    walk = CodeWalk(root)
    assert walk.list_paths() == [b".gitignore", b"aaaa.py"]
    assert walk.warnings == ["A rule in .gitignore is not followed: *a*a*a*a*b"]


def test_rules_of_deepest_folder_win(tmp_path: Path) -> None:
    write(tmp_path, {"outer": "*.py\n", "inner": "!a.py\n"})
    outer = read_ignore_file(tmp_path / "outer", prefix_length=0, warnings=[])
    inner = read_ignore_file(tmp_path / "inner", prefix_length=len("src/"), warnings=[])
    assert outer is not None
    assert inner is not None
    assert is_ignored("src/a.py", [outer], is_folder=False)
    assert not is_ignored("src/a.py", [outer, inner], is_folder=False)
