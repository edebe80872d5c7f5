"""Rules on what of a vault is left out."""

import json
from pathlib import Path
from time import process_time

import pytest

from lamella.sources.obsidian import read_ignore_rules


def write(root: Path, *, ignored: str = "", filters: object = None) -> None:
    (root / ".obsidian").mkdir()
    (root / ".lamellaignore").write_text(ignored, encoding="utf-8")
    (root / ".obsidian" / "app.json").write_text(json.dumps({"userIgnoreFilters": filters}), encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("private/a.md", True),
        ("private/", True),
        ("deep/private/a.md", True),
        ("a.secret.md", True),
        ("keep.secret.md", False),
        ("root.md", True),
        ("deep/root.md", False),
        ("été/b.md", True),
        ("a.md", False),
    ],
)
def test_lamellaignore_follows_git_rules(tmp_path: Path, path: str, *, hidden: bool) -> None:
    write(tmp_path, ignored="# mine\nprivate/\n*.secret.md\n!keep.secret.md\n/root.md\n\nété/\n")
    rules = read_ignore_rules(tmp_path)
    assert rules.is_hidden(path) is hidden
    assert rules.is_unlisted(path) is hidden
    assert rules.warnings == ()


def test_obsidian_excluded_file_is_unlisted_but_readable(tmp_path: Path) -> None:
    write(tmp_path, filters=["Templates/", "/^Daily.*old/", 7, ""])
    rules = read_ignore_rules(tmp_path)
    assert [rules.is_unlisted(path) for path in ("Templates/a.md", "Daily/old/a.md", "My Templates/a.md")] == [
        True,
        True,
        False,
    ]
    assert not rules.is_hidden("Templates/a.md")
    assert rules.warnings == ()


def test_vault_without_rules_hides_nothing(tmp_path: Path) -> None:
    rules = read_ignore_rules(tmp_path)
    assert not rules.is_unlisted("a.md")
    assert rules.warnings == ()


@pytest.mark.parametrize(
    ("ignored", "filters", "told"),
    [
        ("!\na.md", [], "A rule in .lamellaignore is not followed: !"),
        ("*a*a*a*b\na.md", [], "A rule in .lamellaignore is not followed: *a*a*a*b"),
        ("**/a/**/a/**/b\na.md", [], "A rule in .lamellaignore is not followed: **/a/**/a/**/b"),
        ("x" * 500 + "\na.md", [], f"A rule in .lamellaignore is not followed: {'x' * 60}"),
        (
            "a.md",
            ["/(a+)+$/"],
            "What Obsidian excludes by /(a+)+$/ is not left out: the expression cannot be followed.",
        ),
        ("a.md", ["/[/"], "What Obsidian excludes by /[/ is not left out: the expression cannot be followed."),
    ],
)
def test_broken_or_slow_rule_is_reported_and_others_apply(
    tmp_path: Path, ignored: str, filters: list[str], told: str
) -> None:
    write(tmp_path, ignored=ignored, filters=filters)
    rules = read_ignore_rules(tmp_path)
    began = process_time()
    assert rules.is_hidden("a.md")
    assert not rules.is_unlisted("a" * 250 + "/" + "a/" * 200)
    assert rules.warnings == (told,)
    assert process_time() - began < 1


def test_unreadable_rule_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".lamellaignore").write_bytes(b"\xff")
    (tmp_path / ".obsidian" / "app.json").write_text("[" * 100_000, encoding="utf-8")
    assert read_ignore_rules(tmp_path).warnings == (
        "The rules in .lamellaignore are not followed: it cannot be read (it is not UTF-8).",
        "What Obsidian excludes is not followed: .obsidian/app.json is not JSON.",
    )
