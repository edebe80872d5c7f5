"""The registry of tools: one row per tool, by the name that models call it by. What it lacks, a tool is absent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lamella.adapters.sources.readers import OpenConversions
from lamella.adapters.sources.vault import Vault
from lamella.adapters.tools.days import make_days_tool
from lamella.adapters.tools.files import make_list_tool, make_read_tool
from lamella.adapters.tools.memory import MemoryPermit, make_remember_tool
from lamella.adapters.tools.searching import make_search_tool
from lamella.adapters.tools.web import make_fetch_tool, make_web_search_tool
from lamella.adapters.tools.writing import WritePermit, make_edit_tool, make_write_tool
from lamella.attach import Tool
from lamella.engine.notes import NoteIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What tools work with, as far as it is there. ``recall`` and ``compact`` are tools of a conversation."""

    now: Callable[[], datetime]
    vault: Vault | None = None
    notes: NoteIndex | None = None
    conversions: OpenConversions | None = None
    search: Callable[[str], Sequence[tuple[str, str, str]]] | None = None
    recall: Tool | None = None
    compact: Tool | None = None
    memory: MemoryPermit | None = None
    permit: WritePermit | None = None


def _make_read(given: Equipment) -> Tool | None:
    if given.vault is None:
        return None
    return make_read_tool(given.vault, note_read=given.permit.writer.note_read if given.permit else None)


TOOLS: Mapping[str, Callable[[Equipment], Tool | None]] = {
    "compact": lambda given: given.compact,
    "edit_note": lambda given: make_edit_tool(given.permit) if given.permit else None,
    "fetch_url": lambda given: make_fetch_tool(given.conversions) if given.conversions else None,
    "list_files": lambda given: make_list_tool(given.vault) if given.vault else None,
    "read_note": _make_read,
    "recall": lambda given: given.recall,
    "remember": lambda given: make_remember_tool(given.memory) if given.memory else None,
    "search_notes": lambda given: make_search_tool(given.notes, given.now) if given.notes else None,
    "time_range": lambda given: make_days_tool(given.now),
    "web_search": lambda given: make_web_search_tool(given.search) if given.search else None,
    "write_note": lambda given: make_write_tool(given.permit) if given.permit else None,
}


def make_tools(given: Equipment) -> tuple[Tool, ...]:
    """The tools that are there, by their names."""
    made = (make(given) for make in TOOLS.values())
    return tuple(tool for tool in made if tool is not None)
