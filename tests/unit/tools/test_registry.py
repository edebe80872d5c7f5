"""The registry: each tool under its name, in one order, there where what it works with is there."""

from datetime import UTC, datetime
from pathlib import Path

from lamella.attach import Tool
from lamella.sources.vault import Vault
from lamella.tools.builtin import ConfirmedMemoryWriter, ConfirmedNoteWriter
from lamella.tools.registry import TOOL_FACTORIES, ToolDependencies, make_tools
from lamella.wiring.memory import open_memory
from lamella.wiring.runner_context import open_note_writer
from lamella.wiring.services import read_services
from lamella.wiring.sources import open_note_index_lazily


def now() -> datetime:
    return datetime(2026, 11, 17, tzinfo=UTC)


def test_each_factory_makes_its_tool_in_name_order(tmp_path: Path) -> None:
    services = read_services()
    everything = ToolDependencies(
        now=now,
        vault=Vault(tmp_path),
        note_index=open_note_index_lazily(tmp_path, services=services),
        open_converter=lambda: services.document_converter,
        search_web=lambda _query: [],
        recall_tool=Tool(name="recall"),
        compact_tool=Tool(name="compact"),
        memory_permission=ConfirmedMemoryWriter(open_memory=lambda: open_memory(tmp_path)),
        note_permission=ConfirmedNoteWriter(writer=open_note_writer(tmp_path, services), allow=None),
    )
    names = [tool.name for tool in make_tools(everything)]
    assert names == list(TOOL_FACTORIES) == sorted(TOOL_FACTORIES)


def test_without_dependencies_only_independent_tools_exist() -> None:
    assert [tool.name for tool in make_tools(ToolDependencies(now=now))] == ["time_range"]


def test_every_tool_and_argument_has_description(tmp_path: Path) -> None:
    services = read_services()
    for tool in make_tools(
        ToolDependencies(now=now, vault=Vault(tmp_path), open_converter=lambda: services.document_converter)
    ):
        assert tool.description.endswith(".")
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert all(one["description"] for one in properties.values())
        assert tool.parameters["additionalProperties"] is False
