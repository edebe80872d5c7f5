"""Tools: what the model is told of them, and running what it calls for, within bounds of time and length."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol, get_type_hints

from lamella.attach import Tool
from lamella.core.artifacts.make import make_tool_definition
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.engine.apart import run_apart
from lamella.engine.dialogue.rounds import calls_wait
from lamella.engine.sending.outputs import tell_failure, write_output
from lamella.errors import CallError, LamellaError

ToolFunction = Callable[..., object]
_Run = Callable[[str], Awaitable[object]]
# A tool as it is run here, and how long a call of it may take, if that is its own affair. Without a run its calls are
# the caller's.
_Way = tuple[_Run | None, float | None]

# How many rounds of tools a turn may take, and how many seconds one call, where nobody says.
STEPS = 8
SECONDS = 60.0
# How a tool says that it found nothing: what begins so brought nobody further.
NOTHING_FOUND = "Nothing found"


class Toolset(Protocol):
    """What runs the calls of a turn."""

    def leaves(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> bool:
        """Whether some of these are the caller's to run, so that the turn waits."""
        ...

    async def run(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> tuple[ToolOutput, ...]:
        """What the calls give, in their order."""
        ...

    def find_enough(self) -> str:
        """Why the model is to answer now, in words; nothing as long as it may call."""
        ...


class ToolSource(Protocol):
    """Where tools come from that are not of this program, such as servers: listed when they are wanted, and kept."""

    def tools(self) -> Sequence[Tool]:
        """The same tools in the same order, until they are refreshed; may take as long as a server does."""
        ...

    def has_given(self, owner: object) -> bool:
        """Whether a conversation took up tools here, which may be others by now."""
        ...

    def take(self, owner: object, mark: object, *, anew: bool = False) -> tuple[Sequence[Tool], Sequence[str]]:
        """The tools for a conversation, the same for as long as its mark is, and what is to be said of new ones.

        They may be other ones where it wants them anew.
        """
        ...

    def check(self) -> None:
        """Refuses what nobody said yes to; nothing is started by that."""
        ...

    def refresh(self) -> None:
        """Have them listed anew when they are wanted next."""
        ...

    def close(self) -> None: ...


class Toolbox:
    """Tools as a program gave them. Those that came as functions are run here; the calls of others are the caller's.

    ``definitions`` are of ``tools``, by their names: in whichever order they were given, a request has them in one.
    What a conversation was told of earlier is still run as ``before`` has it, and is ``known`` with them. Those that
    are ``changing`` something say so.
    """

    def __init__(
        self,
        tools: Sequence[Tool | ToolFunction] = (),
        *,
        seconds: float = SECONDS,
        before: "Toolbox | None" = None,
    ) -> None:
        made = [_describe(tool) for tool in tools]
        self.definitions = tuple(sorted((definition for definition, _ in made), key=lambda one: one.name))
        changing = {tool.name for tool in tools if isinstance(tool, Tool) and tool.changes}
        self.changing: frozenset[str] = frozenset(changing) | (frozenset() if before is None else before.changing)
        self._ways: dict[str, _Way] = {} if before is None else dict(before._ways)
        self._ways.update({definition.name: way for definition, way in made})
        known = {} if before is None else {definition.name: definition for definition in before.known}
        known |= {definition.name: definition for definition in self.definitions}
        self.known: tuple[ToolDefinition, ...] = tuple(known[name] for name in sorted(known))
        self._seconds = seconds
        names = [definition.name for definition in self.definitions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise CallError(f"Two tools are called {twice[0]}.", hint="Give each tool a name of its own.")

    def leaves(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> bool:
        """Whether some of these are the caller's to run. Raises if one is of a tool that nobody gave here."""
        names = {definition.name for definition in told}
        left = [call.name for call in calls if call.name in names and self._find(call.name)[0] is None]
        lost = sorted({name for name in left if name not in self._ways})
        if lost:
            message = f"The model calls {', '.join(lost)}, for which no function was given here; the turn waits."
            raise calls_wait(message, [call for call in calls if call.name in lost])
        return bool(left)

    def find_enough(self) -> str:
        """Nothing: who has plain tools may call them as long as the turn's limits allow."""
        return ""

    async def run(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> tuple[ToolOutput, ...]:
        """What the calls give, all of them at once, in their order. One that fails is a failed result."""
        names = tuple(definition.name for definition in told)
        return tuple(await asyncio.gather(*(self._run(call, names) for call in calls)))

    async def _run(self, call: ToolCall, names: Sequence[str]) -> ToolOutput:
        run, own = self._find(call.name) if call.name in names else (None, None)
        if run is None:
            known = ", ".join(names) or "none"
            return ToolOutput(call=call.id, output=f"There is no tool {call.name}. Tools: {known}.", failed=True)
        seconds = self._seconds if own is None else own
        try:
            return await asyncio.wait_for(_finish(run, call), None if seconds == inf else seconds)
        except TimeoutError:
            return ToolOutput(call=call.id, output=f"No result within {seconds:g} seconds.", failed=True)

    def _find(self, name: str) -> _Way:
        return self._ways.get(name, (None, None))


async def _finish(run: _Run, call: ToolCall) -> ToolOutput:
    try:
        return ToolOutput(call=call.id, output=write_output(await run(call.arguments)))
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            # Somebody stopped it; one that a tool raised by itself is a failure like any other.
            raise
        return ToolOutput(call=call.id, output=tell_failure(error), failed=True)


def _describe(tool: Tool | ToolFunction) -> tuple[ToolDefinition, _Way]:
    if isinstance(tool, Tool):
        return tool.definition(), (None if tool.run is None else _make_run(tool.run, None), tool.seconds)
    name = getattr(tool, "__name__", "")
    if not callable(tool) or not name.isidentifier():
        raise CallError(
            f"A {type(tool).__name__} is no tool.", hint="Give a Tool, or a function with types and a docstring."
        )
    if inspect.isgeneratorfunction(tool) or inspect.isasyncgenfunction(tool):
        raise CallError(f"The tool {name} yields.", hint="Return what it gives, all at once.")
    told = inspect.getdoc(tool)
    if not told:
        raise CallError(f"The tool {name} has no docstring.", hint="Say in it what the tool does: the model reads it.")
    try:
        model = _make_model(tool, name)
        definition = make_tool_definition(name, description=told, parameters=_make_schema(model))
    except LamellaError:
        raise
    except Exception as error:  # types of parameters can be anything, and so can what is wrong with them
        raise CallError(
            f"The parameters of the tool {name} cannot be described: {type(error).__name__}.",
            hint="Use types that JSON has: str, int, float, bool, lists and dicts of them, Literal, Optional.",
        ) from error
    return definition, (_make_run(tool, model), None)


def _make_model(function: ToolFunction, name: str) -> Any:  # noqa: ANN401 - a class made at run time
    """A model of the function's parameters, by which arguments are checked and described."""
    from pydantic import ConfigDict, create_model  # only those who give functions need it

    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY) or one.name not in hints:
            raise CallError(
                f"The parameter {one.name} of the tool {name} cannot be described.",
                hint="Give every parameter a name and a type: def weather(city: str) -> str.",
            )
        fields[one.name] = (hints[one.name], ... if one.default is one.empty else one.default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _make_schema(model: Any) -> Mapping[str, object]:  # noqa: ANN401 - as above
    schema = dict(model.model_json_schema())
    schema.pop("title", None)
    return schema


def _make_run(function: ToolFunction, model: Any) -> _Run:  # noqa: ANN401 - as above
    async def run(arguments: str) -> object:
        given = json.loads(arguments) if arguments.strip() else {}
        if not isinstance(given, dict):
            raise TypeError("the arguments are no JSON object")
        given = given if model is None else _check_arguments(given, model)
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        # A tool that hangs would keep the program from ending.
        result: object = await run_apart(partial(function, **given), name="lamella-tool")
        return await result if inspect.isawaitable(result) else result

    return run


def _check_arguments(given: Mapping[str, object], model: Any) -> dict[str, object]:  # noqa: ANN401 - as above
    """Arguments of the types that the function declares; what is wrong with others, in words for the model."""
    from pydantic import ValidationError  # only those who give functions need it

    try:
        checked = model.model_validate(given)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]
        raise TypeError("; ".join(wrong)) from error
    return {name: getattr(checked, name) for name in type(checked).model_fields}
