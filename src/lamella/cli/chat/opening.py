"""Open a conversation for a chat: choose the conversation, its model and its vault."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from lamella import Turn
from lamella.cli.access import format_command
from lamella.cli.chat.input import PROMPT
from lamella.cli.consent import can_ask_user, confirm_write, retry_after_trust
from lamella.cli.interrupts import ignore_interrupts
from lamella.cli.output import (
    escape_lines,
    escape_to_short_line,
    format_count,
    print_text,
    warn_about_ignored_write_permissions,
)
from lamella.cli.prompt_tables import format_cut_answer, format_tool_round, format_unanswered_question_hint
from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.names import find_conversation_by_name, make_unused_name
from lamella.conversation.provider_pool import ProviderPool
from lamella.conversation.runner_context import DEFAULT_RUNNER, RunnerContext, RunRequest, get_runner, start_run
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import DEFAULT_ANSWER_TOKENS, SendContext, TurnEvent
from lamella.conversation.validation import check_answer_tokens
from lamella.errors import InvalidOperationError, SettingError, UntrustedError, UsageError
from lamella.ports import TokenizerRegistry
from lamella.runners.registry import RUNNERS, RUNNERS_WITHOUT_TOOLS
from lamella.schemas.answers import TurnAnswerJson, answer_to_json
from lamella.schemas.messages import rounds_to_json
from lamella.schemas.prompts import estimate_cached_tokens_by_layer
from lamella.wiring import (
    DEMO_MODEL,
    ResolvedSettings,
    ServiceContainer,
    choose_memory_renderer,
    default_settings_for,
    get_window_settings,
    make_memory_opener,
    mask_url_secrets,
    open_backend,
    open_pool,
    open_runner_context,
    read_services,
    requires_named_model,
    resolve_conversation_settings,
)

if TYPE_CHECKING:
    from lamella.cli.chat.output import AnswerDisplay
    from lamella.ports import Fact
    from lamella.providers.local import PromptProgress

DEMO_MODEL_NOTICE = (
    "local is a demo model (SmolLM2, 135 million parameters) that runs in this process, offline. "
    "It shows how the cache works; its answers are often wrong. For better answers use --model gguf:PATH, "
    "openai-compatible:URL#NAME, anthropic:NAME, openai:NAME or gemini:NAME."
)
MEMORY_STORE_URL = "memory:"
_STICKY_SETTINGS: Mapping[str, object] = {"attachments": "sticky"}
ResolveSettings = Callable[[Mapping[str, object]], ConversationSettings]
_MAX_PREVIEW_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The options of a command line that sends questions to a model.

    Without ``sends_request`` nothing is sent, so no API key is needed. ``expects_more_turns`` is False for a command
    that asks one question: the provider then stores no cache for later requests. ``settings`` are settings of the
    conversation by name. With ``sticky_attachments`` attachments stay attached until they are detached, unless the
    settings say otherwise.
    """

    store: str | None = None
    chat: str | None = None
    model: str | None = None
    vault: Path | None = None
    opens_last: bool = False
    max_answer_tokens: int | None = None
    sends_request: bool = True
    expects_more_turns: bool = True
    settings: Mapping[str, object] = field(default_factory=dict)
    sticky_attachments: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedConversation:
    """An opened conversation with its model and the providers that answer.

    ``is_new`` says that it has no turns yet. ``stored_id`` is its key, or None if it is not stored. ``store`` is the
    store that was named on the command line, if any. ``resolve_settings`` resolves the conversation's settings and
    their origins.
    """

    conversation: Conversation
    pool: ProviderPool
    max_answer_tokens: int | None
    model: str
    counter: TokenizerRegistry
    is_new: bool
    stored_id: str | None = None
    store: str | None = None
    opener: "ConversationOpener"
    resolve_settings: Callable[[Mapping[str, object]], ResolvedSettings]

    def get_send_context(self, model: str | None = None) -> SendContext:
        """Return the send context for a model, by default for the chosen one; another branch may use its own.

        An untrusted model is asked about at the terminal.
        """
        window = self.conversation.window
        name = model or self.model
        length = check_answer_tokens(
            self.max_answer_tokens,
            window=window,
            default=self.pool.default_answer_tokens.get(name, DEFAULT_ANSWER_TOKENS),
        )
        find = partial(
            self.pool.send_context_for,
            name,
            max_answer_tokens=length,
            window=None if self.max_answer_tokens is None else window,
        )
        try:
            return find()
        except UntrustedError as refused:
            _add_model_option_hint(refused)
            return retry_after_trust(refused, find)

    def model_option_value(self) -> str | None:
        """Return the model if a later command must name it again, with a password in its URL masked; None otherwise."""
        return mask_url_secrets(self.model) if requires_named_model(self.model, self.opener.services) else None

    def confirm_summarizer(self) -> None:
        """Ask the user to trust the model that writes summaries, if they did not name it themselves."""
        try:
            self.conversation.check_summarizer_is_trusted()
        except UntrustedError as refused:
            retry_after_trust(refused, self.conversation.check_summarizer_is_trusted)

    def run(self, request_or_turn: TurnRequest | Turn, *, model: str | None = None) -> AsyncGenerator[TurnEvent, None]:
        """Return the events of the answer to a turn request or to an unanswered turn, by its runner."""
        pending_turn = None if isinstance(request_or_turn, TurnRequest) else request_or_turn
        runner = (
            request_or_turn.runner
            if isinstance(request_or_turn, TurnRequest)
            else request_or_turn.envelope.prompt.turn_settings.runner
        )
        if (runner or self.conversation.default_runner) not in RUNNERS_WITHOUT_TOOLS:
            self.confirm_mcp_servers()
        run_request = RunRequest(
            conversation=self.conversation,
            turn_request=request_or_turn if isinstance(request_or_turn, TurnRequest) else None,
            turn=pending_turn,
            pending_calls=() if pending_turn is None else tuple(self.conversation.pending_tool_calls),
            send_context=self.get_send_context(model if pending_turn is None else pending_turn.envelope.model),
            limits=self.conversation.limits,
            runner_context=self.opener.runner_context,
            runners=RUNNERS,
        )
        return start_run(run_request, default=self.conversation.default_runner)

    def confirm_mcp_servers(self) -> None:
        """Ask the user to trust MCP servers that only a project file names, before their tools are used."""
        servers = self.opener.runner_context.mcp_servers
        if servers is None:
            return
        try:
            servers.check_servers_trusted()
        except UntrustedError as refused:
            retry_after_trust(refused, servers.check_servers_trusted)

    def preview(self, turn_request: TurnRequest) -> Turn:
        """Return what asking this would send.

        Only the runner ``chat`` can be previewed: other runners know what they add only when they run. A warning says
        so.
        """
        runner = turn_request.runner or self.conversation.default_runner
        get_runner(runner, RUNNERS)
        if runner != DEFAULT_RUNNER:
            note = f"This is the request of the runner {DEFAULT_RUNNER}; what {runner} adds is not shown."
            turn_request = structs.replace(turn_request, warnings=(*turn_request.warnings, note))
        return self.conversation.preview(turn_request, at=datetime.now(UTC))

    def answer_to_json(self, turn: Turn) -> TurnAnswerJson:
        """Return the body of an answered turn."""
        reply = self.conversation.turns()[-1].reply
        return answer_to_json(turn, reply.text if reply else "", turn.ledger.calls[-1], conversation_key=self.stored_id)

    def switch_model(self, model: str) -> "OpenedConversation":
        """Return the same conversation with another model, from its next message on.

        A missing API key or the like is an error before anything changes.
        """
        self.pool.trust_model(model)
        self.get_send_context(model)
        suit = get_window_settings if self.conversation.version else default_settings_for
        fitting = suit(model, services=self.opener.services)
        self.conversation.set(model=model, **fitting)
        return replace(self, model=model)

    def cached_tokens_by_layer(
        self, turn: Turn, *, reported_cached: int | None, prompt_tokens: int | None
    ) -> Mapping[str, int]:
        """Return how many tokens of each layer were cached, given the reported total of cached tokens."""
        return estimate_cached_tokens_by_layer(
            turn, self.counter.get_tokenizer(self.model), read=reported_cached, prompt=prompt_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOpener:
    """Opens conversations of one store, one after another, with the same vault and providers."""

    backend: Backend
    pool: ProviderPool
    services: ServiceContainer
    default_settings: Mapping[str, object]
    runner_context: RunnerContext

    @property
    def conversations(self) -> ConversationRepository:
        return ConversationRepository(self.backend.store, self.backend.clock)

    def open(self, options: ChatOptions) -> OpenedConversation:
        """Open a conversation; a missing API key or an untrusted model is an error before anything is sent."""
        name = _choose_chat_name(self.backend, options)
        conversation_log, model = _open_with_model(
            self.backend, name, options.model, defaults=self.default_settings, services=self.services
        )
        if options.settings:
            conversation_log.set(**options.settings)
            warn_about_ignored_write_permissions(options.settings, self.services)
        opened = OpenedConversation(
            conversation=conversation_log,
            pool=self.pool,
            max_answer_tokens=options.max_answer_tokens,
            model=model,
            counter=self.backend.adapters.counter,
            is_new=not conversation_log.turns(),
            stored_id=None if options.store == MEMORY_STORE_URL else conversation_log.id,
            store=options.store,
            opener=self,
            resolve_settings=lambda given: resolve_conversation_settings(
                {**self.default_settings, **given}, self.services
            ),
        )
        if options.sends_request:
            try:
                opened.get_send_context()
            except SettingError as error:
                if options.model is None and not opened.is_new:
                    _add_stored_model_hint(error, opened.model)
                raise
            opened.confirm_summarizer()
        return opened


@contextmanager
def open_for_chat(options: ChatOptions, output: "AnswerDisplay") -> Iterator[OpenedConversation]:
    """Open a conversation for a chat, and close its store, note index and MCP servers afterwards."""
    services = read_services()
    memory = choose_memory_renderer(services, is_interactive=True)
    pool = _open_pool(options, output.show_progress, services=services)
    backend = open_backend(
        options.store or None, services=services, vault=options.vault, pool=pool, render_memory=memory
    )
    runner_context: RunnerContext | None = None
    usual = _STICKY_SETTINGS if options.sticky_attachments and not services.resolved.is_set("attachments") else {}
    backend = (
        structs.replace(backend, resolve_settings=partial(_configure_conversation, backend.resolve_settings, usual))
        if usual
        else backend
    )
    try:
        runner_context = open_runner_context(
            services,
            vault=options.vault,
            allow=partial(confirm_write, output=output) if can_ask_user() else None,
            open_memory=make_memory_opener(services, memory),
            on_fact_saved=_print_saved_fact,
        )
        opener = ConversationOpener(
            backend=backend, pool=pool, services=services, default_settings=usual, runner_context=runner_context
        )
        yield opener.open(options)
    finally:
        # Stopping MCP servers takes seconds; a second Ctrl-C must not skip closing the store.
        with ignore_interrupts():
            _close_runner_context(runner_context)
            backend.store.close()


def _print_saved_fact(fact: "Fact") -> None:
    """Print a fact that a model saved, with the command that removes it."""
    undo = f"lamella memory remove {fact.id}"
    print_text(f"note: Saved to memory: {escape_to_short_line(fact.text)} (to undo: {undo})", err=True)


def _close_runner_context(context: RunnerContext | None) -> None:
    """Close the note index and stop MCP servers, if they were opened."""
    if context is not None and context.note_index is not None:
        context.note_index.close()
    if context is not None and context.mcp_servers is not None:
        context.mcp_servers.close()


def _configure_conversation(
    configure: ResolveSettings, defaults: Mapping[str, object], overrides: Mapping[str, object]
) -> ConversationSettings:
    """Resolve a conversation's settings; its stored settings override the defaults of the command line."""
    return configure({**defaults, **overrides})


def _add_model_option_hint(error: UntrustedError) -> None:
    """Add to a refusal's hint that naming the model with ``--model`` also allows it, for this time."""
    advice = error.raw_hint
    error.hint = lambda hints: (
        f"{advice if isinstance(advice, str) else advice(hints)} Or name the model yourself with {hints.option_hint('model')} NAME."
    )


def _add_stored_model_hint(error: SettingError, model: str) -> None:
    """Say in a hint that the conversation chose the model, perhaps one that only another program provides."""
    advice = error.raw_hint
    error.hint = lambda hints: (
        f"This conversation was last asked with {model}. Continue it in the program that provides this model, or choose "
        f"another with {hints.option_hint('model')} NAME. {advice if isinstance(advice, str) else advice(hints)}"
    )


def get_unanswered_turn(conversation_log: Conversation, model: str | None = None) -> Turn:
    """Return the unanswered turn with its tool results so far; raise ``InvalidOperationError`` if there is none.

    Another model starts the question from the beginning.
    """
    turn = conversation_log.reopen_pending_turn(model=model)
    if turn is None:
        raise InvalidOperationError("No unanswered question.", hint="Ask a question, or regenerate the last answer.")
    return turn


def print_demo_model_notice(model: str) -> None:
    """Print a notice if the model is the demo model."""
    if model == DEMO_MODEL:
        print_text(DEMO_MODEL_NOTICE, err=True)


def print_greeting(opened: OpenedConversation) -> None:
    """Print the conversation's name, its model and its last turn."""
    print_demo_model_notice(opened.model)
    turns = len(opened.conversation.turns())
    length = format_count(turns, "turn") if turns else "new"
    about = f"Conversation {escape_to_short_line(opened.conversation.name)} ({length}), model {escape_to_short_line(opened.model)}."
    print_text(f"{about} /help lists all commands.", err=True)
    if turns:
        print_text(_format_last_turn(opened), err=True)


def _format_last_turn(opened: OpenedConversation) -> str:
    """Return the last question and the first lines of its answer."""
    last = opened.conversation.turns()[-1]
    lines = escape_lines(last.reply.text if last.reply else "").strip().splitlines()
    more = ["…"] if len(lines) > _MAX_PREVIEW_LINES else []
    round_lines = [*format_tool_round(rounds_to_json(last, {})[-1])] if last.pending_round else []
    round_lines += [format_unanswered_question_hint("/resume", last)] if last.reply is None else []
    round_lines += [format_cut_answer("/resume")] if last.cut_reason is not None else []
    return "\n".join(
        (f"{PROMPT}{escape_to_short_line(last.message.text)}", *lines[:_MAX_PREVIEW_LINES], *more, *round_lines)
    )


def _choose_chat_name(backend: Backend, options: ChatOptions) -> str:
    if options.chat is not None and not options.chat.strip():
        raise UsageError(
            "The conversation name is blank.", hint="Give a name, or leave it out to start a new conversation."
        )
    if not options.opens_last:
        return (
            _resolve_name(backend, options.chat)
            if options.chat
            else make_unused_name(backend.store, today=datetime.now(UTC).date())
        )
    if options.chat is not None:
        raise UsageError("Use either --last or a conversation name, not both.", hint="Leave one of them out.")
    alive = ConversationRepository(backend.store, backend.clock).list_conversations()
    if not alive:
        raise InvalidOperationError(
            "No conversations yet.", hint=f"Start one: {format_command('chat', store=options.store)}"
        )
    return alive[0].name


def _resolve_name(backend: Backend, name_or_title: str) -> str:
    """Return the name of an existing conversation by its name, key or title; otherwise ``name_or_title`` for a new one."""
    found = find_conversation_by_name(backend.store, name_or_title, match_prefix=False)
    return name_or_title if found is None else found.name


def _open_pool(
    options: ChatOptions, progress: "Callable[[PromptProgress], None] | None", *, services: ServiceContainer
) -> ProviderPool:
    remember = options.store != MEMORY_STORE_URL
    pool = open_pool(
        services=services, progress=progress, remember_models=remember, is_stored=options.expects_more_turns
    )
    # A model that the user names needs no trust, so the pool must know which ones were named.
    pool.trust_model(options.model)
    summarizer = options.settings.get("summarizer")
    pool.trust_model(summarizer if isinstance(summarizer, str) else None)
    return pool


def _open_with_model(
    backend: Backend,
    chat: str,
    requested_model: str | None,
    *,
    defaults: Mapping[str, object],
    services: ServiceContainer,
) -> tuple[Conversation, str]:
    """Return the opened conversation and its model: the requested one, the conversation's, or the demo model.

    A new conversation also stores the defaults of the command line (``defaults``).
    """
    if requested_model is not None and not requested_model.strip():
        raise UsageError("--model is blank.", hint="Example: --model local. Or leave --model out.")
    conversation_log = Conversation.open(backend, chat)
    known = _last_model(conversation_log)
    model = requested_model or known or DEMO_MODEL
    if conversation_log.version and model == known:
        return conversation_log, model
    fitting = (
        get_window_settings(model, services=services)
        if conversation_log.version
        else default_settings_for(model, services=services)
    )
    begins = {} if conversation_log.version else defaults
    return Conversation.open(backend, chat, {"model": model, **fitting, **begins}), model


def _last_model(conversation_log: Conversation) -> str | None:
    try:
        return conversation_log.model_for(TurnRequest(text=""))
    except InvalidOperationError:
        return None
