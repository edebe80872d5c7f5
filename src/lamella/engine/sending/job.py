"""Jobs: a question on its way to its answer, as a runner gets it, and the ways of answering by their names."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from inspect import getdoc
from typing import Protocol

from msgspec import Struct

from lamella.attach import Tool
from lamella.core.log.receipt import Receipt
from lamella.core.messages.delta import ToolCall
from lamella.core.search.index import Passage
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.secrets import Leaving
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.engine.dialogue.summaries import AsideBook
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.delivery import Delivery
from lamella.engine.sending.events import Event
from lamella.engine.sending.limits import TurnLimits
from lamella.engine.sending.sending import SendingChat, answer, send
from lamella.engine.sending.tools import Toolbox, Toolset, ToolSource
from lamella.errors import NotAvailableError
from lamella.holdings import ProjectFolder, WorkflowProgress

# How questions are answered where nobody says.
USUAL_RUNNER = "chat"


class NotingChat(SendingChat, AsideBook, Protocol):
    """A conversation that is sent, and told of calls on the way; ``head`` is its last message."""

    @property
    def head(self) -> str: ...


def _no_tools(_chat: SendingChat | None) -> Sequence[Tool]:
    return ()


class Workplace(Struct, frozen=True, kw_only=True):
    """What runners find where they work: the tools that come with it, and the notes of its vault, where it has one.

    ``make_tools`` gives those for a conversation; without one, those that there are, to be told of. ``calls_tools``
    tells whether a model can call tools by itself, ``look_at_project`` what its folder has now, and ``writes`` whether
    notes may be written here at all; ``save`` has a fact remembered that the user typed. The index of the notes is
    opened by whoever searches first, and ``servers`` are started by whoever wants their tools.
    """

    make_tools: Callable[[SendingChat | None], Sequence[Tool]] = _no_tools
    notes: NoteIndex | None = None
    calls_tools: Callable[[str], bool] = bool
    look_at_project: Callable[[], ProjectFolder] | None = None
    writes: bool = False
    servers: ToolSource | None = None
    save: Tool | None = None


class JobChat(NotingChat, Protocol):
    """A conversation as runners look at it before they ask: what it would send, and what waits for the next question.

    ``lets_move`` says whether asking something moves what was sent anyway, so that tools may change with it.
    ``refuse_secrets`` raises where something that looks like one would leave, and settings refuse that. ``originals``
    are all that was said and attached so far, and ``complete`` gives the question that waits what was found for it.
    """

    @property
    def window(self) -> int: ...

    @property
    def commands(self) -> Commands: ...

    @property
    def progress(self) -> WorkflowProgress | None: ...

    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    def lets_move(self, asked: Ask, *, at: datetime | None = None) -> bool: ...

    def receipts(self) -> Sequence[Receipt]: ...

    def refuse_secrets(self, texts: Sequence[Leaving], *, model: str) -> None: ...

    def originals(self) -> Sequence[Passage]: ...

    def complete(self, found: Ask, *, at: datetime | None = None) -> TurnView: ...


class Job(Struct, frozen=True, kw_only=True):
    """A question in its conversation, what sends it, the tools that the caller gave, and the place where it is done.

    Without anything ``asked`` the ``turn`` goes on that waits, beginning with the ``calls`` that it was left with. One
    that is both asked and there was written down when it ``began``. ``runners`` are all there are, for one that leaves
    a job to another.
    """

    chat: JobChat
    post: Delivery
    asked: Ask | None = None
    turn: TurnView | None = None
    calls: tuple[ToolCall, ...] = ()
    began: datetime | None = None
    toolbox: Toolbox | None = None
    limits: TurnLimits = TurnLimits()
    place: Workplace = Workplace()
    runners: Mapping[str, "Runner"] = {}


# A way of answering: a job becomes events, and the answer is written down.
Runner = Callable[[Job], AsyncGenerator[Event, None]]


def carry_out(job: Job, *, tools: Toolset | None = None) -> AsyncGenerator[Event, None]:
    """Ask what is asked, or go on with the turn that waits; send it, and record the answer: where every runner ends.

    ``tools`` run the calls, by default those that the caller gave.
    """
    toolbox = tools or job.toolbox
    if job.turn is None:
        assert job.asked is not None, "a job asks something, or goes on with a turn"
        return send(job.chat, job.asked, job.post, toolbox=toolbox, limits=job.limits)
    limits, began = job.limits, job.began
    return answer(job.chat, job.turn, job.post, calls=job.calls, toolbox=toolbox, limits=limits, began=began)


def run_job(job: Job, *, usual: str) -> AsyncGenerator[Event, None]:
    """The events of a job, by the runner that its question names; where it names none, by the usual one."""
    if job.asked is not None:
        name = job.asked.runner or usual
    else:
        assert job.turn is not None, "a job asks something, or goes on with a turn"
        name = job.turn.envelope.prompt.terms.runner
    run = job.runners.get(name) or find_runner(name, job.runners)
    return run(job)


def list_runners(runners: Mapping[str, Runner]) -> dict[str, str]:
    """The runners by their names, each with what it does: the sentence that its function begins with."""
    return {name: (getdoc(run) or "").partition("\n")[0] for name, run in runners.items()}


def find_runner(name: str, runners: Mapping[str, Runner]) -> Runner:
    """The runner of a name; an error says which there are."""
    if name not in runners:
        known = ", ".join(runners) or "none"
        raise NotAvailableError(f"There is no runner {name!r} here.", hint=f"Choose one of: {known}.")
    return runners[name]
