"""A watch over the calls of one turn: it answers repeated searches without running them, and sees when to stop."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.placement import Form
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.headings import QUERY_LABEL
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.layers.rounds import split_rounds
from lamella.core.prompt.layers.strip import Said
from lamella.core.text.words import cut_words
from lamella.core.values import replace
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.sending.events import Event
from lamella.engine.sending.tools import NOTHING_FOUND, Toolset
from lamella.runners.rounds.searches import Search, find_repeats, list_search_tools, read_search

# So many rounds in a row that brought nothing, and the model is to answer.
FRUITLESS = 2
# Of a question, as it stands again at the end of a search's result, in characters: all of it is paid for with every
# search.
_QUESTION = 600
_GLANCE = 120
_REPEATED = "Not run again: "


class CallWatch:
    """The tools of one turn, watched. All it goes by is the turn as it was sent last.

    So a turn that is taken up in another process goes on as it would have.
    """

    def __init__(self, tools: Toolset, turn: TurnView | None) -> None:
        self._tools = tools
        self._turn = turn

    async def follow(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The same events; the watch goes by the turn that they tell of."""
        async with aclosing(events):
            async for event in events:
                self._turn = event.turn or self._turn
                yield event

    def leaves(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> bool:
        """Whether some of these are the caller's to run."""
        return self._tools.leaves(calls, told)

    def find_enough(self) -> str:
        """Why the model is to answer now: its last rounds brought nothing."""
        seen: set[str] = set()
        streak = 0
        for _, results in self._list_rounds():
            streak = streak + 1 if all(_is_fruitless(result, seen) for result in results) else 0
            seen.update(result.text for result in results)
        return f"the last {FRUITLESS} rounds of tools brought nothing new" if streak >= FRUITLESS else ""

    async def run(self, calls: Sequence[ToolCall], told: Sequence[ToolDefinition]) -> tuple[ToolOutput, ...]:
        """What the calls give, in their order; a search ends with the question, and a repeated one is not run."""
        searching = list_search_tools(told)
        repeats = find_repeats(calls, self._list_searches(searching), searching)
        ran = await self._tools.run([call for call in calls if call.id not in repeats], told)
        given = {output.call: output for output in ran}
        return tuple(
            _tell_repeated(call, repeats[call.id])
            if call.id in repeats
            else self._end_with_question(given[call.id], call, searching)
            for call in calls
        )

    def _list_rounds(self) -> list[tuple[Said, tuple[Said, ...]]]:
        return [] if self._turn is None else split_rounds(self._turn.envelope.prompt.rounds)

    def _list_searches(self, searching: frozenset[str]) -> list[Search]:
        """The searches of this turn whose results can be read where they stand."""
        legible = (
            call
            for calling, results in self._list_rounds()
            for call, result in zip(calling.message.calls, results, strict=True)
            if result.segment.form is Form.FULL and not result.message.failed and not _is_repeated(result)
        )
        return [search for call in legible if (search := read_search(call, searching)) is not None]

    def _end_with_question(self, output: ToolOutput, call: ToolCall, searching: frozenset[str]) -> ToolOutput:
        if output.failed or call.name not in searching or self._turn is None:
            return output
        question = self._turn.envelope.prompt.user.text
        question = question if len(question) <= _QUESTION else cut_words(question, _QUESTION)
        return replace(output, output=f"{output.output.rstrip()}\n\n{QUERY_LABEL}{question}")


def _is_fruitless(result: Said, seen: set[str]) -> bool:
    """Whether a result brought nothing: the tool failed or found nothing, or it is what another gave before."""
    if result.message.failed or _is_repeated(result) or result.text in seen:
        return True
    found = result.text.rpartition(QUERY_LABEL)[0] if QUERY_LABEL in result.text else result.text
    return not found.strip() or found.startswith(NOTHING_FOUND)


def _is_repeated(result: Said) -> bool:
    """Whether a result says that its search was not run, because it had been."""
    return result.text.startswith(_REPEATED)


def _tell_repeated(call: ToolCall, query: str) -> ToolOutput:
    told = (
        f'{_REPEATED}this turn searched for "{cut_words(query, _GLANCE)}" before, and what that found stands above. '
        "Answer from it, or search with other words."
    )
    return ToolOutput(call=call.id, output=told)
