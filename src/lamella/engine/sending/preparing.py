"""Preparing: a question is written down before anything is looked up for it, and sent with what was found."""

from functools import partial

from lamella.core.log.call import ANSWER_PURPOSE
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.fitting import wait_apart
from lamella.engine.sending.job import Job
from lamella.engine.sending.limits import TurnMeter


async def begin_question(job: Job) -> Job:
    """Write a question down before anything is looked up for it: whoever stops meanwhile finds it waiting."""
    if job.asked is None or job.turn is not None:
        return job
    began = job.post.clock.now()
    turn = await wait_apart(partial(job.chat.ask, job.asked, at=began), job.post.workers.finish)
    return replace(job, turn=turn, began=began)


async def complete_question(job: Job, found: Ask) -> Job:
    """The job whose question has what was found for it; where that is nothing, as it is."""
    if not (found.attach or found.results or found.sources or found.warnings):
        return job
    at, before = job.post.clock.now(), job.turn
    turn = await wait_apart(partial(job.chat.complete, found, at=at), job.post.workers.finish)
    if turn.compaction is None and before is not None:
        # What had to go for the question goes for it still.
        turn = replace(turn, compaction=before.compaction)
    return replace(job, turn=turn)


async def is_prepared(job: Job) -> bool:
    """Whether what a question needs was looked up already: it has something of it, or it was answered before."""
    if job.turn is None:
        return False
    told, made = await job.post.workers.run(lambda: (job.chat.turns()[-1], job.chat.ledger()[-1]))
    asked = told.message.question
    found = asked is not None and (asked.results or asked.sources)
    return bool(found or told.open) or any(call.purpose == ANSWER_PURPOSE for call in made)


async def find_reached(job: Job) -> str:
    """The limit that a turn has reached before it is answered at all, in words; nothing while it has reached none."""
    meter = TurnMeter(job.limits, clock=job.post.clock, started=job.began or job.post.clock.now())
    if meter.counts:
        meter.weigh((await job.post.workers.run(job.chat.ledger))[-1], answers=0)
    return meter.find_reached(0)


def read_typed(job: Job) -> str:
    """What was typed, in the question or in the turn that waits."""
    return job.chat.turns()[-1].message.typed if job.asked is None else job.asked.text
