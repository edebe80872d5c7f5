"""Pools of providers, and keep-alives.

``ProviderPool`` opens each provider with its first turn, reuses it, and closes it with the pool.
``RestrictedProviderPool`` is for clients of a server. ``keep_alive`` sends the last request again just before its
cache entry expires, as long as that pays. Each keep-alive is recorded as a call with its cost; the caller cancels the
task when the user asks something.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from lamella.conversation.expired_cache import KeepAlivePlan
from lamella.conversation.runner_context import send_auxiliary_call
from lamella.conversation.stream import preview_cache_usage
from lamella.conversation.threads import Workers
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnLedger
from lamella.conversation.turn_runner import RetryPolicy, SendContext
from lamella.core.ledger.entry import cached_tokens_by_layer
from lamella.core.messages import ModelRequest
from lamella.core.values import replace
from lamella.errors import LamellaError
from lamella.ports import Clock, ModelProvider

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation


class ProviderResolver(Protocol):
    """Opens the provider of a model.

    ``is_named`` is True if the user or the program named the model, not only a stored conversation or a request.
    """

    def __call__(self, model: str, *, is_named: bool) -> ModelProvider: ...


class AnswerListener(Protocol):
    """Is called each time a model has answered; ``is_named`` has the same meaning as for ``ProviderResolver``."""

    def __call__(self, model: str, *, is_named: bool) -> None: ...


def _accept_every_model(model: str, *, is_named: bool) -> None:
    del model, is_named


def _is_bound_to_event_loop(_model: str) -> bool:
    return False


class ProviderPool:
    """Providers by model. Connections belong to the event loop on which they were opened.

    - ``fixed_provider`` is a provider that serves every model; no other provider is opened then.
    - ``retry_policy`` is the retry policy of all providers.
    - ``on_answer`` is called each time a model has answered.
    - ``check_model_is_trusted`` raises an error for a model that may not be used.
    - ``is_loop_independent`` returns whether the provider of a model may be used from any event loop.
    - ``default_answer_tokens`` are default answer lengths in tokens, by model.
    """

    def __init__(
        self,
        open_provider: ProviderResolver,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        jitter: Callable[[], float],
        fixed_provider: ModelProvider | None = None,
        retry_policy: RetryPolicy | None = None,
        on_answer: AnswerListener | None = None,
        check_model_is_trusted: AnswerListener = _accept_every_model,
        is_loop_independent: Callable[[str], bool] = _is_bound_to_event_loop,
        default_answer_tokens: Mapping[str, int] | None = None,
    ) -> None:
        self._open_provider = open_provider
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._fixed_provider = fixed_provider
        self._retry_policy = retry_policy or RetryPolicy()
        self._on_answer = on_answer
        self._check_model = check_model_is_trusted
        self.is_loop_independent = is_loop_independent
        # Default answer length in tokens by model. Models without an entry use the general default.
        self.default_answer_tokens = default_answer_tokens or {}
        # The event loop from which something was sent last.
        self._loop: asyncio.AbstractEventLoop | None = None
        self.workers = Workers()
        self._providers_by_model: dict[str, ModelProvider] = {}
        self._trusted_models: set[str] = set()

    def trust_model(self, model: str | None) -> None:
        """Record a model that the user or the program named, so that API keys may be sent to its provider."""
        if model is not None:
            self._trusted_models.add(model)

    def check_model_is_trusted(self, model: str) -> None:
        """Raise an error if the model is named only by untrusted input; no provider is opened."""
        if self._fixed_provider is None:
            self._check_model(model, is_named=model in self._trusted_models)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the event loop on which providers are used, or None if it is not running."""
        return self._loop if self._loop is not None and self._loop.is_running() else None

    @asynccontextmanager
    async def open_separate_send_context(
        self, model: str, *, max_answer_tokens: int
    ) -> AsyncGenerator[SendContext, None]:
        """Yield a send context for another event loop, with its own connections, which are closed at the end."""
        if self._fixed_provider is not None or (model in self._providers_by_model and self.is_loop_independent(model)):
            provider = self._providers_by_model[model] if self._fixed_provider is None else self._fixed_provider
            yield self._build_send_context(provider, model, max_answer_tokens=max_answer_tokens, window=None)
            return
        provider = self._open_provider(model, is_named=model in self._trusted_models)
        try:
            yield self._build_send_context(provider, model, max_answer_tokens=max_answer_tokens, window=None)
        finally:
            await provider.close()

    def send_context_for(self, model: str, *, max_answer_tokens: int, window: int | None = None) -> SendContext:
        """Return the send context for a model.

        With ``window``, requests are rejected if the answer might not fit into it.
        """
        # The caller sends from the event loop that is running now, if there is one.
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        # Compare with None: a provider may define ``__len__`` and be falsy.
        provider = self._fixed_provider if self._fixed_provider is not None else self._get_or_open(model)
        return self._build_send_context(provider, model, max_answer_tokens=max_answer_tokens, window=window)

    def _build_send_context(
        self, provider: ModelProvider, model: str, *, max_answer_tokens: int, window: int | None
    ) -> SendContext:
        return SendContext(
            provider=provider,
            clock=self._clock,
            sleep=self._sleep,
            jitter=self._jitter,
            workers=self.workers,
            retry_policy=self._retry_policy,
            max_answer_tokens=max_answer_tokens,
            window=window,
            model=model,
            on_answer=partial(self._on_answer, model, is_named=model in self._trusted_models)
            if self._on_answer
            else None,
        )

    def _get_or_open(self, model: str) -> ModelProvider:
        if model not in self._providers_by_model:
            self._providers_by_model[model] = self._open_provider(model, is_named=model in self._trusted_models)
        return self._providers_by_model[model]

    async def with_provider_forecast(self, preview: BuiltTurn) -> BuiltTurn:
        """Return a preview with the cache usage that its provider predicts, as it will be predicted when it is sent.

        A model in this process knows its cache; for others the prediction of the ledger stays. No connection is opened.
        """
        model = preview.envelope.model
        provider = None if model is None else self._find_open_or_local_provider(model)
        if provider is None or model is None:
            return preview
        usage = await preview_cache_usage(provider, preview.build_model_request(model=model, max_answer_tokens=1))
        if usage is None:
            return preview
        envelope = preview.envelope
        by_layer = cached_tokens_by_layer(envelope, usage.read, envelope.prompt.tokenizer)
        entry = replace(preview.ledger, predicted_usage=usage, cached_by_layer=by_layer)
        return replace(preview, turn_ledger=TurnLedger(entry=entry, envelope=envelope))

    def _find_open_or_local_provider(self, model: str) -> ModelProvider | None:
        """Return the provider of a model if it is open, or if it runs in this process and can be opened."""
        known = self._fixed_provider if self._fixed_provider is not None else self._providers_by_model.get(model)
        if known is not None or not self.is_loop_independent(model):
            return known
        try:
            return self._get_or_open(model)
        except LamellaError:
            # The error is shown when the message is sent.
            return None

    async def close(self) -> None:
        """Close all providers that this pool opened."""
        while self._providers_by_model:
            _, provider = self._providers_by_model.popitem()
            await provider.close()


