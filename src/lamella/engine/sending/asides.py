"""Asides: what a runner asks a model on the way to an answer: a plan, a question in other words, a summary."""

from collections.abc import Sequence
from contextlib import aclosing

from lamella.core.messages.delta import Reply, fold_deltas
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.engine.sending.deltas import read_answer
from lamella.engine.sending.job import Job
from lamella.errors import ReplyBrokenError


async def ask_aside(job: Job, messages: Sequence[Message], *, answer: int) -> Reply:
    """What the model of a job says to messages that are no part of the conversation, in at most so many tokens."""
    request = Request(model=job.post.model, messages=tuple(messages), answer=answer)
    async with aclosing(read_answer(job.post.provider, request)) as coming:
        reply = fold_deltas([delta async for delta in coming])
    if reply is None:
        raise ReplyBrokenError(
            f"{job.post.model} ended without an end to what it said.", hint="Ask again, or ask another model."
        )
    return reply
