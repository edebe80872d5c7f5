"""Schemas: a model gets the schema that its calls are checked against."""

import pytest

from lamella.tools.schema import ToolParameter, check_arguments, make_tool

PARAMETERS = (
    ToolParameter("query", "What to look for.", required=True),
    ToolParameter("limit", "How many.", "integer", minimum=1, maximum=20),
)


def test_tool_has_schema_and_gets_its_arguments() -> None:
    tool = make_tool("look", "Look.", parameters=PARAMETERS, run=dict)
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 20},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert tool.run is not None
    assert tool.run(query="tides", limit=None) == {"query": "tides"}


@pytest.mark.parametrize("limit", [5, "5", 5.0])
def test_number_is_accepted_in_forms_models_write(limit: object) -> None:
    assert check_arguments({"query": "x", "limit": limit}, PARAMETERS) == {"query": "x", "limit": 5}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "query is missing"),
        ({"query": None}, "query is missing"),
        ({"query": 3}, "query should be of type string"),
        ({"query": ["x"]}, "query should be of type string"),
        ({"query": "x", "limit": "many"}, "limit should be of type integer"),
        ({"query": "x", "limit": True}, "limit should be of type integer"),
        ({"query": "x", "limit": 2.5}, "limit should be of type integer"),
        ({"query": "x", "limit": 0}, "limit is 0; it may be from 1 to 20"),
        ({"query": "x", "limit": 99}, "limit is 99"),
        ({"query": "x", "limit": "9" * 400}, "limit should be of type integer"),
        ({"query": "x", "run": "rm -rf"}, "no argument run; there are: query, limit"),
        ({"query": "x" * 2_000_001}, "2,000,001 characters"),
    ],
)
def test_invalid_argument_is_explained(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_arguments(given, PARAMETERS)