class RestrictedProviderPool(ProviderPool):
    """A pool for clients of a server: only models that the operator allowed are trusted.

    So a client cannot have an API key sent to a host that the operator neither named nor confirmed.
    """

    def allow_model(self, model: str) -> None:
        """Allow clients to use a model that the operator named."""
        self._trusted_models.add(model)

    def trust_model(self, model: str | None) -> None:
        """Do nothing: a model named by a client does not become trusted."""

    def send_context_for(self, model: str, *, max_answer_tokens: int, window: int | None = None) -> SendContext:
        """Return the send context for a model, after checking that the model is allowed."""
        self.check_model_is_trusted(model)
        return super().send_context_for(model, max_answer_tokens=max_answer_tokens, window=window)


# Keep-alives.


async def keep_alive(
    chat: "Conversation", send_context_for: Callable[[str], SendContext], *, once: bool = False
) -> int:
    """Send the last request again each time it is due, up to the configured number, and return the count.

    The last request is that of an answered question, or one whose tool calls await their outputs. It ends early if the
    next one would not pay, if the cache expired before it could be sent, or if the conversation continued.
    ``send_context_for`` returns the send context for a model. With ``once`` it does not wait: it sends one keep-alive if
    that is due now, regardless of the settings. If a keep-alive for this conversation is already running, it returns 0.
    """
    if chat.is_kept_alive:
        return 0
    chat.is_kept_alive = True
    try:
        return await (_send_keep_alive(chat, send_context_for) if once else _keep_alive_loop(chat, send_context_for))
    finally:
        chat.is_kept_alive = False


