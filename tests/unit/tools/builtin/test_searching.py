"""Searching notes as a tool: filters become part of the query, and each passage has its location."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamella.ports import NoteHit
from lamella.tools.builtin import compose_note_search_query, make_search_tool, render_hits
from lamella.wiring.services import read_services
from lamella.wiring.sources import open_note_index_lazily

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, "tides"),
        ({"folder": "/sea/log/"}, 'path:"sea/log" tides'),
        ({"tag": "#sea"}, "#sea tides"),
        ({"when": "last week"}, "last week tides"),
        ({"when": "March 2026"}, "in March 2026 tides"),
        ({"when": "yesterday", "folder": "sea", "tag": "log"}, 'yesterday path:"sea" #log tides'),
    ],
)
def test_filters_become_part_of_the_question(given: dict[str, object], asked: str) -> None:
    assert compose_note_search_query({"query": "tides", **given}, NOW) == asked


@pytest.mark.parametrize("given", [{"folder": 'a" tag'}, {"tag": "two words"}, {"when": "the moon"}])
def test_invalid_filter_is_reported(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"folder|tag|tells no time"):
        compose_note_search_query({"query": "tides", **given}, NOW)


def test_hit_has_path_heading_and_text_or_excerpt() -> None:
    short = NoteHit(
        id="1", path="sea.md", title="Sea", heading="Sea > Tides", text="High at noon.\n", excerpt="e", score=1, why="w"
    )
    long = NoteHit(id="2", path="log.md", title="", heading="", text="x" * 5_000, excerpt="… x …", score=1, why="w")
    assert render_hits("tides", [short, long]) == ("[1] sea.md, below Sea > Tides\nHigh at noon.\n\n[2] log.md\n… x …")
    assert render_hits("tides", []).startswith("Nothing found: no note fits 'tides'.")


def test_search_tool_opens_index_on_first_search(tmp_path: Path) -> None:
    (tmp_path / "sea.md").write_text("# Tides\nHigh at noon.\n", encoding="utf-8")
    (tmp_path / "old.md").write_text("Tides of old. #log\n", encoding="utf-8")
    notes = open_note_index_lazily(tmp_path, services=read_services({"index_folder": str(tmp_path / ".indexes")}))
    assert not notes.file.exists()
    tool = make_search_tool(notes, lambda: NOW)
    assert tool.run is not None
    try:
        found = str(tool.run(query="tides"))
        assert "sea.md, below Tides" in found
        assert str(tool.run(query="tides", tag="log")).startswith("[1] old.md")
        assert str(tool.run(query="tides", limit=1)).count("[") == 1
        with pytest.raises(ValueError, match="blank"):
            tool.run(query=" ")
    finally:
        notes.close()
    assert notes.file.exists()
