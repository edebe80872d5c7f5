"""Tools of a server: valid, unique names in a stable order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.tools.mcp import (
    MAX_TOOL_NAME_CHARS,
    clean_text,
    find_schema_problem,
    select_usable_tools,
    unique_tool_name,
)

OBJECT = {"type": "object"}
LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(st.lists(st.text(min_size=1), unique=True, max_size=30))
def test_tool_names_are_valid_unique_and_ordered(own_names: list[str]) -> None:
    tools, said = select_usable_tools("it", [(name, "", OBJECT, True) for name in own_names])
    assert [tool.own_name for tool in tools] == sorted(own_names)
    assert len({tool.name for tool in tools}) == len(own_names)
    assert all(LEGAL.fullmatch(tool.name) for tool in tools)
    assert said == ()
    assert select_usable_tools("it", [(name, "", OBJECT, True) for name in reversed(own_names)])[0] == tools


def test_tool_name_is_kept_if_plain_and_else_suffixed() -> None:
    assert unique_tool_name("it", "read_file") == "it__read_file"
    assert unique_tool_name("it", "read file") == f"it__read_file_{unique_tool_name('it', 'read file')[-6:]}"
    assert len(unique_tool_name("it", "x" * 200)) == MAX_TOOL_NAME_CHARS
    assert unique_tool_name("it", "a.b") != unique_tool_name("it", "a b")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ([], "no object"),
        ({"type": "array"}, "no object"),
        ({"type": "object", "properties": [1]}, "properties are no object"),
        ({"type": "object", "x": {1, 2}}, "no JSON"),
        ({"type": "object", "x": float("nan")}, "no JSON"),
        ({"type": "object", "x": "y" * 30_000}, "30,0"),
    ],
)
def test_invalid_schema_is_reported(schema: object, told: str) -> None:
    assert told in (find_schema_problem(schema) or "")


def test_valid_schema_is_unchanged() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "enum": ["a", "b"]}}, "required": ["path"]}
    assert find_schema_problem(schema) is None
    assert select_usable_tools("it", [("read", "Read.", schema, True)])[0][0].parameters == schema


def test_cleaned_text_keeps_lines_and_removes_control_characters() -> None:
    assert clean_text("a\n\tb\x1b[2J\u202e\ud800", 50) == "a\n\tb[2J"
    assert clean_text("word " * 100, 20) == "word word word wor …"


def test_tool_with_side_effects_is_flagged() -> None:
    tools, _ = select_usable_tools("it", [("order", "", OBJECT, False), ("read", "", OBJECT, True)])
    assert [(tool.own_name, tool.changes) for tool in tools] == [("order", True), ("read", False)]
