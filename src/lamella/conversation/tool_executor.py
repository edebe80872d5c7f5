"""Run the tool calls of a model, with limits on time and length.

``LocalToolset`` has the tools that a program gave: it describes them to the model and runs its calls. ``ToolSource``
provides tools from outside, such as MCP servers. ``output_to_text`` converts a result to text that can be stored and
sent, without ever encoding a huge value in full.
"""

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol, get_type_hints

from lamella.attach import KEEP_RESULTS, Tool
from lamella.conversation.past_turns import calls_pending_error
from lamella.conversation.threads import run_in_own_thread
from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages import ToolCall, ToolOutput
from lamella.errors import InvalidOperationError, LamellaError

# Maximum characters stored of one result. All of them can be recalled; the prompt shows fewer, as settings say.
MAX_OUTPUT_CHARS = 2_000_000
_TAIL_DIVISOR = 4


def output_to_text(value: object) -> str:
    """Return the result of a tool as text for the model; raises ``ValueError`` if it cannot be text."""
    if isinstance(value, bytes | bytearray | memoryview):
        raise ValueError(f"the result is binary, {len(value):,} bytes, and no text")
    text = _truncate_middle(value) if isinstance(value, str) else _encode_json_limited(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the result has half of a character in it") from error
    return text


def format_tool_failure(error: BaseException) -> str:
    """Describe the failure of a tool for the model."""
    try:
        if isinstance(error, LamellaError):
            return f"{error.message} {error.hint}".encode(errors="replace").decode()
        return _truncate_middle(f"{type(error).__name__}: {error}".encode(errors="replace").decode())
    except Exception:  # noqa: BLE001 - an error that cannot be formatted is named by its class
        return type(error).__name__


def _truncate_middle(text: str) -> str:
    """Return a text that is too long with its middle replaced by a notice."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    tail = MAX_OUTPUT_CHARS // _TAIL_DIVISOR
    lost = f"[{len(text) - MAX_OUTPUT_CHARS:,} of {len(text):,} characters are not kept: a result has at most {MAX_OUTPUT_CHARS:,}.]"
    return f"{text[: MAX_OUTPUT_CHARS - tail]}\n{lost}\n{text[-tail:]}"


def _encode_json_limited(value: object) -> str:
    """Encode a value as JSON, stopping at the size limit, so that a huge value is never encoded in full."""
    parts: list[str] = []
    size = 0
    for part in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
        parts.append(part)
        size += len(part)
        if size > MAX_OUTPUT_CHARS:
            written = "".join(parts)[:MAX_OUTPUT_CHARS]
            return f"{written}\n[The rest is not kept: a result has at most {MAX_OUTPUT_CHARS:,} characters.]"
    return "".join(parts)


# Toolsets: definitions for the model, and running its calls.

ToolFunction = Callable[..., object]
_RunCall = Callable[[str], Awaitable[object]]
# The function that runs a tool and the time limit of one call, if the tool has its own. Without a function the caller
# has to run the calls.
_ToolRunner = tuple[_RunCall | None, float | None]

# Default number of tool rounds per turn, and default seconds per call.
DEFAULT_STEPS = 8
DEFAULT_CALL_TIMEOUT = 60.0
# A result that starts with this text found nothing.
NOTHING_FOUND = "Nothing found"


class Toolset(Protocol):
    """Runs the tool calls of a turn."""

    def leaves_calls_to_caller(self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]) -> bool:
        """Return whether the caller has to run some of these calls, so that the turn waits."""
        ...

    def run(
        self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]
    ) -> AsyncGenerator[tuple[ToolOutput, ...], None]:
        """Run the calls and yield their results as they come, each once; those that come together in order."""
        ...

    def get_stop_reason(self) -> str:
        """Return the reason why the model has to answer now, or "" as long as it may call tools."""
        ...


class ToolSource(Protocol):
    """A source of tools from outside the program, such as MCP servers; listed on demand and then kept."""

    def tools(self) -> Sequence[Tool]:
        """Return the same tools in the same order until ``refresh``; may take as long as a server does."""
        ...

    def has_given_tools_to(self, owner: object) -> bool:
        """Return whether a conversation got tools here before; they may have changed since."""
        ...

    def tools_for(
        self, conversation: object, version: object, *, refresh: bool = False
    ) -> tuple[Sequence[Tool], Sequence[str]]:
        """Return the tools for a conversation, and messages for the user about new tools.

        The tools stay the same as long as ``version`` does, unless ``refresh`` is set.
        """
        ...

    def check_servers_trusted(self) -> None:
        """Raise an error for servers that the user has not confirmed; no server is started."""
        ...

    def refresh(self) -> None:
        """List the tools again when they are requested next."""
        ...

    def close(self) -> None: ...


class LocalToolset:
    """The tools that a program gave: functions are run here, calls of other tools are left to the caller.

    ``definitions`` are sorted by name, so that the order in which tools were given does not change the request. Tools
    of ``earlier`` can still be called, since the model knows them; ``all_definitions`` contains both.
    ``changing_names`` names the tools that change something, ``kept_names`` those whose results are never cleared.
    """

    def __init__(
        self,
        tools: Sequence[Tool | ToolFunction] = (),
        *,
        call_timeout: float = DEFAULT_CALL_TIMEOUT,
        earlier: "LocalToolset | None" = None,
    ) -> None:
        made = [_define_tool(tool) for tool in tools]
        self.definitions = tuple(sorted((definition for definition, _ in made), key=lambda one: one.name))
        changing = {tool.name for tool in tools if isinstance(tool, Tool) and tool.has_side_effects}
        self.changing_names: frozenset[str] = frozenset(changing) | (
            frozenset() if earlier is None else earlier.changing_names
        )
        given = {tool.name for tool in tools if isinstance(tool, Tool)}
        kept = {tool.name for tool in tools if isinstance(tool, Tool) and tool.policy == KEEP_RESULTS}
        self.kept_names: frozenset[str] = frozenset(kept) | (
            frozenset() if earlier is None else earlier.kept_names - given
        )
        self._runners: dict[str, _ToolRunner] = {} if earlier is None else dict(earlier._runners)
        self._runners.update({definition.name: way for definition, way in made})
        known = {} if earlier is None else {definition.name: definition for definition in earlier.all_definitions}
        known |= {definition.name: definition for definition in self.definitions}
        self.all_definitions: tuple[ToolDefinition, ...] = tuple(known[name] for name in sorted(known))
        self._call_timeout = call_timeout
        names = [definition.name for definition in self.definitions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidOperationError(f"Two tools are called {twice[0]}.", hint="Give each tool a name of its own.")

    @property
    def runnable_names(self) -> frozenset[str]:
        """The names of the tools whose calls are run here."""
        return frozenset(name for name, (run, _) in self._runners.items() if run is not None)

    def leaves_calls_to_caller(self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]) -> bool:
        """Return whether the caller has to run some of these calls; raises if a tool is not known here."""
        names = {definition.name for definition in definitions}
        left = [call.name for call in calls if call.name in names and self._get_runner(call.name)[0] is None]
        lost = sorted({name for name in left if name not in self._runners})
        if lost:
            message = f"The model calls {', '.join(lost)}, for which no function was given here; the turn waits."
            raise calls_pending_error(message, [call for call in calls if call.name in lost])
        return bool(left)

    def get_stop_reason(self) -> str:
        """Return "": plain tools may be called as long as the limits of the turn allow."""
        return ""

    async def run(
        self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]
    ) -> AsyncGenerator[tuple[ToolOutput, ...], None]:
        """Run the calls concurrently and yield results as they come; an error becomes a failed result.

        Closing the iterator cancels the calls that still run.
        """
        names = tuple(definition.name for definition in definitions)
        tasks = [asyncio.create_task(self._run_call(call, names)) for call in calls]
        waiting = tasks
        try:
            while waiting:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done = [task for task in waiting if task.done()]
                waiting = [task for task in waiting if task not in done]
                yield tuple(task.result() for task in done)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def run_all(self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]) -> tuple[ToolOutput, ...]:
        """Run the calls concurrently and return their results in the order of the calls."""
        outputs = {output.call: output async for some in self.run(calls, definitions) for output in some}
        return tuple(outputs[call.id] for call in calls)

    async def _run_call(self, call: ToolCall, names: Sequence[str]) -> ToolOutput:
        run, own = self._get_runner(call.name) if call.name in names else (None, None)
        if run is None:
            known = ", ".join(names) or "none"
            return ToolOutput(call=call.id, output=f"There is no tool {call.name}. Tools: {known}.", failed=True)
        seconds = self._call_timeout if own is None else own
        try:
            return await asyncio.wait_for(_run_to_output(run, call), None if seconds == inf else seconds)
        except TimeoutError:
            return ToolOutput(call=call.id, output=f"No result within {seconds:g} seconds.", failed=True)

    def _get_runner(self, name: str) -> _ToolRunner:
        return self._runners.get(name, (None, None))


async def _run_to_output(run: _RunCall, call: ToolCall) -> ToolOutput:
    try:
        return ToolOutput(call=call.id, output=output_to_text(await run(call.arguments)))
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            # The turn itself was cancelled. A CancelledError that a tool raised is a failure like any other.
            raise
        return ToolOutput(call=call.id, output=format_tool_failure(error), failed=True)


def _define_tool(tool: Tool | ToolFunction) -> tuple[ToolDefinition, _ToolRunner]:
    if isinstance(tool, Tool):
        return tool.to_definition(), (
            None if tool.run is None else _make_call_runner(tool.run, None),
            tool.timeout_seconds,
        )
    name = getattr(tool, "__name__", "")
    if not callable(tool) or not name.isidentifier():
        raise InvalidOperationError(
            f"A {type(tool).__name__} is no tool.", hint="Give a Tool, or a function with types and a docstring."
        )
    if inspect.isgeneratorfunction(tool) or inspect.isasyncgenfunction(tool):
        raise InvalidOperationError(f"The tool {name} yields.", hint="Return what it gives, all at once.")
    description = inspect.getdoc(tool)
    if not description:
        raise InvalidOperationError(
            f"The tool {name} has no docstring.", hint="Say in it what the tool does: the model reads it."
        )
    try:
        model = _build_arguments_model(tool, name)
        definition = make_tool_definition(name, description=description, parameters=_arguments_schema(model))
    except LamellaError:
        raise
    except Exception as error:  # annotations can be anything, so any error can occur
        raise InvalidOperationError(
            f"The parameters of the tool {name} cannot be described: {type(error).__name__}.",
            hint="Use types that JSON has: str, int, float, bool, lists and dicts of them, Literal, Optional.",
        ) from error
    return definition, (_make_call_runner(tool, model), None)


def _build_arguments_model(function: ToolFunction, name: str) -> Any:  # noqa: ANN401 - a class made at run time
    """Build a pydantic model of the function's parameters, which describes and checks arguments."""
    from pydantic import ConfigDict, create_model  # imported here: needed only for tools given as functions

    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY) or one.name not in hints:
            raise InvalidOperationError(
                f"The parameter {one.name} of the tool {name} cannot be described.",
                hint="Give every parameter a name and a type: def weather(city: str) -> str.",
            )
        fields[one.name] = (hints[one.name], ... if one.default is one.empty else one.default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _arguments_schema(model: Any) -> Mapping[str, object]:  # noqa: ANN401 - as above
    schema = dict(model.model_json_schema())
    schema.pop("title", None)
    return schema


def _make_call_runner(function: ToolFunction, model: Any) -> _RunCall:  # noqa: ANN401 - as above
    async def run(arguments: str) -> object:
        given = json.loads(arguments) if arguments.strip() else {}
        if not isinstance(given, dict):
            raise TypeError("the arguments are no JSON object")
        given = given if model is None else _check_arguments(given, model)
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        # Sync functions run in a daemon thread: a tool that hangs must not keep the program from exiting.
        result: object = await run_in_own_thread(partial(function, **given), name="lamella-tool")
        return await result if inspect.isawaitable(result) else result

    return run


def _check_arguments(arguments: Mapping[str, object], model: Any) -> dict[str, object]:  # noqa: ANN401 - as above
    """Return arguments of the declared types; raises ``TypeError`` with a message for the model."""
    from pydantic import ValidationError  # imported here: needed only for tools given as functions

    try:
        checked = model.model_validate(arguments)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()]
        raise TypeError("; ".join(wrong)) from error
    return {name: getattr(checked, name) for name in type(checked).model_fields}
