"""``chat``: one question, one answer; tools are those that the caller gives."""

from collections.abc import AsyncGenerator

from lamella.engine.sending.events import Event
from lamella.engine.sending.job import Job, carry_out
from lamella.runners.write_blocks import with_write_blocks


def run_chat(job: Job) -> AsyncGenerator[Event, None]:
    """One question, one answer, from the talk and what is attached; with tools if the caller gives some."""
    return carry_out(with_write_blocks(job))
