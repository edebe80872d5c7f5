"""Tools as they are run: what they give or how they fail, told as it was."""

import asyncio
from collections.abc import Awaitable

from lamella import Tool
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.engine.sending.tools import Toolbox


class Later:
    """A tool that is an object, and gives its result later."""

    async def __call__(self) -> str:
        return "sun"


def run_once(tool: Tool, *, seconds: float = 5.0) -> ToolOutput:
    toolbox = Toolbox([tool], seconds=seconds)
    (output,) = asyncio.run(toolbox.run([ToolCall(id="c", name=tool.name, arguments="{}")], toolbox.definitions))
    return output


def test_what_a_tool_gives_later_is_waited_for() -> None:
    later = Later()

    def promise() -> Awaitable[str]:
        return later()

    for run in (later, promise):
        assert run_once(Tool(name="weather", run=run)) == ToolOutput(call="c", output="sun")


def test_a_timeout_of_the_tool_itself_is_told_in_its_words() -> None:
    def read() -> str:
        raise TimeoutError("the database did not answer within 1 s")

    output = run_once(Tool(name="read", run=read))
    assert output.failed
    assert "the database did not answer" in output.output


def test_a_tool_that_takes_too_long_is_told_so() -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "late"

    assert run_once(Tool(name="wait", run=wait), seconds=0.05) == ToolOutput(
        call="c", output="No result within 0.05 seconds.", failed=True
    )
