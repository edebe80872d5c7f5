"""Schemas: what a tool takes, told to the model and checked when it calls. Models write arguments as they like."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamella.attach import Tool

Arguments = Mapping[str, object]
_TYPES: Mapping[str, type] = {"string": str, "integer": int}
_LONGEST_TEXT = 2_000_000


class ToolParameter(NamedTuple):
    """One argument of a tool; without being required it may be left out."""

    name: str
    told: str
    kind: str = "string"
    required: bool = False
    least: int | None = None
    most: int | None = None


def make_tool(
    name: str,
    description: str,
    *,
    parameters: tuple[ToolParameter, ...],
    run: Callable[[Arguments], object],
    seconds: float | None = None,
    changes: bool = False,
) -> Tool:
    """A tool whose arguments are checked before it runs; those left out, or null, are not among what it gets."""

    def call(**given: object) -> object:
        return run(check_arguments(given, parameters))

    parts = _describe(parameters)
    return Tool(name=name, description=description, parameters=parts, run=call, seconds=seconds, changes=changes)


def check_arguments(given: Arguments, parameters: tuple[ToolParameter, ...]) -> dict[str, object]:
    """The arguments of a call, each of its type; ``ValueError`` says what is wrong, in words for the model."""
    known = {one.name: one for one in parameters}
    strange = sorted(str(name) for name in given if name not in known)
    if strange:
        raise ValueError(f"there is no argument {', '.join(strange)}; there are: {', '.join(known)}")
    found = {name: _check(value, known[name]) for name, value in given.items() if value is not None}
    missing = [one.name for one in parameters if one.required and one.name not in found]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    return found


def _check(value: object, one: ToolParameter) -> object:
    if one.kind == "integer":
        value = _read_number(value)
    if not isinstance(value, _TYPES[one.kind]) or isinstance(value, bool):
        raise ValueError(f"{one.name} should be of type {one.kind}")
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise ValueError(f"{one.name} has {len(value):,} characters, over {_LONGEST_TEXT:,}")
    if isinstance(value, int):
        least, most = one.least, one.most
        if (least is not None and value < least) or (most is not None and value > most):
            raise ValueError(
                f"{one.name} is {value}; it may be from {least} to {'any number' if most is None else most}"
            )
    return value


def _read_number(value: object) -> object:
    """A number that a model wrote as a text, or with a point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < len("1" * 20):
        return int(value)
    return value


def _describe(parameters: tuple[ToolParameter, ...]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {one.name: _describe_one(one) for one in parameters},
        "required": [one.name for one in parameters if one.required],
        "additionalProperties": False,
    }


def _describe_one(one: ToolParameter) -> dict[str, object]:
    bounds = {"minimum": one.least, "maximum": one.most}
    return {
        "type": one.kind,
        "description": one.told,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }
