"""Asides: what a model is asked on the way to an answer, such as a plan, other words for a question, or a summary.

Nothing of it stands in the conversation. That it was asked does, with what it cost: also where its answer was cut.
"""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from lamella.core.log.call import Timing
from lamella.core.messages.delta import Reply, Stop, StopReason, fold_deltas
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.sending.delivery import BROKEN, STOPPED, Attempt, Delivery, hear, tell_seconds
from lamella.engine.sending.job import Job
from lamella.errors import ReplyBrokenError

# What is called when a model has said something to an aside, whole or cut.
AnswerNote = Callable[[Answer], Awaitable[None]]


async def ask_aside(job: Job, messages: Sequence[Message], *, answer: int, purpose: str) -> Reply:
    """What the model of a job says to messages that are no part of the conversation, in at most so many tokens.

    The call is in the ledger of the turn that it is made for, under its purpose. It is tried again as answers are.
    What looks like a secret does not leave on the way either, where settings refuse that.
    """
    post, chat, after = job.post, job.chat, job.chat.head
    chat.refuse_secrets([(f"what is asked for a {purpose}", message.text) for message in messages], model=post.model)
    # Whoever wants to be answered the same each time wants what is looked up for that to be the same as well.
    temperature = chat.standing[1].temperature
    request = Request(model=post.model, messages=tuple(messages), answer=answer, temperature=temperature)

    async def note(given: Answer) -> None:
        at = post.clock.now()

        def write() -> None:
            if post.answered is not None:
                post.answered()
            chat.note_aside(request, given, purpose=purpose, after=after, at=at)

        await post.workers.finish(write)

    return await call_aside(request, post, note=note)


async def call_aside(request: Request, post: Delivery, *, note: AnswerNote) -> Reply:
    """What a model answers to a request, tried again where that may help; ``note`` is told of all that was said."""
    heard = Attempt(started=post.clock.now())

    async def make() -> Request:
        return request

    try:
        async with aclosing(hear(heard, make, post)) as coming:
            async for one in coming:
                heard.deltas += () if isinstance(one, tuple) else (one,)
        reply = fold_deltas(heard.deltas)
        if reply is None:
            raise ReplyBrokenError(
                f"{request.model} ended without an end to what it said.", hint="Ask again, or ask another model."
            )
    except BaseException as error:
        stopped = isinstance(error, GeneratorExit | CancelledError | KeyboardInterrupt)
        await _note_cut(heard, post, ended=STOPPED if stopped else BROKEN, note=note)
        raise
    await note(_sum_up(reply, heard, post))
    return reply


async def _note_cut(heard: Attempt, post: Delivery, *, ended: str, note: AnswerNote) -> None:
    """Of a call to which nothing came nobody knows that it was made at all."""
    reply = fold_deltas([*heard.deltas, Stop(reason=StopReason.OTHER)])
    if heard.deltas and reply is not None:
        await note(replace(_sum_up(reply, heard, post), ended=ended))


def _sum_up(reply: Reply, heard: Attempt, post: Delivery) -> Answer:
    timing = Timing(first=heard.first, total=tell_seconds(heard.started, post.clock.now()))
    return Answer(reply=reply, timing=timing, retries=heard.retries, foreseen=heard.foreseen)
