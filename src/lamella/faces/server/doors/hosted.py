"""Hosted turns: from a client's whole history to a run in the conversation that it is, and what was heard of it."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict

from lamella import ToolCall
from lamella.engine.chat import Chat
from lamella.engine.engine import Engine
from lamella.engine.hosts.answers import HostAnswers, name_answer
from lamella.engine.hosts.going_on import SendHosted, fits_history, make_ready
from lamella.engine.hosts.history import HostRequest, name_history
from lamella.engine.hosts.places import HostChange
from lamella.engine.hosts.tails import HostTails
from lamella.engine.runs.place import TellingEvent
from lamella.engine.runs.run import Run
from lamella.engine.sending.events import Event
from lamella.errors import CallError
from lamella.faces.server.asking import AskedTurn, Send
from lamella.faces.server.attached import AttachedList, read_attached
from lamella.faces.server.state import Caller, ServerState
from lamella.refusals import NameTakenError, NotFoundError, RunUnderwayError

CONVERSATION = "x-lamella-conversation"
# How many conversations that begin alike are looked at before one of its own is begun.
_ALIKE = 20
_ANY = "lamella"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_NAMED = 20


class LamellaField(BaseModel):
    """What a client may say to Lamella in the field `lamella`, beside what its own API takes."""

    model_config = ConfigDict(extra="forbid")

    conversation: str | None = None
    attach: AttachedList = []
    runner: str | None = None


@dataclass(slots=True, kw_only=True)
class HostedTurn:
    """A turn that a client's history ends in: its run, who answers by which name, and what is to be said of it."""

    asked: AskedTurn
    run: Run
    model: str
    answer: str
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the answer is called: it stays the same while it is given, and no other has it."""
        return f"{self.run.message}.{self.answer}"

    @property
    def headers(self) -> dict[str, str]:
        """What every answer at a door tells beside what its API does."""
        # A key that came in with an archive may have any letters, and a header holds few.
        told = {"X-Lamella-Conversation": quote(self.run.conversation, safe="")}
        return {**told, "X-Lamella-Note": "; ".join(self.notes)} if self.notes else told


@dataclass(slots=True)
class HeardAnswer:
    """What a run has said so far."""

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Mapping[str, int | None] = field(default_factory=dict)
    stop: str = "end"

    def take(self, event: Event) -> None:
        """One event more."""
        self.text += event.text
        self.reasoning += event.said if event.kind == "reasoning" else ""
        if event.usage is not None:
            names = ("plain", "read", "write", "write_long", "output", "reasoning", "prompt")
            self.usage = {name: getattr(event.usage, name) for name in names}
        if event.kind == "done":
            self.calls = list(event.calls)
            made = [] if event.turn is None else event.turn.ledger.calls
            self.stop = made[-1].stop if made else self.stop

    def count(self, name: str) -> int:
        """Tokens of a price class; what nobody knows is told as none, as these APIs have no word for that."""
        return self.usage.get(name) or 0


async def hear(run: Run) -> HeardAnswer:
    """The whole answer of a run."""
    heard = HeardAnswer()
    async with aclosing(run.follow()) as events:
        async for _, event in events:
            heard.take(event)
    return heard


async def follow(run: Run) -> AsyncGenerator[Event, None]:
    """The events of a run as they come."""
    told: AsyncGenerator[TellingEvent, None] = run.follow()
    async with aclosing(told):
        async for _, event in told:
            yield event


async def open_turn(
    state: ServerState,
    caller: Caller,
    request: HostRequest,
    *,
    conversation: str | None,
    ignored: Sequence[str],
    nameable: bool,
) -> HostedTurn:
    """Begin the run of a history's last question, in the conversation that is named or that it is known to be.

    Where answers are ``nameable`` a host can go on from one by its name.
    """
    notes = _tell_ignored(ignored)
    tails = HostTails(state.suite.backend.store.shelf, clock=state.suite.backend.clock, owner=caller.owner)
    cut = None
    if conversation is None and request.past:
        cut = await state.suite.pool.workers.run(lambda: _find_cut(state.engine_of(caller), request, tails))
    for name in [*([cut] if cut is not None else []), *_list_names(request, conversation)]:
        find = partial(_find, state, caller, request, name=name, named=conversation is not None)
        found = await state.suite.pool.workers.run(find)
        if found is None:
            continue
        asked, answer = AskedTurn(state, caller), name_answer()
        ending = tails if conversation is None else None
        send = _make_send(state, request, notes=notes, tails=ending, answer=answer if nameable else None)
        try:
            run = await asked.start(found, send, queue=conversation is not None)
        except RunUnderwayError:
            if conversation is not None:
                raise
            continue
        return HostedTurn(asked=asked, run=run, model=request.model or "", answer=answer, notes=notes)
    raise CallError(f"{_ALIKE} conversations begin like this one.", hint=f"Name it in the header {CONVERSATION}.")


def _tell_ignored(names: Sequence[str]) -> list[str]:
    """What was sent and is not taken; names that a header cannot hold are counted."""
    plain = [name for name in names if _PLAIN.fullmatch(name)][:_NAMED]
    more = [f"{len(names) - len(plain)} more"] if len(names) > len(plain) else []
    return [f"ignored: {', '.join((*plain, *more))}"] if names else []


def _make_send(
    state: ServerState, request: HostRequest, *, notes: list[str], tails: HostTails | None, answer: str | None
) -> Send:
    """What sends the last question.

    ``tails`` are moved where nobody named the conversation; ``answer`` is its name where a host may go on from it.
    """
    backend, workers = state.suite.backend, state.suite.pool.workers
    answers = HostAnswers(backend.store.shelf, clock=backend.clock)

    def prepare(chat: Chat) -> tuple[SendHosted, HostChange]:
        after = None if request.after is None else _find_answer(answers, request.after, chat)
        return make_ready(chat, request._replace(after=after), named=tails is None)

    async def send(chat: Chat) -> AsyncGenerator[Event, None]:
        ready, change = await workers.finish(lambda: prepare(chat))
        if change is not HostChange.NONE:
            notes.append(change.value)
        return note_end(ready(), chat) if tails is not None or answer is not None else ready()

    async def note_end(events: AsyncGenerator[Event, None], chat: Chat) -> AsyncGenerator[Event, None]:
        """The same events; how the conversation ends then is noted, for a host that will tell less of it or nothing."""
        said: list[str] = []
        async with aclosing(events):
            async for event in events:
                said.append(event.text)
                yield event
        if tails is not None:
            move = partial(tails.move, request.past, request.asked.typed, "".join(said), conversation=chat.id)
            await workers.finish(move)
        if answer is not None:
            await workers.finish(partial(answers.note, answer, chat))

    return send


def _find_answer(answers: HostAnswers, given: str, chat: Chat) -> str:
    found = answers.find(given, chat)
    if found is None:
        raise NotFoundError(
            "The conversation has no such response.", hint="Send the id of one as it came, or the whole history."
        )
    return found


def _find_cut(engine: Engine, request: HostRequest, tails: HostTails) -> str | None:
    """The conversation of a history that nobody named and whose beginning nobody knows, if its end is known."""
    if engine.look_up(name_history(request.turns)) is not None:
        return None
    key = tails.find(request.past)
    known = None if key is None else engine.look_up(key)
    return known.conversation if known is not None and known.conversation == key else None


def _list_names(request: HostRequest, conversation: str | None) -> list[str]:
    if conversation is not None:
        return [conversation]
    base = name_history(request.turns)
    return [base, *(f"{base}-{number}" for number in range(2, _ALIKE + 1))]


def _find(state: ServerState, caller: Caller, request: HostRequest, *, name: str, named: bool) -> str | None:
    """The key of a conversation that can be meant, begun where there is none; none where it cannot."""
    engine = state.engine_of(caller)
    listed = engine.look_up(name)
    if listed is None:
        settings = {key: value for key, value in state.suite.fit(request.model or "").items() if key != "system"}
        try:
            return engine.begin(name, title=None, **{**settings, "model": request.model}).id
        except NameTakenError:
            return None
    if named:
        return listed.conversation
    run = state.runs.find(listed.conversation)
    free = run is None or run.brief or run.is_ending
    return listed.conversation if free and fits_history(engine.chat(listed.conversation), request) else None


def resolve_model(name: str, state: ServerState) -> str:
    """The model that a client means: by its name here, or by that of its maker alone."""
    named = state.suite.list_named()
    if name in ("", _ANY):
        return state.suite.model
    return next((one for one in named if name in (one, one.partition(":")[2])), name)


def read_own(given: LamellaField | None, header: str | None, state: ServerState) -> tuple[str | None, list[Any]]:
    """The conversation that a client names, and what it attaches, beside what its API takes."""
    own = given or LamellaField()
    return unquote(header or "") or own.conversation, list(read_attached(own.attach, state))
