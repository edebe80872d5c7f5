"""Opening a conversation to talk in: which one, with which model, over which notes."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from msgspec import structs

from lamella import Turn
from lamella.engine.checks import check_answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.backend import Backend, ChatRules
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.names import find_chat
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.delivery import ANSWER, Delivery
from lamella.engine.sending.events import Event
from lamella.engine.sending.job import USUAL_RUNNER, Job, Workplace, find_runner, run_job
from lamella.engine.sending.pool import ProviderPool
from lamella.errors import CallError, UntrustedError, UsageError
from lamella.faces.cli.access import name_command
from lamella.faces.cli.chat.input import PROMPT
from lamella.faces.cli.tables.said import tell_round, tell_waiting
from lamella.faces.cli.terminal.consent import allow_write, can_ask, go_on_trusted
from lamella.faces.cli.terminal.lines import show_line, show_lines, tell_count
from lamella.faces.cli.terminal.signals import undisturbed
from lamella.faces.cli.terminal.telling import tell, warn_laxer
from lamella.ports import TokenCounter
from lamella.runners.registry import RUNNERS, WITHOUT_TOOLS
from lamella.views.answers import view_answer
from lamella.views.chats import view_rounds
from lamella.views.turns import cover_reported
from lamella.wiring import (
    DEMO_MODEL,
    Configuration,
    Services,
    begin_settings,
    configure_chat,
    find_book,
    find_part,
    fit_window,
    mask,
    needs_name,
    open_backend,
    open_pool,
    open_workplace,
    read_services,
)

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress
    from lamella.holdings import Fact

DEMO_TOLD = (
    "local is a demo model (SmolLM2, 135 million parameters) that runs in this process, offline. "
    "It shows how the cache works; what it says is often wrong. A better one: --model gguf:PATH, "
    "openai-compatible:URL#NAME, anthropic:NAME, openai:NAME or gemini:NAME."
)
UNKEPT = "memory:"
_STICKY: Mapping[str, object] = {"attachments": "sticky"}
Configure = Callable[[Mapping[str, object]], ChatRules]
_GLANCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What was asked for on the command line. What ``sends`` nothing needs no key; ``lasts`` is more than one question.

    ``settings`` are those of the conversation, by name. ``sticky`` says that somebody talks: what is attached stays
    attached until it is detached, unless that was set.
    """

    store: str | None = None
    chat: str | None = None
    model: str | None = None
    vault: Path | None = None
    last: bool = False
    answer: int | None = None
    sends: bool = True
    lasts: bool = True
    settings: Mapping[str, object] = field(default_factory=dict)
    sticky: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChat:
    """A conversation, the model it is sent to, and what sends. ``begins`` says that nothing was said in it yet.

    ``kept`` is its key where it is kept, ``store`` the store that was named, if one was. ``opener`` opened it, and
    ``configure`` tells what its settings come to, and where each was found.
    """

    stored: StoredChat
    pool: ProviderPool
    answer: int | None
    model: str
    counter: TokenCounter
    begins: bool
    kept: str | None = None
    store: str | None = None
    opener: "ChatOpener"
    configure: Callable[[Mapping[str, object]], Configuration]

    def find_post(self, model: str | None = None) -> Delivery:
        """What sends to a model, by default to the one that was chosen; another branch may have its own."""
        window = self.stored.window
        name = model or self.model
        length = check_answer(self.answer, window=window, usual=self.pool.answers.get(name, ANSWER))
        find = partial(self.pool.post, name, answer=length, window=None if self.answer is None else window)
        try:
            return find()
        except UntrustedError as refused:
            _offer_name(refused)
            return go_on_trusted(refused, find)

    def name_again(self) -> str | None:
        """The model, where whoever goes on has to name it again; a password in its address is not repeated."""
        return mask(self.model) if needs_name(self.model, self.opener.services) else None

    def check_summarizer(self) -> None:
        """Have who writes summaries trusted, where that is a model which only somebody else's words name."""
        try:
            self.stored.check_summarizer()
        except UntrustedError as refused:
            go_on_trusted(refused, self.stored.check_summarizer)

    def run(self, asked: Ask | Turn, *, model: str | None = None) -> AsyncGenerator[Event, None]:
        """The events of the answer to what is asked, or to a turn that waits, by the runner that it is for."""
        waits = None if isinstance(asked, Ask) else asked
        runner = asked.runner if isinstance(asked, Ask) else asked.envelope.prompt.terms.runner
        if (runner or self.stored.runner) not in WITHOUT_TOOLS:
            self.agree()
        job = Job(
            chat=self.stored,
            asked=asked if isinstance(asked, Ask) else None,
            turn=waits,
            calls=() if waits is None else tuple(self.stored.calls),
            post=self.find_post(model if waits is None else waits.envelope.model),
            limits=self.stored.limits,
            place=self.opener.place,
            runners=RUNNERS,
        )
        return run_job(job, usual=self.stored.runner)

    def agree(self) -> None:
        """Have servers agreed to that only a project names, before their tools are wanted."""
        servers = self.opener.place.servers
        if servers is None:
            return
        try:
            servers.check()
        except UntrustedError as refused:
            go_on_trusted(refused, servers.check)

    def preview(self, asked: Ask) -> Turn:
        """What asking this would send; what a runner other than ``chat`` brings along is known when it asks."""
        runner = asked.runner or self.stored.runner
        find_runner(runner, RUNNERS)
        if runner != USUAL_RUNNER:
            told = f"This is what {USUAL_RUNNER} would send: what {runner} brings along is not in it."
            asked = structs.replace(asked, warnings=(*asked.warnings, told))
        return self.stored.preview(asked, at=datetime.now(UTC))

    def view_answer(self, turn: Turn) -> dict[str, object]:
        """A turn that was answered, as data."""
        reply = self.stored.turns()[-1].reply
        return view_answer(turn, reply.text if reply else "", turn.ledger.calls[-1], conversation=self.kept)

    def choose_model(self, model: str) -> "OpenChat":
        """The same conversation with another model, from its next message on.

        What the model lacks is an error before anything changes.
        """
        self.pool.name(model)
        self.find_post(model)
        suit = fit_window if self.stored.version else begin_settings
        fitting = suit(model, services=self.opener.services)
        self.stored.set({"model": model, **fitting})
        return replace(self, model=model)

    def cover(self, turn: Turn, *, read: int | None, prompt: int | None) -> Mapping[str, int]:
        """What of each layer was cached, where so many tokens of the whole prompt were read from the cache."""
        return cover_reported(turn, self.counter.measure(self.model), read=read, prompt=prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOpener:
    """Opens conversations of one store, one after another, over the same notes and providers."""

    backend: Backend
    pool: ProviderPool
    services: Services
    usual: Mapping[str, object]
    place: Workplace

    @property
    def conversations(self) -> Conversations:
        return Conversations(self.backend.store, self.backend.clock)

    def open(self, options: ChatOptions) -> OpenChat:
        """A conversation to talk in. What a model lacks, such as a key, is an error before anything is said."""
        name = _choose_chat(self.backend, options)
        stored, model = _choose_model(self.backend, name, options.model, usual=self.usual, services=self.services)
        if options.settings:
            stored.set(options.settings)
            warn_laxer(options.settings, self.services)
        opened = OpenChat(
            stored=stored,
            pool=self.pool,
            answer=options.answer,
            model=model,
            counter=self.backend.world.counter,
            begins=not stored.turns(),
            kept=None if options.store == UNKEPT else stored.id,
            store=options.store,
            opener=self,
            configure=lambda given: configure_chat({**self.usual, **given}, self.services),
        )
        if options.sends:
            opened.find_post()
            opened.check_summarizer()
        return opened


@contextmanager
def opened_to_talk(options: ChatOptions, progress: "Callable[[Progress], None]") -> Iterator[OpenChat]:
    """A conversation to talk in, and its store as long as that takes."""
    services = read_services()
    memory = find_part(services, talks=True)
    pool = _open_pool(options, progress, services=services)
    backend = open_backend(options.store or None, services=services, vault=options.vault, pool=pool, memory=memory)
    place: Workplace | None = None
    usual = _STICKY if options.sticky and not services.found.is_set("attachments") else {}
    backend = structs.replace(backend, configure=partial(_configure, backend.configure, usual)) if usual else backend
    try:
        place = open_workplace(
            services,
            vault=options.vault,
            allow=allow_write if can_ask() else None,
            book=find_book(services, memory),
            told=_tell_noted,
        )
        opener = ChatOpener(backend=backend, pool=pool, services=services, usual=usual, place=place)
        yield opener.open(options)
    finally:
        with undisturbed():
            _close_place(place)
            backend.store.close()


def _tell_noted(fact: "Fact") -> None:
    """Say what a model noted, and how to take it out again."""
    undo = f"lamella memory remove {fact.id}"
    tell(f"note: remembered: {show_line(fact.text)} (take it back: {undo})", err=True)


def _close_place(place: Workplace | None) -> None:
    """Give back the index of the notes, where somebody searched them, and end servers that were started."""
    if place is not None and place.notes is not None:
        place.notes.close()
    if place is not None and place.servers is not None:
        place.servers.close()


def _configure(configure: Configure, usual: Mapping[str, object], given: Mapping[str, object]) -> ChatRules:
    """What the settings of a conversation come to; what was written down for it comes before what is usual here."""
    return configure({**usual, **given})


def _offer_name(refused: UntrustedError) -> None:
    """Have a model's refusal say as well that it can be named, for this once; that is a yes as good as the other."""
    advice = refused.advice
    refused.hint = lambda door: (
        f"{advice if isinstance(advice, str) else advice(door)} Or name it again, with {door.option('model')} NAME."
    )


def find_waiting(stored: StoredChat, model: str | None = None) -> Turn:
    """The question that waits for its answer, with what its tools gave so far; an error if none does.

    Another model is asked it from its start.
    """
    turn = stored.take_up(model=model)
    if turn is None:
        raise CallError("No question waits for its answer.", hint="Ask something, or have the last one answered again.")
    return turn


def tell_demo(model: str) -> None:
    """Say what the demo model is, if that is the one."""
    if model == DEMO_MODEL:
        tell(DEMO_TOLD, err=True)


def greet(opened: OpenChat) -> None:
    """Say which conversation this is, with which model, and what was said in it last."""
    tell_demo(opened.model)
    turns = len(opened.stored.turns())
    stands = f"goes on after {tell_count(turns, 'turn')}" if turns else "is new"
    told = f"{show_line(opened.stored.name)} {stands}, with {show_line(opened.model)}."
    tell(f"{told} /help shows what else there is.", err=True)
    if turns:
        tell(_tell_last(opened), err=True)


def _tell_last(opened: OpenChat) -> str:
    """The last exchange, as far as it fits a glance."""
    last = opened.stored.turns()[-1]
    lines = show_lines(last.reply.text if last.reply else "").strip().splitlines()
    more = ["…"] if len(lines) > _GLANCE else []
    waits = [*tell_round(view_rounds(last, {})[-1])] if last.pending else []
    waits += [tell_waiting("/resume")] if last.reply is None else []
    return "\n".join((f"{PROMPT}{show_line(last.message.text)}", *lines[:_GLANCE], *more, *waits))


def _choose_chat(backend: Backend, options: ChatOptions) -> str:
    if options.chat is not None and not options.chat.strip():
        raise UsageError("The conversation's name is blank.", hint="Name it, or leave the name out for a new one.")
    if not options.last:
        return _find_name(backend, options.chat) if options.chat else _make_name(backend)
    if options.chat is not None:
        raise UsageError("--last excludes naming a conversation.", hint="Leave one of them out.")
    alive = Conversations(backend.store, backend.clock).list_alive()
    if not alive:
        raise CallError("There is no conversation yet.", hint=f"Begin one: {name_command('chat', store=options.store)}")
    return alive[0].name


def _find_name(backend: Backend, words: str) -> str:
    """The name of the conversation that is meant, by its name, key or title; else these words, for a new one."""
    found = find_chat(backend.store, words, beginnings=False)
    return words if found is None else found.name


def _make_name(backend: Backend) -> str:
    """A name that can be typed and that nobody has, erased conversations included."""
    taken = {listed.name for listed in backend.store.list_conversations()}
    while (name := f"{datetime.now(UTC):%Y-%m-%d}-{token_hex(2)}") in taken:
        pass
    return name


def _open_pool(
    options: ChatOptions, progress: "Callable[[Progress], None] | None", *, services: Services
) -> ProviderPool:
    remember = options.store != UNKEPT
    pool = open_pool(services=services, progress=progress, remember=remember, lasts=options.lasts)
    pool.name(options.model)
    summarizer = options.settings.get("summarizer")
    pool.name(summarizer if isinstance(summarizer, str) else None)
    return pool


def _choose_model(
    backend: Backend, chat: str, wished: str | None, *, usual: Mapping[str, object], services: Services
) -> tuple[StoredChat, str]:
    """The model that was asked for, else the one of the conversation or of the settings, else the demo model.

    A new conversation has what is usual here written down with it.
    """
    if wished is not None and not wished.strip():
        raise UsageError("--model is blank.", hint="Name a model, as in --model local, or leave --model out.")
    stored = StoredChat(backend, chat)
    known = _find_model(stored)
    model = wished or known or DEMO_MODEL
    if stored.version and model == known:
        return stored, model
    fitting = fit_window(model, services=services) if stored.version else begin_settings(model, services=services)
    begins = {} if stored.version else usual
    return StoredChat(backend, chat, {"model": model, **fitting, **begins}), model


def _find_model(stored: StoredChat) -> str | None:
    try:
        return stored.model_for(Ask(text=""))
    except CallError:
        return None
