"""Parameters of tools as JSON schemas, the check of arguments, and the user's consent to changes.

``make_tool`` builds a tool that checks its arguments before it runs. Arguments are checked leniently, because models
write numbers as text and send null for arguments they leave out. ``require_consent`` asks before a change is written.
"""

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import NamedTuple

from lamella.attach import Tool
from lamella.errors import WriteDeniedError
from lamella.ports import AllowWrite, FileChange

Arguments = Mapping[str, object]
_TYPES: Mapping[str, type] = {"string": str, "integer": int}
_LONGEST_TEXT = 2_000_000


class ToolParameter(NamedTuple):
    """One parameter of a tool; optional unless ``required``.

    ``description`` is the description for the model. ``minimum`` and ``maximum`` limit integers.
    """

    name: str
    description: str
    json_type: str = "string"
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None


def make_tool(
    name: str,
    description: str,
    *,
    parameters: tuple[ToolParameter, ...],
    run: Callable[[Arguments], object],
    seconds: float | None = None,
    changes: bool = False,
) -> Tool:
    """Build a tool that checks its arguments before it calls ``run``.

    Arguments that are absent or null are not passed on. ``seconds`` is the timeout. ``changes`` says that the tool may
    change something.
    """

    def call(**given: object) -> object:
        return run(check_arguments(given, parameters))

    parts = _arguments_schema(parameters)
    return Tool(
        name=name,
        description=description,
        parameters=parts,
        run=call,
        timeout_seconds=seconds,
        has_side_effects=changes,
    )


def check_arguments(arguments: Arguments, parameters: tuple[ToolParameter, ...]) -> dict[str, object]:
    """Return the arguments of a call, converted to their types.

    Raises ``ValueError`` with a message for the model if an argument is unknown, missing or invalid.
    """
    known = {one.name: one for one in parameters}
    strange = sorted(str(name) for name in arguments if name not in known)
    if strange:
        raise ValueError(f"there is no argument {', '.join(strange)}; there are: {', '.join(known)}")
    found = {name: _check_value(value, known[name]) for name, value in arguments.items() if value is not None}
    missing = [one.name for one in parameters if one.required and one.name not in found]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    return found


def _check_value(value: object, parameter: ToolParameter) -> object:
    if parameter.json_type == "integer":
        value = _convert_number(value)
    # A bool is an int in Python, but not in JSON.
    if not isinstance(value, _TYPES[parameter.json_type]) or isinstance(value, bool):
        raise ValueError(f"{parameter.name} should be of type {parameter.json_type}")
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise ValueError(f"{parameter.name} has {len(value):,} characters, over {_LONGEST_TEXT:,}")
    if isinstance(value, int):
        least, most = parameter.minimum, parameter.maximum
        if (least is not None and value < least) or (most is not None and value > most):
            raise ValueError(
                f"{parameter.name} is {value}; it may be from {least} to {'any number' if most is None else most}"
            )
    return value


def _convert_number(value: object) -> object:
    """Convert a number that a model wrote as text or as a float; return any other value unchanged."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < len("1" * 20):
        return int(value)
    return value


def _arguments_schema(parameters: tuple[ToolParameter, ...]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {one.name: _parameter_schema(one) for one in parameters},
        "required": [one.name for one in parameters if one.required],
        "additionalProperties": False,
    }


def _parameter_schema(parameter: ToolParameter) -> dict[str, object]:
    bounds = {"minimum": parameter.minimum, "maximum": parameter.maximum}
    return {
        "type": parameter.json_type,
        "description": parameter.description,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


# Consent.


async def require_consent(change: FileChange, allow: AllowWrite | None) -> None:
    """Return if ``allow`` permits the change, otherwise raise ``WriteDeniedError``.

    It is also raised if ``allow`` is None, because then the user cannot be asked.
    """
    what, where = ("the fact", "the memory") if change.is_memory else (change.path, "notes")
    if allow is None:
        raise WriteDeniedError(
            f"{what} was not written: changes to {where} need the user's yes, and nobody can be asked here.",
            hint="Tell the user what you would write.",
        )
    # Called in the event loop, not in a thread: a prompt at the terminal must run where Ctrl-C interrupts it.
    answer = allow(change)
    if (await answer if isawaitable(answer) else answer) is not True:
        raise WriteDeniedError(
            f"{what} was not written: the user said no.", hint="Ask the user what they want instead."
        )
