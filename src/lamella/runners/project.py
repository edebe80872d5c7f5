"""``project``: a chat about a folder: its sources by name, with instructions and memory of its own."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from functools import partial

from lamella.core.artifacts.make import make_tool_result
from lamella.core.values import replace
from lamella.engine.sending.events import Event
from lamella.engine.sending.job import Job, carry_out
from lamella.engine.sending.sending import SendingChat
from lamella.holdings import ProjectFolder
from lamella.runners.manifest import write_changes, write_opening, write_project
from lamella.runners.rounds.equipment import gather_tools, list_told, take_along
from lamella.runners.write_blocks import with_write_blocks

_NO_FOLDER = "There is no project here: name its folder as the vault."


async def run_project(job: Job) -> AsyncGenerator[Event, None]:
    """A chat about a folder: its sources by name, its own instructions and memory, and what changed in it."""
    tools = None
    if job.place.calls_tools(job.post.model):
        job, tools = await gather_tools(job)
    told = None if tools is None else list_told(job, tools)
    if job.asked is not None:
        # All of the folder is looked at, which holds up nobody else.
        job = take_along(await job.post.workers.run(partial(_prepare, job)), parts={}, tools=told)
    async with aclosing(carry_out(with_write_blocks(job), tools=tools)) as events:
        async for event in events:
            yield event


def _prepare(job: Job) -> Job:
    """The job with what the project is in L1, or, where that stands already, with what changed in it since."""
    if job.place.look_at_project is None:
        return take_along(job, parts={}, warning=_NO_FOLDER)
    folder = job.place.look_at_project()
    for told in folder.told:
        job = take_along(job, parts={}, warning=told)
    standing = _find_standing(job.chat, folder)
    if standing is None:
        return take_along(job, parts={"project": write_project(folder)})
    changes = write_changes(standing[0], folder, since=standing[1])
    if not changes or job.asked is None:
        return job
    note = make_tool_result("project_sources", arguments={}, output=changes)
    return replace(job, asked=replace(job.asked, results=(*job.asked.results, note)))


def _find_standing(chat: SendingChat, folder: ProjectFolder) -> tuple[str, float] | None:
    """The part that the last request had of this project, and when that was asked; none where it has to be told anew.

    It stays as it is while its sources come and go: a list that followed them would move all that is cached.
    """
    state, _ = chat.standing
    last, part = state.last, state.system.project
    if last is None or last.terms.runner != "project" or not part.startswith(write_opening(folder)):
        return None
    asked = chat.turns()[-1].message.at
    return (part, datetime.fromisoformat(asked).timestamp()) if asked else None