async def _keep_alive_loop(chat: "Conversation", send_context_for: Callable[[str], SendContext]) -> int:
    head, made = chat.head, 0
    while made < chat.max_keep_alives:
        request = chat.build_keep_alive_request()
        if request is None or chat.head != head:
            break
        send_context = send_context_for(request.model)
        due = await send_context.workers.run(partial(chat.plan_keep_alive, at=send_context.clock.now()))
        if due is None:
            break
        await send_context.sleep(max(0.0, (due.due_at - send_context.clock.now()).total_seconds()))
        # Check again after sleeping: the computer may have been suspended past the due time.
        check = partial(_plan_next_keep_alive, chat, send_context, head, request=request)
        if await send_context.workers.run(check) is None:
            break
        await _send_keep_alive_and_record_it(chat, request, send_context, head=head)
        made += 1
    return made


async def _send_keep_alive(chat: "Conversation", send_context_for: Callable[[str], SendContext]) -> int:
    """Send one keep-alive if it is due now and pays, regardless of the settings; return how many were sent."""
    request = chat.build_keep_alive_request()
    if request is None:
        return 0
    send_context, head = send_context_for(request.model), chat.head
    due = await send_context.workers.run(partial(_plan_next_keep_alive, chat, send_context, head, request=request))
    if due is None or due.due_at > send_context.clock.now():
        return 0
    await _send_keep_alive_and_record_it(chat, request, send_context, head=head)
    return 1


def _plan_next_keep_alive(
    chat: "Conversation", send_context: SendContext, head: str, *, request: ModelRequest
) -> KeepAlivePlan | None:
    """Return the next keep-alive if the conversation has not continued after ``request``.

    Between two turns the conversation is read again, because another process that has it open may have sent a keep-alive
    too.
    """
    if chat.head != head:
        # A turn is being sent. Do not reload the conversation during it.
        return None
    if chat.pending_tool_calls:
        # The question stays the head while a turn calls tools, but each request has more messages.
        now = chat.build_keep_alive_request()
        is_same = now is not None and len(now.messages) == len(request.messages)
        return chat.plan_keep_alive(at=send_context.clock.now()) if is_same else None
    if chat.build_keep_alive_request() is None:
        return None
    chat.reload()
    return chat.plan_keep_alive(at=send_context.clock.now()) if chat.head == head else None


async def _send_keep_alive_and_record_it(
    chat: "Conversation", request: ModelRequest, send_context: SendContext, *, head: str
) -> None:
    # The lifetime of a cache entry starts when the request is sent, not when it is answered.
    started = send_context.clock.now()

    async def note(answer: ModelAnswer) -> None:
        def write() -> None:
            if send_context.on_answer is not None:
                send_context.on_answer()
            chat.record_keep_alive(request, answer, after_message_id=head, at=started)

        await send_context.workers.run_uncancellable(write)

    await send_auxiliary_call(request, send_context, record_answer=note)
