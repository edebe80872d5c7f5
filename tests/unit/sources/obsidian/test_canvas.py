"""A canvas becomes text."""

import json

import pytest

from lamella.errors import SourceUnreadableError
from lamella.sources.obsidian import render_canvas


def _node(name: str, what: str, x: int, y: int, **fields: object) -> dict[str, object]:
    return {"id": name, "type": what, "x": x, "y": y, "width": 100, "height": 50, **fields}


def test_canvas_cards_are_rendered_in_reading_order_with_groups_and_connections() -> None:
    canvas = {
        "nodes": [
            _node("c", "link", 200, 100, url="https://example.org"),
            _node("b", "file", 200, 0, file="Notes/plan.md", subpath="#Costs"),
            _node("a", "text", 0, 0, text="# Idea\n\nwhole text"),
            {**_node("g", "group", -10, -10, label="Draft"), "width": 400, "height": 80},
        ],
        "edges": [
            {"id": "1", "fromNode": "a", "toNode": "b", "label": "needs"},
            {"id": "2", "fromNode": "b", "toNode": "c", "fromEnd": "arrow", "toEnd": "none"},
            {"id": "3", "fromNode": "g", "toNode": "c", "toEnd": "none"},
            {"id": "4", "fromNode": "a", "toNode": "gone"},
        ],
    }
    assert render_canvas(json.dumps(canvas), "x.canvas") == (
        "Canvas: 3 cards, 1 group, 4 connections.\n\n"
        "[1] text\n# Idea\n\nwhole text\n\n"
        "[2] file Notes/plan.md#Costs\n\n"
        "[3] link https://example.org\n\n"
        'Group "Draft": [1] [2]\n\n'
        '[1] → [2]: needs\n[2] ← [3]\ngroup "Draft" — [3]\n'
    )


@pytest.mark.parametrize("source", ["", "{}", '{"nodes": 7, "edges": [1]}', '{"nodes": []}'])
def test_empty_canvas_is_one_line(source: str) -> None:
    assert render_canvas(source, "x.canvas") == "Canvas: 0 cards, 0 groups, 0 connections.\n"


def test_unknown_cards_and_invalid_positions_are_rendered() -> None:
    canvas = {"nodes": [{"type": "poem"}, {"id": "b", "type": "text", "x": "left", "y": 1e300, "text": None}, 3]}
    assert "poem of a kind that is not known" in render_canvas(json.dumps(canvas), "x.canvas")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('{"nodes": [}', "line 1, column 12: Expecting value"),
        ("[1]", "it is JSON, and no object with nodes and edges"),
        ("[" * 100_000, "nested too deep"),
        ('{"nodes": ' + "9" * 10_000 + "}", "a number too long"),
        ("not JSON", "line 1, column 1"),
    ],
)
def test_broken_canvas_is_reported_with_position(source: str, why: str) -> None:
    with pytest.raises(SourceUnreadableError, match=r"Boards/x\.canvas is not a canvas") as caught:
        render_canvas(source, "Boards/x.canvas")
    assert why in caught.value.message
    assert "Obsidian" in caught.value.hint
