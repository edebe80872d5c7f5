"""Rules by themselves; that they are git's is shown where a walk is compared with it."""

from pathlib import Path

import pytest

from lamella.codebase.repository import parse_ignore_rule, read_ignore_file


@pytest.mark.parametrize("line", ["", "# words", "   ", "!", "/"])
def test_comments_and_blank_lines_are_not_rules(line: str) -> None:
    assert parse_ignore_rule(line) is None


def test_rule_is_parsed_into_flags() -> None:
    rule = parse_ignore_rule("!build/")
    assert rule is not None
    assert (rule.matches_name_only, rule.matches_folders_only, rule.is_negated) == (True, True, True)


def test_unsupported_rule_is_reported(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / ".gitignore").write_text("[z-a]\n*.log\n*a*b*c*d*\n")
    found = read_ignore_file(tmp_path / ".gitignore", prefix_length=0, warnings=told)
    assert found is not None
    assert len(found.rules) == 1
    assert told == [f"A rule in .gitignore is not followed: {line}" for line in ("[z-a]", "*a*b*c*d*")]
    assert read_ignore_file(tmp_path / "none", prefix_length=0, warnings=told) is None
