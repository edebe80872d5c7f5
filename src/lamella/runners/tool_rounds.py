"""The tools of a turn: collect them, offer them, and guard their calls.

``collect_tools`` returns the tools that a turn may call. ``with_system_parts_and_tools`` adds a runner's parts and tools to a
turn request. ``RepeatedSearchGuard`` answers repeated searches without running them, and notices when to stop.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial

from msgspec import Struct

from lamella.attach import Tool
from lamella.conversation.runner_context import RunRequest
from lamella.conversation.tool_executor import NOTHING_FOUND, LocalToolset, Toolset
from lamella.conversation.turn import BuiltTurn, TurnRequest
from lamella.conversation.turn_runner import TurnEvent
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import PrefixChangeCause
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import QUERY_LABEL, ToolCall, ToolOutput, parse_arguments
from lamella.core.prompt.layers.history import HistoryMessage
from lamella.core.prompt.layers.tool_rounds import group_rounds
from lamella.core.search.language import iter_terms
from lamella.core.text.content import truncate_words
from lamella.core.values import replace
from lamella.errors import LamellaError


async def collect_tools(run_request: RunRequest) -> tuple[RunRequest, LocalToolset]:
    """Return the tools of this context, of its MCP servers and of the caller; the caller's win on equal names.

    The returned run request carries the warnings of the servers.
    """
    given = () if run_request.toolset is None else run_request.toolset.all_definitions
    names = {definition.name for definition in given}
    theirs, warnings = await _collect_mcp_tools(run_request)
    here = [
        tool
        for tool in (*run_request.runner_context.make_tools(run_request.conversation), *theirs)
        if tool.name not in names
    ]
    for line in warnings:
        run_request = with_system_parts_and_tools(run_request, parts={}, warning=line)
    return run_request, LocalToolset(here, call_timeout=run_request.limits.call_seconds, earlier=run_request.toolset)


async def _collect_mcp_tools(run_request: RunRequest) -> tuple[Sequence[Tool], Sequence[str]]:
    """Return the tools of MCP servers and warnings about them.

    The tools stay the same until the conversation is opened, folded or compacted again, because a changed tool list
    changes the cached prefix. Servers are asked in a thread, so the event loop stays free.
    """
    servers, turn_request = run_request.runner_context.mcp_servers, run_request.turn_request
    if servers is None:
        return (), ()
    if turn_request is not None and turn_request.fold:
        await asyncio.to_thread(servers.refresh)
    # A turn that is already running keeps the tools it was sent with. Only a new question may get a changed list.
    refresh = (
        turn_request is not None
        and servers.has_given_tools_to(run_request.conversation)
        and await _changes_prefix(run_request, turn_request)
    )
    # The number of compactions identifies the cached prefix: a new compaction allows another tool list.
    mark = await run_request.send_context.workers.run(lambda: len(run_request.conversation.receipts()))
    return await asyncio.to_thread(partial(servers.tools_for, run_request.conversation, mark, refresh=refresh))


async def _changes_prefix(run_request: RunRequest, turn_request: TurnRequest) -> bool:
    """Return whether the question changes the cached prefix anyway, so that a new tool list costs nothing more.

    A question that cannot be asked counts as no change; the error is raised when it is sent.
    """
    if run_request.turn is not None:
        return run_request.turn.prefix_change.prefix_change.cause is not PrefixChangeCause.NONE
    try:
        return await run_request.send_context.workers.run(
            lambda: run_request.conversation.changes_prefix_anyway(
                turn_request, at=run_request.send_context.clock.now()
            )
        )
    except LamellaError:
        return False


def list_offered_tools(run_request: RunRequest, tools: LocalToolset) -> tuple[ToolDefinition, ...]:
    """Return the tools to offer to the model in a stable order: those of this context, then the caller's."""
    asked = None if run_request.turn_request is None else run_request.turn_request.tools
    given = asked if asked is not None else () if run_request.toolset is None else run_request.toolset.all_definitions
    return (*tools.definitions, *given)


