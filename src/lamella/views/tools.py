"""Tools as data: what models may call, with the schemas of their arguments."""

from collections.abc import Mapping, Sequence

from lamella.attach import Tool


def view_tools(tools: Sequence[Tool]) -> dict[str, object]:
    """Every tool by its name."""
    return {"lamella": 1, "tools": [_view_tool(one) for one in tools]}


def list_arguments(tool: Tool) -> list[str]:
    """The arguments of a tool by their names; one that may be left out has a question mark."""
    schema = tool.parameters
    known, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    names = known if isinstance(known, Mapping) else {}
    return [name if name in needed else f"{name}?" for name in names]


def _view_tool(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
