"""Jobs: a question on its way to its answer, as a runner gets it, and the ways of answering by their names."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct

from lamella.attach import Tool
from lamella.core.messages.delta import ToolCall
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.summaries import AsideBook
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.sending import Delivery, Event, SendingChat, answer, send
from lamella.engine.sending.tools import SECONDS, STEPS, Toolbox
from lamella.errors import NotAvailableError


class NotingChat(SendingChat, AsideBook, Protocol):
    """A conversation that is sent, and told of calls on the way; ``head`` is its last message."""

    @property
    def head(self) -> str: ...


class TurnLimits(Struct, frozen=True, kw_only=True):
    """How far one turn may go: rounds of tools, and seconds for a call."""

    steps: int = STEPS
    call_seconds: float = SECONDS


def _no_tools(_chat: SendingChat) -> Sequence[Tool]:
    return ()


class Workplace(Struct, frozen=True, kw_only=True):
    """What runners find where they work: the tools that come with it, and the notes of its vault, where it has one.

    ``calls_tools`` tells whether a model can call tools by itself.
    """

    make_tools: Callable[[SendingChat], Sequence[Tool]] = _no_tools
    notes: NoteIndex | None = None
    calls_tools: Callable[[str], bool] = bool


class Job(Struct, frozen=True, kw_only=True):
    """A question in its conversation, what sends it, the tools that the caller gave, and the place where it is done.

    Without anything ``asked`` the ``turn`` goes on that waits, beginning with the ``calls`` that it was left with.
    """

    chat: NotingChat
    post: Delivery
    asked: Ask | None = None
    turn: TurnView | None = None
    calls: tuple[ToolCall, ...] = ()
    toolbox: Toolbox | None = None
    limits: TurnLimits = TurnLimits()
    place: Workplace = Workplace()


# A way of answering: a job becomes events, and the answer is written down.
Runner = Callable[[Job], AsyncGenerator[Event, None]]


async def carry_out(job: Job) -> AsyncGenerator[Event, None]:
    """Ask what is asked, or go on with the turn that waits; send it, and record the answer: where every runner ends."""
    if job.asked is not None:
        events = send(job.chat, job.asked, job.post, toolbox=job.toolbox, steps=job.limits.steps)
    else:
        assert job.turn is not None, "a job asks something, or goes on with a turn"
        events = answer(job.chat, job.turn, job.post, calls=job.calls, toolbox=job.toolbox, steps=job.limits.steps)
    async with aclosing(events):
        async for event in events:
            yield event


def run_job(job: Job, runners: Mapping[str, Runner], *, usual: str) -> AsyncGenerator[Event, None]:
    """The events of a job, by the runner that its question names; where it names none, by the usual one."""
    if job.asked is not None:
        name = job.asked.runner or usual
    else:
        assert job.turn is not None, "a job asks something, or goes on with a turn"
        name = job.turn.envelope.prompt.terms.runner
    return find_runner(name, runners)(job)


def find_runner(name: str, runners: Mapping[str, Runner]) -> Runner:
    """The runner of a name; an error says which there are."""
    if name not in runners:
        known = ", ".join(runners) or "none"
        raise NotAvailableError(f"There is no runner {name!r} here.", hint=f"Choose one of: {known}.")
    return runners[name]
