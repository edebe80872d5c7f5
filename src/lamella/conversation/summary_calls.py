"""Summaries written by a model: the conversation's own model, or another one.

A request to the conversation's own model extends the last request, so most of it is cached. Each call is an auxiliary
call of the conversation. Its result is stored in the shared table of the store: another process that plans the same
compaction before the conversation continues gets the same text without paying again.

Async callers run the call on the event loop that sends. Sync callers use that loop from outside, or, if there is none,
a loop and connections of their own. So no connection is used by two loops, and a model in this process is used by one
loop at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from lamella.conversation.provider_pool import ProviderPool
from lamella.conversation.runner_context import send_auxiliary_call
from lamella.conversation.summaries import (
    MAX_PARALLEL_SUMMARIES,
    SummaryRequestBatch,
    iter_batches_until_timeout,
    summary_timeout_message,
    validate_summary_text,
)
from lamella.conversation.turn import ModelAnswer
from lamella.conversation.turn_runner import SendContext
from lamella.core.compaction.summaries import SummaryRequest, SummaryResult
from lamella.core.log.turn import BreakpointMode, ReasoningEffort
from lamella.core.messages import CacheBoundaries, ModelReply, ModelRequest, StopReason
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import AuthenticationError, LamellaError, UntrustedError
from lamella.ports import SharedTable

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation

# Records a call with its purpose and its time.
RecordCall = Callable[[ModelRequest, ModelAnswer, str, datetime], Awaitable[None]]
SAME_MODEL, NO_SUMMARIES = "same", "off"
SUMMARY_TIMEOUT = 120.0
# Tokens for the reasoning of a model that reasons before it writes, if the window has space for them.
_MAX_REASONING_TOKENS = 2_000
_EVENT_LOOP_BUSY = "it would hold up the event loop; send the question, and it is asked apart"
# How long a stored summary can be reused if the conversation does not continue.
_SUMMARY_RETENTION = timedelta(hours=1)
# Possible ends of a text that was cut off.
_SENTENCE_ENDS = ("\n", ". ", "。", "! ", "? ")


class SummaryModel(Struct, frozen=True, kw_only=True):
    """The model that writes summaries: the one of the conversation, another one, or none.

    ``format_author`` returns the author text that a summary block shows for a model.
    """

    setting: str
    format_author: Callable[[str], str] = str
    timeout: float = SUMMARY_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class _SummaryCall:
    """The model to call, its send context, and the function that records each call."""

    model: str
    send_context: SendContext
    record_call: RecordCall


class ModelSummaryFetcher:
    """Requests summaries for one conversation from a model and records each call."""

    def __init__(
        self,
        pool: ProviderPool,
        chat: "Conversation",
        summary_model: SummaryModel,
        *,
        shared_table: SharedTable | None = None,
    ) -> None:
        self._pool = pool
        self._chat = chat
        self._summary_setting = summary_model
        self._shared_table = shared_table

    def summary_model(self, model: str | None) -> str | None:
        """Return the model that writes summaries for a turn to ``model``, or None if summaries are off."""
        choice = self._summary_setting.setting
        return {SAME_MODEL: model, NO_SUMMARIES: None}.get(choice, choice)

    def check_model_is_trusted(self) -> None:
        """Raise an error if the summary model is named only by untrusted input."""
        if self._summary_setting.setting not in (SAME_MODEL, NO_SUMMARIES):
            self._pool.check_model_is_trusted(self._summary_setting.setting)

    async def fetch_async(self, batch: SummaryRequestBatch) -> None:
        """Fetch the summaries on the event loop that sends, over its connections."""

        async def note(request: ModelRequest, answer: ModelAnswer, purpose: str, at: datetime) -> None:
            record = partial(self._record_call, batch, request, answer, purpose=purpose, at=at)
            await self._pool.workers.run_uncancellable(record)

        await self._fetch_over_connections(batch, note)

    def fetch(self, batch: SummaryRequestBatch) -> None:
        """Fetch the summaries synchronously, but never in a thread whose event loop is running.

        The calls are recorded in the calling thread, because that thread may hold the lock of the conversation.
        """
        if _is_loop_running():
            _set_missing_summaries(batch, SummaryResult(failure=_EVENT_LOOP_BUSY))
            return
        made: list[tuple[ModelRequest, ModelAnswer, str, datetime]] = []

        async def note(request: ModelRequest, answer: ModelAnswer, purpose: str, at: datetime) -> None:
            made.append((request, answer, purpose, at))

        try:
            loop = self._pool.loop
            if loop is None:
                asyncio.run(self._fetch_over_connections(batch, note, own_connections=True))
            else:
                self._fetch_on_loop(loop, batch, note)
        finally:
            for request, answer, purpose, at in made:
                self._record_call(batch, request, answer, purpose=purpose, at=at)

    def _fetch_on_loop(
        self, loop: asyncio.AbstractEventLoop, batch: SummaryRequestBatch, record_call: RecordCall
    ) -> None:
        """Fetch on a loop of another thread, with a time limit, because that loop may itself wait for this thread."""
        future = asyncio.run_coroutine_threadsafe(self._fetch_over_connections(batch, record_call), loop)
        try:
            future.result(self._summary_setting.timeout * len(batch.requests))
        except (TimeoutError, CancelledError):
            future.cancel()
            _set_missing_summaries(batch, SummaryResult(failure=summary_timeout_message(self._summary_setting.timeout)))

    def _record_call(
        self, batch: SummaryRequestBatch, request: ModelRequest, answer: ModelAnswer, *, purpose: str, at: datetime
    ) -> None:
        self._chat.record_auxiliary_call(request, answer, purpose=purpose, after_message_id=batch.head, at=at)

    async def _fetch_over_connections(
        self, batch: SummaryRequestBatch, record_call: RecordCall, *, own_connections: bool = False
    ) -> None:
        """Fetch the needed summaries; with ``own_connections``, over connections that are opened and closed here."""
        model = self.summary_model(batch.model)
        assert model is not None, "whoever asks has looked who would be asked"
        try:
            if own_connections:
                async with self._pool.open_separate_send_context(model, max_answer_tokens=1) as send_context:
                    await self._fetch_all(
                        batch, _SummaryCall(model=model, send_context=send_context, record_call=record_call)
                    )
            else:
                send_context = self._pool.send_context_for(model, max_answer_tokens=1)
                await self._fetch_all(
                    batch, _SummaryCall(model=model, send_context=send_context, record_call=record_call)
                )
        except UntrustedError as error:
            # If the model of the conversation itself is untrusted, sending the turn raises that error anyway.
            if self._summary_setting.setting != SAME_MODEL:
                raise
            _set_missing_summaries(batch, _to_failed_summary(error))
        except LamellaError as error:
            _set_missing_summaries(batch, _to_failed_summary(error))

    async def _fetch_all(self, batch: SummaryRequestBatch, call: _SummaryCall) -> None:
        """Fetch every needed summary, a few at a time; after a timeout no more are requested."""
        here = self._pool.is_loop_independent(call.model)
        # A request that extends the last one is cached except for the final instruction, so it does not count.
        reads = sum(
            one.tokens for request in batch.requests if not request.standalone_messages for one in request.messages
        )
        if here and reads > batch.window // 2:
            # A model in this process reads about 8 ms per token (measured 2026-11-16), and the user is waiting.
            _set_missing_summaries(
                batch, SummaryResult(failure=f"a model in this process would take minutes to read {reads:,} tokens")
            )
            return
        # Such a model also answers one request at a time; requests in a batch would run into their timeout.
        step = 1 if here else MAX_PARALLEL_SUMMARIES
        for some in iter_batches_until_timeout(
            batch, step, timeout_message=summary_timeout_message(self._summary_setting.timeout)
        ):
            given = await asyncio.gather(*(self._fetch_one(request, batch, call) for request in some))
            batch.results.update(zip((request.key for request in some), given, strict=True))

    async def _fetch_one(
        self, request: SummaryRequest, batch: SummaryRequestBatch, call: _SummaryCall
    ) -> SummaryResult:
        """Return a stored summary, or request one now; a failure is not stored and is tried again next time."""
        shared_table, at = self._shared_table, call.send_context.clock.now()
        if shared_table is None:
            return await self._request_summary(request, batch, call)
        name = _summary_key(request, batch, call.model, conversation_key=self._chat.id)
        known = await call.send_context.workers.run(lambda: shared_table.get_many(name, at=at))
        if name in known:
            return SummaryResult(text=known[name], model=self._summary_setting.format_author(call.model))
        given = await self._request_summary(request, batch, call)
        if not given.failure:
            put = partial(
                shared_table.set,
                name,
                given.text,
                at=at,
                expires_at=at + _SUMMARY_RETENTION,
                conversation_key=self._chat.id,
            )
            await call.send_context.workers.run_uncancellable(put)
        return given

    async def _request_summary(
        self, summary_request: SummaryRequest, batch: SummaryRequestBatch, call: _SummaryCall
    ) -> SummaryResult:
        send_context, model = call.send_context, call.model
        request = make_summary_request(
            summary_request, batch, model, allow_reasoning=not self._pool.is_loop_independent(model)
        )

        async def keep(given: ModelAnswer) -> None:
            if send_context.on_answer is not None:
                await send_context.workers.run_uncancellable(send_context.on_answer)
            await call.record_call(request, given, summary_request.purpose, send_context.clock.now())

        try:
            async with asyncio.timeout(self._summary_setting.timeout):
                reply = await send_auxiliary_call(request, send_context, record_answer=keep)
        except TimeoutError:
            return SummaryResult(failure=summary_timeout_message(self._summary_setting.timeout))
        except LamellaError as error:
            return _to_failed_summary(error)
        except Exception as error:  # noqa: BLE001 - a third-party provider may fail in any way
            return SummaryResult(failure=f"the summariser failed with {type(error).__name__}")
        answer = validate_summary_text(_trim_to_complete_text(reply))
        return answer if answer.failure else answer._replace(model=self._summary_setting.format_author(model))


def _summary_key(request: SummaryRequest, batch: SummaryRequestBatch, model: str, *, conversation_key: str) -> str:
    """Return the key of a summary in the shared table: text, instruction, model and last message."""
    asked = hash_text(f"{request.key} {request.max_tokens} {request.messages[-1].text}")
    return f"summary:{conversation_key}:{batch.head}:{asked}:{model}"


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _set_missing_summaries(batch: SummaryRequestBatch, result: SummaryResult) -> None:
    """Set one answer for all summaries that are still missing."""
    batch.results.update((request.key, result) for request in batch.requests if request.key not in batch.results)


def make_summary_request(
    summary_request: SummaryRequest, batch: SummaryRequestBatch, model: str, *, allow_reasoning: bool
) -> ModelRequest:
    """Build the request for a summary.

    For the model that was asked last, it is the last request plus one instruction. Everything that its cache depends
    on stays the same: tools, reasoning effort and the breakpoint mode.
    """
    live, last = summary_request.standalone_messages and model == batch.model, batch.last_prompt
    messages = (
        summary_request.messages
        if live or not summary_request.standalone_messages
        else summary_request.standalone_messages
    )
    left = batch.window - sum(message.tokens for message in messages) - 2 * summary_request.max_tokens
    answer = summary_request.max_tokens + (max(min(_MAX_REASONING_TOKENS, left), 0) if allow_reasoning else 0)
    request = ModelRequest(model=model, messages=messages, max_output_tokens=answer)
    if not live or last is None:
        return request
    turn_settings = last.turn_settings
    return replace(
        request,
        tools=last.tools,
        conversation=last.conversation_id,
        cache_boundaries=CacheBoundaries(stable_messages=len(last.messages)),
        temperature=turn_settings.temperature,
        breakpoint_mode=None
        if turn_settings.cache_marks is BreakpointMode.EXPLICIT
        else turn_settings.cache_marks.value,
        effort=None
        if turn_settings.reasoning_effort is ReasoningEffort.DEFAULT
        else turn_settings.reasoning_effort.value,
    )


def _trim_to_complete_text(reply: ModelReply) -> str:
    """Return the summary text; a text that was cut off ends at its last complete line or sentence."""
    text = reply.text.strip()
    if reply.stop not in (StopReason.LENGTH, StopReason.CONTEXT_WINDOW):
        return text
    ends = max(text.rfind(end) + len(end) if end in text else 0 for end in _SENTENCE_ENDS)
    return text[:ends].strip()


def _to_failed_summary(error: LamellaError) -> SummaryResult:
    """Return the reason why there is no summary.

    It does not contain the error message, which may have a URL with a key in it: receipts store this text.
    """
    match error:
        case UntrustedError():
            return SummaryResult(failure="nobody here has named the model that would write it")
        case AuthenticationError():
            return SummaryResult(failure="the model that would write it has no key, or its key is refused")
        case _:
            return SummaryResult(failure=f"the summariser failed with {error.code}")
