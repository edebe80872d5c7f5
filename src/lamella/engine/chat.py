"""A chat: a conversation in a store, asked and sent by a Python program."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import MappingProxyType
from typing import Unpack

from lamella.attach import Attachment, Tool, ToolResult
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import Call
from lamella.core.log.nodes import Told
from lamella.core.log.receipt import Receipt
from lamella.core.messages.delta import ToolCall
from lamella.core.values import replace
from lamella.engine.checks import GivenLimits, check_answer, check_pairs, check_text, check_time, limit_turn
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.proposal import Proposal
from lamella.engine.dialogue.turn import TurnView, no_model
from lamella.engine.discourse import Discourse
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.commands.facts import ModelDoubt
from lamella.engine.keeping.marks import CompactionMark, find_marks
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.runs.place import EventPlace, TellingEvent
from lamella.engine.runs.retelling import retell_turn
from lamella.engine.said import SaidBranch, read_said
from lamella.engine.script import play_script, read_script, write_script
from lamella.engine.sending.delivery import ANSWER, Delivery
from lamella.engine.sending.events import Event
from lamella.engine.sending.job import Job, Runner, Workplace, find_runner, run_job
from lamella.engine.sending.keep_alive import keep_alive
from lamella.engine.sending.limits import TurnLimits
from lamella.engine.sending.pool import ProviderPool
from lamella.engine.sending.tools import Toolbox, ToolFunction
from lamella.engine.sources import ReplySource, list_source_hashes, read_sources
from lamella.errors import CallError

NO_RUNNERS: Mapping[str, Runner] = MappingProxyType({})
NO_PLACE = Workplace()


class Chat(Discourse):
    """A conversation in a store: what it acknowledges is durable, and opening it again goes on where it was left."""

    def __init__(
        self,
        backend: Backend,
        conversation: str,
        settings: dict[str, object],
        *,
        pool: ProviderPool | None = None,
        runners: Mapping[str, Runner] = NO_RUNNERS,
        place: Workplace = NO_PLACE,
    ) -> None:
        self._backend = backend
        self._stored = StoredChat(backend, conversation, settings)
        self._pool = pool
        self._runners = runners
        self._place = place
        self._sending = False
        super().__init__(self._stored, system=None)

    def send(
        self,
        text: str | TurnView,
        *,
        attach: Sequence[Attachment] = (),
        results: Sequence[ToolResult] = (),
        tools: Sequence[Tool | ToolFunction] | None = None,
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        detach: Sequence[str] = (),
        pin: Sequence[str] = (),
        unpin: Sequence[str] = (),
        fold: bool = False,
        verbatim: bool = False,
        runner: str | None = None,
        max_tokens: int | None = None,
        **limits: Unpack[GivenLimits],
    ) -> AsyncGenerator[Event, None]:
        """Ask the model and record its answer, as events; each has the ``text`` it adds to the answer.

        Closing the iterator stops the model, and what it said until then is kept. An answer may have ``max_tokens``,
        1,024 if nothing is said; more than the request leaves of the window, if you say so much, is refused unsent.
        Tools that are functions are run here, each call within ``seconds``; the chat remembers them. After so many
        rounds (``steps``), ``turn_seconds``, ``turn_tokens`` or dollars (``max_cost``) none is called any more. In
        place of a text, a turn that ``edit``, ``regenerate`` or ``give`` gave is sent.
        """
        named = self._name_runner(runner)
        bounds = limit_turn(self._stored.limits, limits)
        equipped = tools is not None or self._toolbox is not None
        toolbox = self._equip(tools, seconds=bounds.call_seconds) if equipped else None
        if isinstance(text, TurnView):
            return self._alone(self._go_on(text, toolbox, max_tokens=max_tokens, limits=bounds))
        asked = self._describe(
            text,
            attach=attach,
            results=results,
            tools=self._choose_told(tools, toolbox, runner=named),
            system=system,
            model=model,
            drop=drop,
            detach=detach,
            pin=pin,
            unpin=unpin,
            fold=fold,
            verbatim=verbatim,
        )
        post = self._find_post(self._stored.model_for(asked), max_tokens)
        job = self._make_job(post, toolbox, bounds, asked=asked if runner is None else replace(asked, runner=runner))
        return self._alone(run_job(job, usual=named))

    def resume(
        self,
        *,
        tools: Sequence[Tool | ToolFunction] | None = None,
        max_tokens: int | None = None,
        **limits: Unpack[GivenLimits],
    ) -> AsyncGenerator[Event, None]:
        """Go on with a turn that was left open: run the calls that wait for their results, then send it on.

        The runner that it was asked with goes on, and what it used of its limits counts, but for the time.
        """
        bounds = limit_turn(self._stored.limits, limits)
        toolbox = self._equip(tools, seconds=bounds.call_seconds)
        return self._alone(self._go_on(None, toolbox, max_tokens=max_tokens, limits=bounds))

    async def keep_alive(self, *, once: bool = False) -> int:
        """Keep the cache as often as settings say and it pays, or ``once`` if it is due by now; how often it was."""
        return await keep_alive(self._stored, lambda one: self._find_pool().post(one, answer=1), once=once)

    def _name_runner(self, runner: str | None) -> str:
        """The runner that is meant, once it is known that there is one."""
        named = self._stored.runner if runner is None else runner
        if named not in self._runners:
            find_runner(named, self._runners)
        return named

    def _choose_told(
        self, tools: Sequence[Tool | ToolFunction] | None, toolbox: Toolbox | None, *, runner: str
    ) -> tuple[ToolDefinition, ...] | None:
        """What the model is told of: what is given, else what it was; after another runner all that was ever given."""
        if toolbox is None or (tools is None and self._stored.runner_before in (None, runner)):
            return None
        return toolbox.known if tools is None else toolbox.definitions

    def make_tools(self) -> Sequence[Tool]:
        """The tools that come with the engine, made for this conversation."""
        return self._place.make_tools(self._stored)

    def _name_model(self, model: str) -> str:
        """A model that the program names may be sent to, whoever else names it later."""
        named = super()._name_model(model)
        if self._pool is not None:
            self._pool.name(named)
        return named

    async def _go_on(
        self, turn: TurnView | None, toolbox: Toolbox | None, *, max_tokens: int | None, limits: TurnLimits
    ) -> AsyncGenerator[Event, None]:
        """Send a turn that waits, by default the one that does, with the calls that it was left with."""
        waits, calls = await self._find_pool().workers.run(lambda: (turn or self._stored.take_up(), self._stored.calls))
        if waits is None or waits.envelope.message_id != self._stored.head:
            raise CallError("This turn waits for no answer.", hint="Ask something, or regenerate the last answer.")
        post = self._find_post(waits.envelope.model, max_tokens)
        job = self._make_job(post, toolbox, limits, turn=waits, calls=tuple(calls))
        events = run_job(job, usual=self._stored.runner)
        async with aclosing(events):
            async for event in events:
                yield event

    def _make_job(
        self,
        post: Delivery,
        toolbox: Toolbox | None,
        limits: TurnLimits,
        *,
        asked: Ask | None = None,
        turn: TurnView | None = None,
        calls: tuple[ToolCall, ...] = (),
    ) -> Job:
        return Job(
            chat=self._stored,
            post=post,
            asked=asked,
            turn=turn,
            calls=calls,
            toolbox=toolbox,
            limits=limits,
            place=self._place,
            runners=self._runners,
        )

    def _find_post(self, model: str | None, max_tokens: int | None) -> Delivery:
        if model is None:
            raise no_model()
        window = self._stored.window
        pool = self._find_pool()
        length = check_answer(max_tokens, window=window, usual=pool.answers.get(model, ANSWER))
        return pool.post(model, answer=length, window=None if max_tokens is None else window)

    def _find_pool(self) -> ProviderPool:
        if self._pool is None:
            raise CallError("Nothing is sent from here.", hint="Open the conversation with lamella.open(…).")
        return self._pool

    async def _alone(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """One turn at a time: an answer belongs to the question that was asked last."""
        self._check_idle()
        self._sending = True
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._sending = False

    def _check_idle(self) -> None:
        if self._sending:
            raise CallError("A turn is being sent.", hint="Wait for its answer, or close its iterator to stop it.")

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; a turn that waits counts as stopped, unless it is being sent."""
        self._check_idle()
        return super().commit(planned, at=at)

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it; a turn that waits counts as stopped."""
        self._check_idle()
        return super().undo(receipt, at=at)

    def set(self, **settings: object) -> None:
        """Settings by name, in force from the next turn on, as those given to ``engine.chat()`` are."""
        for name in ("model", "summarizer"):
            model = settings.get(name)
            if self._pool is not None and isinstance(model, str):
                self._pool.name(check_text(model, name, may_be_empty=False))
        self._stored.set(settings)

    @property
    def memory(self) -> str:
        """The memory as it stands in the prompt of this conversation."""
        return self._stored.memory

    def refresh_memory(self) -> str | None:
        """Have the memory taken up with the next turn; what moves first by that, none if nothing does."""
        return self._stored.refresh_memory()

    def tell_talk(self) -> str:
        """What was talked about, on one line, in words of who writes summaries; it is asked now, and may take a while.

        In a thread that an event loop runs in nobody is asked.
        """
        return self._stored.tell_talk().text

    def ledger(self) -> Sequence[Sequence[Call]]:
        """For each turn of the active branch the model calls that were made for it."""
        return self._stored.ledger()

    def doubts(self) -> Sequence[ModelDoubt]:
        """What providers reported of their caches against the profiles of their models, and what would fit."""
        return self._stored.doubts()

    def marks(self) -> Sequence[CompactionMark]:
        """Every compaction and every undo, each by the message after which it happened."""
        return find_marks(self.id, self._backend.store.load(self.id))

    def replay(
        self, *, layout: str | None = None, window: int | None = None, model: str | None = None, head: str | None = None
    ) -> Iterator[TurnView]:
        """Each turn of a branch as it would be sent, by default of the active one, under other settings where given.

        What was compacted by hand is planned anew, as settings say; nothing is sent, read or written.
        """
        given = {"layout": layout, "window": window, "model": model}
        script = read_script(self._backend, self.id, head)
        return play_script(self._backend, script, {name: value for name, value in given.items() if value is not None})

    def transcript(self, head: str | None = None) -> dict[str, object]:
        """A branch as a transcript, by default the active one: data that ``lamella replay`` takes once it is JSON."""
        return write_script(read_script(self._backend, self.id, head))

    @property
    def id(self) -> str:
        """The key of the conversation, which is nobody else's, ever."""
        return self._stored.id

    @property
    def name(self) -> str:
        """What people call it in this store."""
        return self._stored.name

    @property
    def title(self) -> str:
        return self._stored.title

    @property
    def head(self) -> str:
        """The id of the active branch's last message."""
        return self._stored.head

    def turns(self, head: str | None = None) -> Sequence[Told]:
        """The turns of a branch as they were said, by default of the active one."""
        return self._stored.turns(head)

    def sources(self, message: str | None = None) -> Sequence[ReplySource]:
        """What the numbers in a reply point to, by default in the last one: ``[^1]`` is the first.

        A message is that reply or its question, on whatever branch it is.
        """
        told = self._stored.turns(None if message is None else check_text(message, "message"))[-1:]
        hashes = [name for one in told for name in list_source_hashes(one)]
        contents = self._backend.store.read_contents(self.id, hashes) if hashes else {}
        return tuple(source for one in told for source in read_sources(one, contents))

    def add_turns(self, turns: Sequence[tuple[str, str]], *, at: datetime | None = None) -> None:
        """Questions with their answers that were said elsewhere, after the last answer; nothing is sent or read."""
        self._stored.add_turns(check_pairs(turns), at=check_time(at))

    def said(self, head: str | None = None) -> SaidBranch:
        """What was said on a branch, by default on the active one, with results of tools, sources and compactions."""
        records = self._backend.store.load(self.id)
        return read_said(self._backend.store, self.id, self.turns(head), marks=find_marks(self.id, records))

    def find_turn(self, message: str) -> Told:
        """The turn of a question, answered where it was: on the active branch, else on the one that ended last."""
        named = check_text(message, "message")
        heads = (self.head, *reversed(self.branches())) if self.head else ()
        found = next((told for head in heads for told in self.turns(head) if told.message.id == named), None)
        return self.turns(named)[-1] if found is None else found

    def retell(self, message: str, place: EventPlace | None = None) -> Sequence[TellingEvent]:
        """The answer to a question as events, from the store: all of it, or what came after a place in it."""
        told = self.find_turn(message)
        contents = read_said(self._backend.store, self.id, [told]).contents
        return retell_turn(told, contents, place=place)

    def told_tools(self, turn: TurnView) -> Sequence[Tool]:
        """The tools that a turn tells the model of, each call of which is the caller's to run."""
        told = turn.envelope.prompt.tools
        return [Tool(name=one.name, description=one.description, parameters=json.loads(one.parameters)) for one in told]

    def waiting(self) -> TurnView | None:
        """The turn that waits for its answer, if one does; ``resume`` goes on with it."""
        return self._stored.waiting()

    def has_message(self, message: str) -> bool:
        """Whether a message is anywhere in the conversation, on whatever branch."""
        return self._stored.has_message(check_text(message, "message"))

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that the conversation has of its own, by name, written down or not yet."""
        return self._stored.settings

    def keep(self, *, at: datetime | None = None) -> None:
        """Write down what was set, which else goes with the next event; a conversation begins with that, too."""
        self._stored.keep(at=check_time(at))

    def branches(self) -> Sequence[str]:
        """Every branch by its last message; none is ever lost by editing, regenerating, deleting or forking."""
        return self._stored.branches()

    def edit(self, message: str, text: str, *, at: datetime | None = None) -> TurnView:
        """Ask another text in place of a message, with the same attachments."""
        return self._stored.edit(check_text(message, "message"), check_text(text, "text"), at=check_time(at))

    def regenerate(
        self, message: str | None = None, *, model: str | None = None, at: datetime | None = None
    ) -> TurnView:
        """Open a question again, by default the last; the next reply stands beside the old one.

        ``model`` is who answers it this time and from then on, by default who was asked.
        """
        named = None if message is None else check_text(message, "message")
        other = None if model is None else self._name_model(model)
        return self._stored.regenerate(named, model=other, at=check_time(at))

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Go on without a message; a question goes with its answer."""
        self._stored.delete(check_text(message, "message"), at=check_time(at))

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Go on from an earlier message."""
        self._stored.fork(check_text(message, "message"), at=check_time(at))

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch the active one."""
        self._stored.switch(check_text(head, "head"), at=check_time(at))

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Give the conversation a title."""
        self._stored.rename(check_text(title, "title"), at=check_time(at))

    def reload(self) -> None:
        """Read what others wrote since; do this after a conflict, then repeat what you did."""
        self._stored.reload()
