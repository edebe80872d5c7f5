"""What is found in a vault, its index, and the tools over it, as data."""

import json
from collections.abc import Sequence

from lamella.core.artifacts.model import ToolDefinition
from lamella.holdings import IndexReport, NoteHit


def view_hits(query: str, hits: Sequence[NoteHit], report: IndexReport) -> dict[str, object]:
    """Passages of a vault, best first, and what kept files from being searched."""
    return {"lamella": 1, "query": query, "hits": [_view_hit(one) for one in hits], "unread": _view_unread(report)}


def view_index(report: IndexReport, *, file: str) -> dict[str, object]:
    """What became of an index."""
    return {
        "lamella": 1,
        "index": file,
        "files": report.files,
        "read": report.read,
        "removed": report.removed,
        "rebuilt": report.rebuilt,
        "unread": _view_unread(report),
    }


def _view_hit(hit: NoteHit) -> dict[str, object]:
    return {
        "path": hit.path,
        "heading": hit.heading,
        "text": hit.text,
        "score": hit.score,
        "why": hit.why,
        "id": hit.id,
        "title": hit.title,
        "excerpt": hit.excerpt,
    }


def _view_unread(report: IndexReport) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in report.unread]


def view_tools(tools: Sequence[ToolDefinition]) -> dict[str, object]:
    """Every tool by its name, with the schema of its arguments."""
    listed = [
        {"name": one.name, "description": one.description, "parameters": json.loads(one.parameters)} for one in tools
    ]
    return {"lamella": 1, "tools": listed}


def list_arguments(tool: ToolDefinition) -> list[str]:
    """The arguments of a tool by their names, those first that it needs; others have a question mark."""
    schema = json.loads(tool.parameters)
    needed = schema.get("required", [])
    return [*needed, *(f"{name}?" for name in schema.get("properties", {}) if name not in needed)]
