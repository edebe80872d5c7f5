"""The registry of built-in tools by name. A tool is absent if something it depends on is missing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lamella.attach import Tool
from lamella.conversation.note_index import NoteIndex
from lamella.plugins import PluginGroup, find_plugins
from lamella.sources.readers import OpenConversions
from lamella.sources.vault import Vault
from lamella.tools.builtin import (
    ConfirmedMemoryWriter,
    ConfirmedNoteWriter,
    make_edit_tool,
    make_fetch_tool,
    make_list_tool,
    make_read_tool,
    make_remember_tool,
    make_search_tool,
    make_time_range_tool,
    make_web_search_tool,
    make_write_tool,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDependencies:
    """Everything that tools depend on; None for a part that is not available.

    A conversation builds its own ``recall_tool`` and ``compact_tool`` tools and passes them in.
    """

    now: Callable[[], datetime]
    vault: Vault | None = None
    note_index: NoteIndex | None = None
    open_converter: OpenConversions | None = None
    search_web: Callable[[str], Sequence[tuple[str, str, str]]] | None = None
    recall_tool: Tool | None = None
    compact_tool: Tool | None = None
    memory_permission: ConfirmedMemoryWriter | None = None
    note_permission: ConfirmedNoteWriter | None = None


def _make_read_tool(dependencies: ToolDependencies) -> Tool | None:
    if dependencies.vault is None:
        return None
    return make_read_tool(
        dependencies.vault,
        on_read=dependencies.note_permission.writer.remember_shown_text if dependencies.note_permission else None,
    )


TOOL_FACTORIES: Mapping[str, Callable[[ToolDependencies], Tool | None]] = {
    "compact": lambda given: given.compact_tool,
    "edit_note": lambda given: make_edit_tool(given.note_permission) if given.note_permission else None,
    "fetch_url": lambda given: make_fetch_tool(given.open_converter) if given.open_converter else None,
    "list_files": lambda given: make_list_tool(given.vault) if given.vault else None,
    "read_note": _make_read_tool,
    "recall": lambda given: given.recall_tool,
    "remember": lambda given: make_remember_tool(given.memory_permission) if given.memory_permission else None,
    "search_notes": lambda given: make_search_tool(given.note_index, given.now) if given.note_index else None,
    "time_range": lambda given: make_time_range_tool(given.now),
    "web_search": lambda given: make_web_search_tool(given.search_web) if given.search_web else None,
    "write_note": lambda given: make_write_tool(given.note_permission) if given.note_permission else None,
}


def make_tools(dependencies: ToolDependencies) -> tuple[Tool, ...]:
    """Return the available tools, sorted by name. A plugin's tool never replaces a built-in one."""
    made = [make(dependencies) for make in TOOL_FACTORIES.values()]
    tools = {tool.name: tool for tool in (*find_plugins(PluginGroup.TOOLS).values(), *filter(None, made))}
    return tuple(tools[name] for name in sorted(tools))
