"""``staged``: a chat that works through the stages of a workflow, one after another."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from lamella.engine.sending.events import Event
from lamella.engine.sending.job import Job, carry_out
from lamella.holdings import WorkflowProgress
from lamella.runners.rounds.equipment import gather_tools, list_told, take_along
from lamella.runners.write_blocks import with_write_blocks

_NO_WORK = "No workflow was begun in this conversation: begin one, such as paper."


async def run_staged(job: Job) -> AsyncGenerator[Event, None]:
    """A chat in the stages of a workflow: its instructions, what was decided in it, and tools where a stage searches.

    What the prompt says of the work every question takes along, whatever answers it.
    """
    work = await job.post.workers.run(lambda: job.chat.progress)
    tools = None
    if work is None:
        job = take_along(job, parts={}, warning=_NO_WORK)
    elif _searches(work) and job.place.calls_tools(job.post.model):
        job, tools = await gather_tools(job)
        job = take_along(job, parts={}, tools=list_told(job, tools))
    elif job.toolbox is None and job.asked is not None and job.asked.tools is None:
        # A stage that does not search is not told of what the one before it might have called.
        job = take_along(job, parts={}, tools=())
    async with aclosing(carry_out(with_write_blocks(job), tools=tools)) as events:
        async for event in events:
            yield event


def _searches(work: WorkflowProgress) -> bool:
    return any(stage.search for stage in work.stages if stage.id == work.current)
