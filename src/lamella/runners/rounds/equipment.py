"""Equipment: the tools that a turn may call, and what a runner has a question take along."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from lamella.attach import Tool
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import Cause
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.sending.job import Job
from lamella.engine.sending.tools import Toolbox
from lamella.errors import LamellaError


async def gather_tools(job: Job) -> tuple[Job, Toolbox]:
    """The tools of the place, of its servers and of the caller; of two with one name the caller's.

    The job says what is to be said of servers.
    """
    given = () if job.toolbox is None else job.toolbox.known
    names = {definition.name for definition in given}
    theirs, said = await _take_servers(job)
    here = [tool for tool in (*job.place.make_tools(job.chat), *theirs) if tool.name not in names]
    for line in said:
        job = take_along(job, parts={}, warning=line)
    return job, Toolbox(here, seconds=job.limits.call_seconds, before=job.toolbox)


async def _take_servers(job: Job) -> tuple[Sequence[Tool], Sequence[str]]:
    """Tools of servers, as they were when the conversation was opened, folded or compacted last; a loop goes on."""
    servers, asked = job.place.servers, job.asked
    if servers is None:
        return (), ()
    if asked is not None and asked.fold:
        await asyncio.to_thread(servers.refresh)
    # What is called on the way to the answer is as it was told: only a question may find other tools.
    anew = asked is not None and servers.has_given(job.chat) and await _moves(job, asked)
    mark = await job.post.workers.run(lambda: len(job.chat.receipts()))
    return await asyncio.to_thread(partial(servers.take, job.chat, mark, anew=anew))


async def _moves(job: Job, asked: Ask) -> bool:
    """Whether the question moves what was sent anyway; one that cannot be asked says so when it is."""
    if job.turn is not None:
        return job.turn.prefix.movement.cause is not Cause.NONE
    try:
        return await job.post.workers.run(lambda: job.chat.lets_move(asked, at=job.post.clock.now()))
    except LamellaError:
        return False


def list_told(job: Job, tools: Toolbox) -> tuple[ToolDefinition, ...]:
    """What the model is told of, in an order that stays: the tools of the place, then what the caller gave."""
    asked = None if job.asked is None else job.asked.tools
    given = asked if asked is not None else () if job.toolbox is None else job.toolbox.known
    return (*tools.definitions, *given)


def take_along(
    job: Job, *, parts: Mapping[str, str], tools: Sequence[ToolDefinition] | None = None, warning: str = ""
) -> Job:
    """The job whose question has these parts of L1 and may call these tools, with what is to be said of that.

    What the question itself says of them comes first. A turn that waits is as it was asked.
    """
    asked = job.asked
    if asked is None:
        return job
    warnings = (*asked.warnings, warning) if warning else asked.warnings
    told = asked.tools if tools is None else tuple(tools)
    return replace(job, asked=replace(asked, system={**parts, **asked.system}, tools=told, warnings=warnings))