def with_system_parts_and_tools(
    run_request: RunRequest,
    *,
    parts: Mapping[str, str],
    tools: Sequence[ToolDefinition] | None = None,
    warning: str = "",
) -> RunRequest:
    """Return the run request with parts of L1, tools and a warning added to its turn request.

    Parts that the request already sets win. A run request that resumes a stored turn is returned unchanged.
    """
    turn_request = run_request.turn_request
    if turn_request is None:
        return run_request
    warnings = (*turn_request.warnings, warning) if warning else turn_request.warnings
    tool_specs = turn_request.tools if tools is None else tuple(tools)
    return replace(
        run_request,
        turn_request=replace(
            turn_request, system={**parts, **turn_request.system}, tools=tool_specs, warnings=warnings
        ),
    )


# Searches among tool calls, and repeated ones.

# A tool counts as a search tool if it has a string parameter of this name.
QUERY_PARAMETER = "query"
# Two searches are alike if they share at least this part of all their words together (Jaccard index).
MIN_SIMILARITY = 0.6


class SearchCall(Struct, frozen=True, kw_only=True):
    """A call of a search tool: its words, and its other arguments as JSON, such as a folder or a date range."""

    tool: str
    query: str
    terms: frozenset[str]
    other_arguments: str

    def repeats(self, other: "SearchCall") -> bool:
        """Return whether this search uses the same tool and arguments, and mostly the same words, as another."""
        if (self.tool, self.other_arguments) != (other.tool, other.other_arguments):
            return False
        every = self.terms | other.terms
        return not every or len(self.terms & other.terms) / len(every) >= MIN_SIMILARITY


def list_search_tools(definitions: Iterable[ToolDefinition]) -> frozenset[str]:
    """Return the names of the search tools among the tools that were offered to the model."""
    return frozenset(tool.name for tool in definitions if _is_search_tool(tool))


def _is_search_tool(tool: ToolDefinition) -> bool:
    properties = parse_arguments(tool.parameters).get("properties")
    words = properties.get(QUERY_PARAMETER) if isinstance(properties, dict) else None
    return isinstance(words, dict) and words.get("type") == "string"


def find_search(call: ToolCall, search_tools: Collection[str]) -> SearchCall | None:
    """Return the search that a call makes; None if the call is no search."""
    given = parse_arguments(call.arguments) if call.name in search_tools else {}
    query = given.pop(QUERY_PARAMETER, None)
    if not isinstance(query, str):
        return None
    return SearchCall(
        tool=call.name,
        query=query,
        terms=frozenset(iter_terms(query.casefold())),
        other_arguments=json.dumps(given, sort_keys=True),
    )


def find_repeated_searches(
    calls: Sequence[ToolCall], earlier: Sequence[SearchCall], search_tools: Collection[str]
) -> dict[str, str]:
    """Return the ids of calls that repeat a search, each with the query of the search it repeats.

    Calls of the same batch are compared with one another as well.
    """
    known = list(earlier)
    repeats: dict[str, str] = {}
    for call in calls:
        search = find_search(call, search_tools)
        if search is None:
            continue
        before = next((one for one in known if search.repeats(one)), None)
        if before is None:
            known.append(search)
        else:
            repeats[call.id] = before.query
    return repeats


# The guard.

# After this many consecutive rounds without a new result, the model is asked to answer.
MAX_FRUITLESS_ROUNDS = 2
# How many characters of the question are repeated after a search result. Each search pays for them again.
_MAX_QUESTION_CHARS = 600
_QUERY_PREVIEW_CHARS = 120
_REPEATED_PREFIX = "Not run again: "


