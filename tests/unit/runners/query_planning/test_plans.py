"""Plans: only what is a list of calls of tools that there are, with what they take, is one."""

import json

import pytest

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.runners.query_planning import MAX_PLANNED_CALLS, get_main_argument_name, parse_plan

SEARCH = make_tool_definition(
    "search_notes",
    description="Searches.",
    parameters={
        "type": "object",
        "properties": {
            "limit": {"type": "integer"},
            "query": {"type": "string"},
            "where": {"enum": ["titles", "texts"]},
        },
        "required": ["query"],
    },
)
CLOCK = make_tool_definition("clock", description="Tells the time.", parameters={"type": "object", "properties": {}})
TOOLS = (SEARCH, CLOCK)


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("[]", []),
        (' [{"tool": "clock"}]\n', [("clock", {})]),
        (
            '```json\n[{"tool": "search_notes", "arguments": {"query": "x", "limit": 3}}]\n```',
            [("search_notes", {"query": "x", "limit": 3})],
        ),
        ('[{"tool": "clock"}, {"tool": "clock", "arguments": {}}]', [("clock", {})]),
        (
            '[{"tool": "search_notes", "arguments": {"query": "x", "where": "titles"}}, {"tool": "clock"}]',
            [("search_notes", {"query": "x", "where": "titles"}), ("clock", {})],
        ),
    ],
)
def test_plan_is_a_list_of_calls_each_once(said: str, calls: list[object]) -> None:
    assert parse_plan(said, TOOLS) == calls


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("I would search the notes for it.", "no JSON"),
        ("", "no JSON"),
        ('[{"tool": "clock"}', "no JSON"),
        ('Sure: [{"tool": "clock"}]', "no JSON"),
        ("[" * 5_000, "no JSON"),
        ('[{"tool": "clock", "arguments": {"x": NaN}}]', "no JSON"),
        ('"\\ud800"', "no JSON"),
        ('{"tool": "clock"}', "no JSON array"),
        ("[1]", "each call is an object"),
        ('[{"tool": 1}]', "each call is an object"),
        ('[{"tool": "clock", "why": "so"}]', "each call is an object"),
        ('[{"tool": "rm"}]', "there is no tool 'rm'"),
        ('[{"tool": "clock", "arguments": []}]', "are no object"),
        ('[{"tool": "search_notes"}]', "search_notes needs query"),
        ('[{"tool": "search_notes", "arguments": {"query": 3}}]', "query of search_notes is of another type"),
        ('[{"tool": "search_notes", "arguments": {"query": "x", "limit": true}}]', "limit of search_notes"),
        ('[{"tool": "search_notes", "arguments": {"query": "x", "who": "y"}}]', "takes no 'who'"),
        ('[{"tool": "search_notes", "arguments": {"query": "x", "where": "y"}}]', "none of those"),
        (json.dumps([{"tool": "clock"}] * 1_000), "1,000 calls"),
        ("[" + " " * 30_000 + "]", "30,002 characters"),
    ],
)
def test_invalid_plan_is_refused_with_reason(said: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_plan(said, TOOLS)


def test_number_of_planned_calls_is_limited() -> None:
    assert len(parse_plan(json.dumps([{"tool": "clock"}] * MAX_PLANNED_CALLS), TOOLS)) == 1


def test_main_argument_is_the_required_one() -> None:
    assert get_main_argument_name(SEARCH) == "query"
    assert (
        get_main_argument_name(make_tool_definition("a", description="", parameters={"properties": {"fact": {}}}))
        == "fact"
    )
    assert get_main_argument_name(CLOCK) == "query"
