"""``chat``: one question, one answer; tools are those that the caller gives."""

from collections.abc import AsyncGenerator

from lamella.engine.sending.job import Job, carry_out
from lamella.engine.sending.sending import Event


def run_chat(job: Job) -> AsyncGenerator[Event, None]:
    """Ask, send, and record the answer, in as many rounds of tools as it takes."""
    return carry_out(job)
