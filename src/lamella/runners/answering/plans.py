"""Plans: the calls that a model says a question needs, as JSON, held to what tools there are and what they take."""

import json
from collections.abc import Mapping, Sequence

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages.rounds import read_arguments
from lamella.core.text.content import canonical_json
from lamella.errors import BadInputError

# A tool by its name, and what it is called with.
PlannedCall = tuple[str, Mapping[str, object]]

# More than this no question needs at once.
MOST_CALLS = 5
_LONGEST = 20_000
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def read_plan(said: str, told: Sequence[ToolDefinition]) -> list[PlannedCall]:
    """The calls of a plan, each once; a ``ValueError`` says in words for its author what is wrong with another."""
    plan = _read_json(said)
    if not isinstance(plan, list):
        raise ValueError("it is no JSON array")
    if len(plan) > MOST_CALLS:
        raise ValueError(f"it has {len(plan):,} calls, and at most {MOST_CALLS} are made")
    tools = {tool.name: tool for tool in told}
    calls = [_read_call(one, tools) for one in plan]
    return list({f"{name}{canonical_json(arguments)}": (name, arguments) for name, arguments in calls}.values())


def find_main_argument(tool: ToolDefinition) -> str:
    """What a tool is mainly called with: the first thing that it must have, else the first that it takes."""
    schema = read_arguments(tool.parameters)
    names = [*_as_list(schema.get("required")), *_as_object(schema.get("properties"))]
    return str(names[0]) if names else "query"


def _read_json(said: str) -> object:
    text = said.strip()
    if text.startswith("```"):
        # What models put around JSON; nothing else of a text is skipped.
        text = text.partition("\n")[2].rstrip().removesuffix("```")
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text):,} characters, and at most {_LONGEST:,} are read")
    try:
        plan: object = json.loads(text, parse_constant=_refuse_constant)
        canonical_json(plan)
    except (ValueError, RecursionError, BadInputError) as error:
        raise ValueError("it is no JSON") from error
    return plan


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _read_call(one: object, tools: Mapping[str, ToolDefinition]) -> PlannedCall:
    if not isinstance(one, dict) or not isinstance(one.get("tool"), str) or not {*one} <= {"tool", "arguments"}:
        raise ValueError('each call is an object with "tool" and "arguments"')
    name, arguments = one["tool"], one.get("arguments", {})
    if name not in tools:
        raise ValueError(f"there is no tool {name[:60]!r}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name} are no object")
    _check_arguments(name, arguments, read_arguments(tools[name].parameters))
    return name, arguments


def _check_arguments(name: str, given: Mapping[str, object], schema: Mapping[str, object]) -> None:
    """What every schema of a tool says: what must be there, what may be, and of which type it is."""
    properties = _as_object(schema.get("properties"))
    for required in _as_list(schema.get("required")):
        if required not in given:
            raise ValueError(f"{name} needs {required}")
    for key, value in given.items():
        if key not in properties and (properties or schema.get("additionalProperties") is False):
            raise ValueError(f"{name} takes no {key[:60]!r}")
        wanted = _as_object(properties.get(key))
        types = [kind for told in _as_list(wanted.get("type")) for kind in _TYPES.get(str(told), ())]
        if types and (not isinstance(value, tuple(types)) or (isinstance(value, bool) and bool not in types)):
            raise ValueError(f"{key} of {name} is of another type")
        if "enum" in wanted and value not in _as_list(wanted["enum"]):
            raise ValueError(f"{key} of {name} is none of those that there are")


def _as_list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _as_object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
