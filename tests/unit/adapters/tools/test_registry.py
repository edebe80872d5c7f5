"""The registry: each tool under its name, in one order, there where what it works with is there."""

from datetime import UTC, datetime
from pathlib import Path

from lamella.adapters.sources.vault import Vault
from lamella.adapters.tools.memory import MemoryPermit
from lamella.adapters.tools.registry import TOOLS, Equipment, make_tools
from lamella.adapters.tools.writing import WritePermit
from lamella.attach import Tool
from lamella.wiring.retrieval import defer_notes
from lamella.wiring.running.memory import open_memory
from lamella.wiring.running.workplaces import open_writer
from lamella.wiring.services import read_services


def now() -> datetime:
    return datetime(2026, 11, 17, tzinfo=UTC)


def test_each_row_makes_the_tool_of_its_name_and_all_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    services = read_services()
    everything = Equipment(
        now=now,
        vault=Vault(tmp_path),
        notes=defer_notes(tmp_path, services=services),
        conversions=lambda: services.conversions,
        search=lambda _query: [],
        recall=Tool(name="recall"),
        compact=Tool(name="compact"),
        memory=MemoryPermit(open_book=lambda: open_memory(tmp_path)),
        permit=WritePermit(writer=open_writer(tmp_path, services), allow=None),
    )
    names = [tool.name for tool in make_tools(everything)]
    assert names == list(TOOLS) == sorted(TOOLS)


def test_what_works_with_nothing_is_there_alone_where_nothing_is() -> None:
    assert [tool.name for tool in make_tools(Equipment(now=now))] == ["time_range"]


def test_every_tool_tells_what_it_does_and_what_each_argument_is(tmp_path: Path) -> None:
    services = read_services()
    for tool in make_tools(Equipment(now=now, vault=Vault(tmp_path), conversions=lambda: services.conversions)):
        assert tool.description.endswith(".")
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert all(one["description"] for one in properties.values())
        assert tool.parameters["additionalProperties"] is False
