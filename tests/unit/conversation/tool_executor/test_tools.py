"""Running tools: their results and failures, reported as they are."""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from contextvars import ContextVar
from math import inf
from threading import Event
from threading import enumerate as enumerate_threads
from time import monotonic

from lamella import Tool
from lamella.conversation.tool_executor import LocalToolset
from lamella.core.messages import ToolCall, ToolOutput


class Later:
    """A tool that is an object, and gives its result later."""

    async def __call__(self) -> str:
        return "sun"


def run_once(tool: Tool, *, seconds: float = 5.0) -> ToolOutput:
    toolbox = LocalToolset([tool], call_timeout=seconds)
    (output,) = asyncio.run(toolbox.run_all([ToolCall(id="c", name=tool.name, arguments="{}")], toolbox.definitions))
    return output


def test_awaitable_result_is_awaited() -> None:
    later = Later()

    def promise() -> Awaitable[str]:
        return later()

    for run in (later, promise):
        assert run_once(Tool(name="weather", run=run)) == ToolOutput(call="c", output="sun")


def test_timeout_raised_by_tool_keeps_its_message() -> None:
    def read() -> str:
        raise TimeoutError("the database did not answer within 1 s")

    output = run_once(Tool(name="read", run=read))
    assert output.failed
    assert "the database did not answer" in output.output


def test_cancellation_raised_by_tool_is_failure() -> None:
    def cancel() -> str:
        raise asyncio.CancelledError

    async def cancel_later() -> str:
        raise asyncio.CancelledError

    for run in (cancel, cancel_later):
        output = run_once(Tool(name="work", run=run))
        assert (output.failed, output.output.partition(":")[0]) == (True, "CancelledError")


def test_slow_tool_times_out() -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "late"

    assert run_once(Tool(name="wait", run=wait), seconds=0.05) == ToolOutput(
        call="c", output="No result within 0.05 seconds.", failed=True
    )


def test_tools_are_sorted() -> None:
    tools = [Tool(name=name, run=Later()) for name in ("moon", "tides", "beans")]
    orders = {tuple(one.name for one in LocalToolset(given).definitions) for given in (tools, tools[::-1])}
    assert orders == {("beans", "moon", "tides")}


def test_tool_may_set_its_own_timeout() -> None:
    async def wait() -> str:
        await asyncio.sleep(0.2)
        return "there"

    assert run_once(Tool(name="wait", run=wait, timeout_seconds=0.05)).output == "No result within 0.05 seconds."
    assert run_once(Tool(name="wait", run=wait, timeout_seconds=inf), seconds=0.05).output == "there"


def test_endless_function_blocks_neither_turn_nor_program() -> None:
    never = Event()
    started = monotonic()
    output = run_once(Tool(name="hang", run=lambda: never.wait()), seconds=0.05)
    assert output == ToolOutput(call="c", output="No result within 0.05 seconds.", failed=True)
    # The loop is closed by now, and nobody waited for the thread.
    assert monotonic() - started < 5
    assert [thread.daemon for thread in enumerate_threads() if thread.name == "lamella-tool"] == [True]
    never.set()


def test_function_runs_in_context_of_caller() -> None:
    place = ContextVar("place", default="nowhere")
    place.set("Graz")
    assert run_once(Tool(name="where", run=lambda: place.get())).output == "Graz"


def test_fast_result_is_reported_before_slow_one() -> None:
    fast_is_seen = asyncio.Event()

    async def slow() -> str:
        await fast_is_seen.wait()
        return "slow"

    async def fast() -> str:
        return "fast"

    toolbox = LocalToolset([Tool(name="slow", run=slow), Tool(name="fast", run=fast)])
    calls = [ToolCall(id=name, name=name, arguments="{}") for name in ("slow", "fast")]

    async def collect() -> list[list[str]]:
        came = []
        async for outputs in toolbox.run(calls, toolbox.definitions):
            came.append([output.output for output in outputs])
            fast_is_seen.set()
        return came

    assert asyncio.run(collect()) == [["fast"], ["slow"]]


def test_closing_the_results_cancels_the_tools_that_still_run() -> None:
    cancelled = []

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("wait")
        return ""

    toolbox = LocalToolset([Tool(name="wait", run=wait), Tool(name="fast", run=Later())])
    calls = [ToolCall(id=name, name=name, arguments="{}") for name in ("wait", "fast")]

    async def stop_after_first() -> None:
        async with aclosing(toolbox.run(calls, toolbox.definitions)) as results:
            async for outputs in results:
                assert [output.call for output in outputs] == ["fast"]
                break
        assert cancelled == ["wait"]

    asyncio.run(stop_after_first())