class RepeatedSearchGuard:
    """Runs the tools of one turn and watches for repeated and fruitless searches.

    Its only state is the turn as last sent, so a turn that another process resumes continues in the same way.
    """

    def __init__(self, tools: Toolset, turn: BuiltTurn | None) -> None:
        self._tools = tools
        self._turn = turn

    async def watch_events(self, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events unchanged, and remember the newest turn that they carry."""
        async with aclosing(events):
            async for event in events:
                self._turn = event.turn or self._turn
                yield event

    def leaves_calls_to_caller(self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]) -> bool:
        """Return whether some of these calls must be run by the caller."""
        return self._tools.leaves_calls_to_caller(calls, definitions)

    def get_stop_reason(self) -> str:
        """Return why the model should stop calling tools and answer; empty if it may continue."""
        seen: set[str] = set()
        streak = 0
        for _, results in self._list_rounds():
            streak = streak + 1 if all(_is_fruitless(result, seen) for result in results) else 0
            seen.update(result.text for result in results)
        return (
            f"the last {MAX_FRUITLESS_ROUNDS} tool rounds brought nothing new" if streak >= MAX_FRUITLESS_ROUNDS else ""
        )

    async def run(
        self, calls: Sequence[ToolCall], definitions: Sequence[ToolDefinition]
    ) -> AsyncGenerator[tuple[ToolOutput, ...], None]:
        """Run the calls and yield their outputs as they come.

        A repeated search is not run. The output of a search ends with the user's question
        (docs/decisions/search-results.md).
        """
        searching = list_search_tools(definitions)
        repeats = find_repeated_searches(calls, self._list_searches(searching), searching)
        if repeats:
            yield tuple(_repeated_search_output(call, repeats[call.id]) for call in calls if call.id in repeats)
        run_calls = {call.id: call for call in calls if call.id not in repeats}
        async with aclosing(self._tools.run(tuple(run_calls.values()), definitions)) as given:
            async for outputs in given:
                yield tuple(self._append_question(output, run_calls[output.call], searching) for output in outputs)

    def _list_rounds(self) -> list[tuple[HistoryMessage, tuple[HistoryMessage, ...]]]:
        return [] if self._turn is None else group_rounds(self._turn.envelope.prompt.rounds)

    def _list_searches(self, search_tools: frozenset[str]) -> list[SearchCall]:
        """Return the searches of this turn whose results the model can still read in full."""
        legible = (
            call
            for calling, results in self._list_rounds()
            for call, result in zip(calling.message.calls, results, strict=True)
            if result.segment.form is ArtifactForm.FULL and not result.message.failed and not _is_repeated(result)
        )
        return [search for call in legible if (search := find_search(call, search_tools)) is not None]

    def _append_question(self, output: ToolOutput, call: ToolCall, search_tools: frozenset[str]) -> ToolOutput:
        if output.failed or call.name not in search_tools or self._turn is None:
            return output
        question = self._turn.envelope.prompt.question.text
        question = question if len(question) <= _MAX_QUESTION_CHARS else truncate_words(question, _MAX_QUESTION_CHARS)
        return replace(output, output=f"{output.output.rstrip()}\n\n{QUERY_LABEL}{question}")


def _is_fruitless(result: HistoryMessage, seen: set[str]) -> bool:
    """Return whether a result is useless: the tool failed, found nothing, or gave the same text as before."""
    if result.message.failed or _is_repeated(result) or result.text in seen:
        return True
    found = result.text.rpartition(QUERY_LABEL)[0] if QUERY_LABEL in result.text else result.text
    return not found.strip() or found.startswith(NOTHING_FOUND)


def _is_repeated(result: HistoryMessage) -> bool:
    """Return whether a result only says that its search was not run again."""
    return result.text.startswith(_REPEATED_PREFIX)


def _repeated_search_output(call: ToolCall, query: str) -> ToolOutput:
    text = (
        f'{_REPEATED_PREFIX}this turn searched for "{truncate_words(query, _QUERY_PREVIEW_CHARS)}" before, '
        "and what that found stands above. "
        "Answer from it, or search with other words."
    )
    return ToolOutput(call=call.id, output=text)
