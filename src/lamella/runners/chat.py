"""``chat``: one question, one answer; tools are those that the caller gives."""

from collections.abc import AsyncGenerator

from lamella.engine.sending.job import Job, carry_out
from lamella.engine.sending.sending import Event
from lamella.runners.write_blocks import with_write_blocks

_COMPOSES = "@composer"


def run_chat(job: Job) -> AsyncGenerator[Event, None]:
    """One question, one answer, from the talk and what is attached; with tools if the caller gives some.

    An answer to a message with ``@composer`` in it may give notes to be written.
    """
    return carry_out(with_write_blocks(job) if _COMPOSES in _find_typed(job) else job)


def _find_typed(job: Job) -> str:
    if job.asked is not None:
        return job.asked.text
    return "" if job.turn is None else job.turn.envelope.prompt.user.message.text
