"""Models in this process: llama.cpp's server as an engine, and the provider that uses it.

``LocalProvider`` is the provider, and ``LlamaServer`` runs a loaded model. ``LlamaCacheState`` models the engine's
cache token by token, to predict how much of the next prompt it will serve; ``CacheTrackingLlamaServer`` keeps it up to
date. ``RepetitionDetector`` stops a small model that repeats itself. ``render_rounds_as_text`` renders tool rounds as
plain messages, because the templates of small models reject or drop tool messages.

The engine has one slot with the tokens of the last prompt and its answer. A new prompt is served as far as its
beginning equals the slot, except its last token, which must be computed. If saved prompts are enabled
(``saves_prompts``), the engine first saves the slot when a prompt would lose more than half of it, and restores a saved
prompt that fits better. These are the rules of llama.cpp's server for models that attend to their whole window. Other
models may be served less.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from secrets import token_urlsafe
from threading import Event
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Delta, Message, ModelRequest, Role, StopDelta, StopReason, ToolCall, Usage
from lamella.core.values import replace as replace_provider
from lamella.errors import ModelNotFoundError, SdkNotInstalledError, install_hint
from lamella.profiles import ModelProfile
from lamella.providers.connection import ErrorResponse, RequestTarget, error_from_response, invalid_answer_error
from lamella.providers.facts.others import LOCAL_PROFILE
from lamella.providers.openai_chat import CompletionStreamReader, build_request
from lamella.providers.wire import Body, Fields, get_count_at, get_fields_at, get_items_at, get_text_at
from lamella.tokenizers.gguf import load_special_token_escaper
from lamella.tokenizers.weights import (
    LOCAL_MODEL_NAME,
    SMOLLM2,
    WeightsPackage,
    get_verified_weights_path,
    locate_weights,
)

Tokens = tuple[int, ...]

# As configured in the engine: if the slot has more than this share of the prompt, saved prompts are not searched.
SLOT_SIMILARITY = 0.5
# As in the engine: the shares of their tokens that the slot and a saved prompt must have in common with the prompt.
_MIN_SLOT_OVERLAP = 0.5
_MIN_SAVED_OVERLAP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheForecast:
    """The number of tokens of a prompt, and how many of them are cached.

    ``cached_tokens`` is a lower bound if ``is_exact`` is false, because an earlier answer was not fully seen.
    """

    prompt_tokens: int
    cached_tokens: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCacheState:
    """The engine's slot and its saved prompts (``saved_prompts``).

    The slot contains ``cached_tokens`` tokens; ``slot`` has the known ones. ``is_exact`` is whether these are
    all that can matter for the next prompt.
    """

    slot: Tokens = ()
    cached_tokens: int = 0
    is_exact: bool = True
    saved_prompts: tuple[Tokens, ...] = ()
    saves_prompts: bool = False

    def forecast_cached_tokens(self, prompt: Tokens) -> CacheForecast:
        """Return how many tokens of a prompt the cache will serve."""
        seated = self.with_prepared_slot(prompt)
        shared = common_prefix_length(seated.slot, prompt)
        exact = seated.is_exact or shared < len(seated.slot)
        return CacheForecast(
            prompt_tokens=len(prompt), cached_tokens=min(shared, max(len(prompt) - 1, 0)), is_exact=exact
        )

    def with_prepared_slot(self, prompt: Tokens) -> "LlamaCacheState":
        """Return the cache after the engine has prepared its slot for a prompt, before the prompt is processed."""
        shared = common_prefix_length(self.slot, prompt)
        stays = shared > SLOT_SIMILARITY * len(prompt) and shared >= _MIN_SLOT_OVERLAP * self.cached_tokens
        if not self.saves_prompts or stays:
            return self
        return self._with_slot_saved()._with_best_saved_prompt_restored(prompt)

    def after_answer(self, tokens: Tokens, *, cached_tokens: int, is_exact: bool = True) -> "LlamaCacheState":
        """Return the cache after a prompt and its answer (``tokens``); the engine kept ``cached_tokens`` of them."""
        return replace(self, slot=tokens[:cached_tokens], cached_tokens=cached_tokens, is_exact=is_exact)

    def _with_slot_saved(self) -> "LlamaCacheState":
        """Return the cache after the engine has saved its slot. Saved prompts that are prefixes of it are dropped."""
        if not self.slot or any(common_prefix_length(self.slot, kept) == len(self.slot) for kept in self.saved_prompts):
            return self
        others = tuple(kept for kept in self.saved_prompts if common_prefix_length(self.slot, kept) < len(kept))
        return replace(self, saved_prompts=(*others, self.slot))

    def _with_best_saved_prompt_restored(self, prompt: Tokens) -> "LlamaCacheState":
        """Return the cache after the engine has restored the saved prompt that fits best, if one fits better."""
        best, shared = self.slot, common_prefix_length(self.slot, prompt)
        kept_share = shared / len(self.slot) if self.slot else -1.0
        for kept in self.saved_prompts:
            fits = common_prefix_length(kept, prompt)
            if fits > shared and fits / len(kept) > max(kept_share, 0.0) and fits / len(kept) >= _MIN_SAVED_OVERLAP:
                best, shared, kept_share = kept, fits, fits / len(kept)
        if best is self.slot:
            return self
        return replace(
            self,
            slot=best,
            cached_tokens=len(best),
            is_exact=True,
            saved_prompts=tuple(kept for kept in self.saved_prompts if kept is not best),
        )


def common_prefix_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two token sequences."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


# The engine: llama.cpp's own server inside this process.

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.005
_TEMPLATE_PATH = "/apply-template"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaServerOptions:
    """The options of the engine. ``window`` is in tokens.

    ``saved_prompts_mib`` is how many MiB of memory saved prompts of other conversations may use. The memory is
    allocated only when there are any, and 0 keeps only the last prompt. ``batch_size`` is how many tokens are processed
    between two progress reports.
    """

    window: int = 8_192
    threads: int = 1
    saved_prompts_mib: int = 512
    batch_size: int = 256


class LlamaServerError(Exception):
    """An error response of the engine: its status, its kind and its message."""

    def __init__(self, *, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class LlamaServer:
    """A loaded model.

    Loading takes a second and as much memory as the weights have. ``close`` frees the memory.
    """

    def __init__(self, weights: Path, options: LlamaServerOptions) -> None:
        # The server listens on the loopback interface, where any program or web page could call it without a key.
        self._key = token_urlsafe()
        self._server = _start_llama_server(weights, options, api_key=self._key)
        self.address = urlsplit(self._server.listening_address).netloc
        self.window = int(self._get_slot()["n_ctx"])

    def chat(self, body: Fields, on_chunk: Callable[[Fields], bool]) -> None:
        """Answer a chat request. ``on_chunk`` gets every chunk and stops the answer by returning true."""
        refusals: list[Fields] = []

        def heard(chunk: Fields) -> bool:
            if "error" in chunk:
                refusals.append(chunk)
                return True
            return on_chunk(chunk)

        try:
            self._server.handle_chat_completions(dict(body), heard)
        except (RuntimeError, ValueError) as error:
            # The server raises for content that it cannot turn into a prompt, such as images.
            raise LlamaServerError(status=400, kind="invalid_request_error", message=str(error)) from error
        if refusals:
            raise _to_engine_error(refusals[0], 500)

    def tokenize_request(self, body: Fields) -> tuple[int, ...]:
        """Return the tokens of a chat request's prompt, made with the model's own template and vocabulary."""
        return self.tokenize(str(self._send_to_engine(_TEMPLATE_PATH, body)["prompt"]), adds_start_token=True)

    def tokenize(self, text: str, *, adds_start_token: bool = False) -> tuple[int, ...]:
        """Return the tokens of a text; ``adds_start_token`` adds the start token that the vocabulary requires."""
        return tuple(
            self._send_to_engine(
                "/tokenize", {"content": text, "add_special": adds_start_token, "parse_special": True}
            )["tokens"]
        )

    def wait_and_count_cached_tokens(self) -> int:
        """Wait until the engine is idle and return how many tokens its cache contains.

        They are tokens of the last prompt and of its answer.
        """
        while (slot := self._get_slot())["is_processing"]:
            time.sleep(_POLL_SECONDS)
        return int(slot["n_prompt_tokens"])

    def close(self) -> None:
        self._server = None

    def _get_slot(self) -> Fields:
        slots = self._send_to_engine("/slots", None)
        first: Fields = slots[0]
        return first

    def _send_to_engine(self, path: str, body: Fields | None) -> Any:  # noqa: ANN401 - any JSON
        connection = HTTPConnection(self.address, timeout=_TIMEOUT_SECONDS)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(
                "GET" if body is None else "POST", path, None if body is None else _encode_json(body), headers
            )
            answer = connection.getresponse()
            found = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise LlamaServerError(status=500, kind="server_error", message=f"{path}: {error}") from error
        finally:
            connection.close()
        if answer.status == 200:
            return found
        refusal = _to_engine_error(found, answer.status)
        # If no prompt can be built, the request is at fault, although the server reports an error of its own.
        raise (
            LlamaServerError(status=400, kind=refusal.kind, message=refusal.message)
            if path == _TEMPLATE_PATH
            else refusal
        )


def _encode_json(body: Fields) -> bytes:
    return json.dumps(dict(body)).encode()


def _to_engine_error(answer: object, status: int) -> LlamaServerError:
    error = answer.get("error") if isinstance(answer, Mapping) else None
    fields: Fields = error if isinstance(error, Mapping) else {}
    code = fields.get("code")
    return LlamaServerError(
        status=code if isinstance(code, int) else status,
        kind=str(fields.get("type", "server_error")),
        message=str(fields.get("message", answer)),
    )


def _start_llama_server(weights: Path, options: LlamaServerOptions, *, api_key: str) -> Any:  # noqa: ANN401 - no types
    # Threads that wait actively made answers five to ten times slower on two busy cores (2026-11-15). The engine's
    # runtime reads this variable once, at import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from xllamacpp import CommonParams, Server
    except ImportError as error:
        raise SdkNotInstalledError("The package xllamacpp is not installed.", hint=install_hint("local")) from error
    params = CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_batch = options.window, options.batch_size
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = options.saved_prompts_mib
    # With the engine's default of 0.1, the request for a title would take over the slot of the conversation that the
    # title is for, since both start with the same instructions.
    params.slot_prompt_similarity = SLOT_SIMILARITY
    # One slot, so that chance does not decide which conversation finds which cache contents.
    params.n_parallel = 1
    params.verbosity = 0
    params.api_keys = [api_key]
    params.endpoint_slots = True
    params.ui = False
    try:
        return Server(params)
    except RuntimeError as error:
        size = weights.stat().st_size / 1e6
        raise ModelNotFoundError(
            f"llama.cpp cannot load {weights} ({size:,.0f} MB): {error}",
            hint="The file may be cut off or of a kind this version does not know, or memory may be short. "
            "Fetch it again, or choose a smaller model or window.",
        ) from error


# The engine with its cache contents tracked: after each answer it is known which tokens the cache has.

# A character has at most four bytes, and each byte may be a token, so an incomplete character lacks at most three.
_MAX_MISSING_BYTES = 3


class CacheTrackingLlamaServer:
    """An engine whose cache contents are tracked. It handles one request at a time, from one thread."""

    def __init__(self, weights: Path, options: LlamaServerOptions) -> None:
        self._engine = LlamaServer(weights, options)
        self._cache = LlamaCacheState(saves_prompts=options.saved_prompts_mib != 0)
        self.window = self._engine.window

    def forecast(self, body: Fields) -> CacheForecast:
        """Return how many tokens of a request the cache will serve."""
        return self._cache.forecast_cached_tokens(self._engine.tokenize_request(body))

    def answer(self, body: Fields, on_chunk: Callable[[Fields], bool]) -> None:
        """Answer a request. ``on_chunk`` gets every chunk and stops the answer by returning true."""
        prompt = self._engine.tokenize_request(body)
        seated = self._cache.with_prepared_slot(prompt)
        heard = AnswerTokens()

        def take(chunk: Fields) -> bool:
            heard.feed(chunk)
            return on_chunk(chunk)

        try:
            self._engine.chat(body, take)
        finally:
            cached_tokens = self._engine.wait_and_count_cached_tokens()
            self._cache = (
                self._cache_after_answer(seated, prompt, heard, cached_tokens=cached_tokens)
                if heard.has_started
                else seated
            )

    def close(self) -> None:
        self._engine.close()

    def _cache_after_answer(
        self, prepared: LlamaCacheState, prompt: Tokens, answer: "AnswerTokens", *, cached_tokens: int
    ) -> LlamaCacheState:
        """Return the cache after an answer, with the answer's tokens as far as they can be determined."""
        answer_tokens = self._recover_tokens(answer)
        if cached_tokens <= len(prompt) or answer.has_all_reusable_tokens(answer_tokens):
            return prepared.after_answer(prompt + answer_tokens, cached_tokens=cached_tokens)
        # The engine's parser hides some tokens, such as the tags around reasoning. Tokenizing the text recovers them if
        # the number of tokens fits.
        text = self._engine.tokenize(answer.text)
        if answer.has_all_reusable_tokens(text):
            return prepared.after_answer(prompt + text, cached_tokens=cached_tokens)
        return prepared.after_answer(prompt, cached_tokens=cached_tokens, is_exact=False)

    def _recover_tokens(self, answer: "AnswerTokens") -> Tokens:
        """Return the answer's tokens. For a character of several tokens the engine reports only the last of them."""
        tokens: list[int] = []
        for token, text in answer.tokens:
            parts = (token,) if text.isascii() else self._engine.tokenize(text)
            tokens += parts if parts[-1:] == (token,) else (token,)
        return tuple(tokens)


class AnswerTokens:
    """The tokens of an answer, collected from its chunks."""

    def __init__(self) -> None:
        self.tokens: list[tuple[int, str]] = []
        self.text = ""
        self.has_started = False
        self._finish_reason = ""
        self._output_tokens = 0
        self._is_plain_text = True

    def has_all_reusable_tokens(self, tokens: Tokens) -> bool:
        """Return whether ``tokens`` has all tokens that the next prompt could continue from.

        - After a normal end, only the token that ends an answer is not reported.
        - After a cut by length, the tokens of an incomplete last character are not reported.
        - After a stop by the caller, the engine may contain unreported tokens. If none are reported, as with
          tools, the text does not show which tokens they were.
        """
        match self._finish_reason:
            case "":
                return bool(self.tokens) or not self.text
            case "length":
                return (
                    self._output_tokens - (_MAX_MISSING_BYTES if self._is_plain_text else 0)
                    <= len(tokens)
                    <= self._output_tokens
                )
            case _:
                return len(tokens) == self._output_tokens - 1

    def feed(self, chunk: Fields) -> None:
        """Add one chunk."""
        self.has_started = True
        self._output_tokens = get_count_at(get_fields_at(chunk, "usage"), "completion_tokens") or self._output_tokens
        for choice in get_items_at(chunk, "choices")[:1]:
            delta = get_fields_at(choice, "delta")
            self.text += get_text_at(delta, "content")
            self._is_plain_text &= not delta.get("reasoning_content") and not delta.get("tool_calls")
            self._finish_reason = get_text_at(choice, "finish_reason") or self._finish_reason
            for entry in get_items_at(get_fields_at(choice, "logprobs"), "content"):
                self.tokens.append((get_count_at(entry, "id") or 0, get_text_at(entry, "token")))


# A section counts as repetition after this many occurrences in a row. A long section needs fewer. Shorter sections are
# table lines, dots or laughter. With longer ones the answer ends before the repetition would be noticed.
_MIN_REPEATS, _MIN_LONG_REPEATS, _LONG_REPEAT_LENGTH = 4, 3, 40
_MIN_REPEAT_LENGTH, _MAX_REPEAT_LENGTH = 12, 300

_TWO_WORDS = re.compile(r"\w\W+\w")


class RepetitionDetector:
    """Watches a streamed answer for repetition, chunk by chunk."""

    def __init__(self) -> None:
        self._tail = ""
        self._output_tokens = 0
        self._progress: Fields = {}

    def feed(self, chunk: Fields) -> Fields | None:
        """Add a chunk. Return a final chunk with the usage once the answer repeats itself, and None before that."""
        self._progress = get_fields_at(chunk, "prompt_progress") or self._progress
        for choice in get_items_at(chunk, "choices")[:1]:
            text = get_text_at(get_fields_at(choice, "delta"), "content")
            self._output_tokens += len(get_items_at(get_fields_at(choice, "logprobs"), "content")) or bool(text)
            self._tail = (self._tail + text)[-_MIN_REPEATS * _MAX_REPEAT_LENGTH :]
            if text and is_repeating(self._tail):
                return {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": self._usage()}
        return None

    def _usage(self) -> Fields:
        total, cached = get_count_at(self._progress, "total"), get_count_at(self._progress, "cache")
        return {
            "prompt_tokens": total,
            "completion_tokens": self._output_tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


def is_repeating(text: str) -> bool:
    """Return whether a text ends with the same words several times in a row."""
    for length in range(_MIN_REPEAT_LENGTH, min(_MAX_REPEAT_LENGTH, len(text) // _MIN_LONG_REPEATS) + 1):
        stretch = text[-length:]
        if text.endswith(
            stretch * (_MIN_LONG_REPEATS if length >= _LONG_REPEAT_LENGTH else _MIN_REPEATS)
        ) and _TWO_WORDS.search(stretch):
            return True
    return False


# Tool rounds as plain messages.


def render_rounds_as_text(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without tool calls.

    The assistant's text names the calls. All results of a round follow in one user message.
    """
    rendered: list[Message] = []
    names: dict[str | None, str] = {}
    before: Role | None = None
    for message in messages:
        names = {call.id: call.name for call in message.calls} or names
        if message.role is Role.TOOL:
            text = _render_result(message, names.get(message.call_id, message.call_id or "tool"))
            if before is Role.TOOL:
                # Many templates reject two consecutive messages of the same role.
                rendered[-1] = Message(role=Role.USER, pieces=(*rendered[-1].pieces, "\n\n", text))
            else:
                rendered.append(Message(role=Role.USER, pieces=(text,)))
        else:
            rendered.append(_render_calls(message) if message.calls else message)
        before = message.role
    return tuple(rendered)


def _render_calls(message: Message) -> Message:
    parts = [message.text] if message.text.strip() else []
    return Message(role=Role.ASSISTANT, pieces=("\n\n".join((*parts, *map(_render_call, message.calls))),))


def _render_call(call: ToolCall) -> str:
    return f"[Call of {call.name}]: {call.arguments}"


def _render_result(message: Message, name: str) -> str:
    return f"[{'Failure' if message.failed else 'Result'} of {name}]:\n{message.text}"


# The provider.

T = TypeVar("T")

# How many seconds a consumer that abandons an answer waits for the engine.
_STOP_WAIT_SECONDS = 0.1

_COMMON_FIELDS: Body = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
# The engine reports token ids only together with probabilities, and one candidate is the minimum. It refuses to stream
# them if the request has tools.
_FIELDS_WITHOUT_TOOLS: Body = {"logprobs": True, "top_logprobs": 1}

# Default for the demo model. It makes the model follow its notes more closely: of three questions to `vault_qa` it
# answered two from them, and one with the engine's own default of 0.8 (2026-11-17).
_DEMO_MODEL_FIELDS: Body = {"temperature": 0.2}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptProgress:
    """The progress of a prompt: tokens processed, how many of them were cached, and the seconds so far."""

    total_tokens: int
    cached_tokens: int
    processed_tokens: int
    seconds: float


class LocalProvider:
    """A provider for a model in this process.

    The model is loaded with the first request. A separate worker thread runs one task after the other. ``on_progress``
    is called on the event loop while a prompt is processed. ``hash_record`` is a file that remembers weights with a
    verified hash by their size and modification time.
    """

    def __init__(
        self,
        *,
        model: str = LOCAL_MODEL_NAME,
        options: LlamaServerOptions | None = None,
        on_progress: Callable[[PromptProgress], None] | None = None,
        hash_record: Path | None = None,
        weights_package: WeightsPackage = SMOLLM2,
    ) -> None:
        self.model = model
        self._options = options or LlamaServerOptions()
        self._on_progress = on_progress
        self._hash_record = hash_record
        self._weights_package = weights_package
        self._engine: CacheTrackingLlamaServer | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._running: set[Event] = set()
        self._warming: set[Event] = set()

    @property
    def profile(self) -> ModelProfile:
        """The model's profile, with the window of the engine."""
        return replace_provider(LOCAL_PROFILE, window=self._engine.window if self._engine else self._options.window)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        # The tokens that a warm-up has processed so far stay in the cache, and this request continues from there.
        for warming in self._warming:
            warming.set()
        fold, refrain, ended = CompletionStreamReader(), RepetitionDetector(), None
        chunks = self._stream_chunks(await self._build_in_worker(request))
        try:
            async for chunk in chunks:
                for delta in fold.feed(chunk):
                    yield delta
                ended = refrain.feed(chunk) if self.model == LOCAL_MODEL_NAME else None
                if ended is not None:
                    for delta in fold.feed(ended):
                        yield delta
                    break
        finally:
            await chunks.aclose()
        if not fold.finished:
            raise invalid_answer_error(self._target, "it ended before its last chunk")
        output: int | None = None
        for delta in fold.finish():
            output = delta.output if isinstance(delta, Usage) else output
            marked = _mark_length_stop(delta, output, request.max_output_tokens)
            yield marked if ended is None else _mark_repetition_stop(marked)

    async def warm_up_cache(self, messages: Sequence[Message], *, tools: tuple[ToolDefinition, ...] = ()) -> None:
        """Process messages before there is a question, so that they are cached. A request ends the warm-up."""
        body = await self._build_in_worker(
            ModelRequest(model=self.model, messages=tuple(messages), tools=tools, max_output_tokens=0)
        )
        stopped = Event()
        self._warming.add(stopped)
        try:
            async for _ in self._stream_chunks(body, stopped):
                pass
        finally:
            self._warming.discard(stopped)

    async def forecast(self, request: ModelRequest) -> CacheForecast:
        """Return how many tokens of a request the cache would serve if it were sent now."""
        body = await self._build_in_worker(request)
        return await asyncio.wrap_future(
            self._get_worker().submit(self._run_and_convert_errors, lambda: self._get_engine().forecast(body))
        )

    async def predict_cache_usage(self, request: ModelRequest) -> CacheUsage | None:
        """Return the forecast by price class, for the cache ledger. None if an earlier answer was not fully seen."""
        found = await self.forecast(request)
        return (
            CacheUsage(read=found.cached_tokens, write=0, uncached=found.prompt_tokens - found.cached_tokens)
            if found.is_exact
            else None
        )

    async def preview_cache_usage(self, request: ModelRequest) -> CacheUsage | None:
        """Return the forecast for a request that is not sent yet, without starting the engine or waiting for an answer.

        An engine that is not started has an empty cache. While it works, its cache changes: then it is None.
        """
        if self._running:
            return None
        if self._engine is None:
            return CacheUsage(read=0, write=0, uncached=sum(message.tokens for message in request.messages))
        return await self.predict_cache_usage(request)

    async def close(self) -> None:
        for stopped in self._running:
            stopped.set()
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.wrap_future(worker.submit(self._close_engine))
            worker.shutdown(wait=False)

    async def _stream_chunks(self, body: Body, stop: Event | None = None) -> AsyncGenerator[Fields]:
        """Run a request in the worker thread and yield its chunks. ``stop`` ends it from outside."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Fields | None] = asyncio.Queue()
        halt = stop or Event()

        def listen(chunk: Fields) -> bool:
            if not halt.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, chunk)
            return halt.is_set()

        work = asyncio.wrap_future(
            self._get_worker().submit(self._run_and_convert_errors, lambda: self._answer(body, listen, halt))
        )
        work.add_done_callback(lambda _: queue.put_nowait(None))
        self._running.add(halt)
        try:
            while (chunk := await queue.get()) is not None:
                self._report_progress(chunk)
                yield chunk
            await work
        finally:
            halt.set()
            self._running.discard(halt)
            # The engine stops only after its current batch, which may take seconds. The next task waits in the queue
            # of the worker thread meanwhile.
            await asyncio.wait([work], timeout=_STOP_WAIT_SECONDS)
            work.cancel()

    def _answer(self, body: Body, on_chunk: Callable[[Fields], bool], stop: Event) -> None:
        if not stop.is_set():
            self._get_engine().answer(body, on_chunk)

    def _run_and_convert_errors(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except LlamaServerError as refusal:
            response = ErrorResponse(status=refusal.status, kind=refusal.kind, message=refusal.message)
            raise error_from_response(response, self._target) from refusal

    def _get_engine(self) -> CacheTrackingLlamaServer:
        if self._engine is None:
            weights = get_verified_weights_path(
                self.model, verified_weights_file=self._hash_record, weights_package=self._weights_package
            )
            self._engine = CacheTrackingLlamaServer(weights, self._options)
        return self._engine

    def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _get_worker(self) -> ThreadPoolExecutor:
        self._worker = self._worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="lamella-local")
        return self._worker

    async def _build_in_worker(self, request: ModelRequest) -> Body:
        # In the worker thread, because the first call reads the vocabulary from the weights file.
        return await asyncio.wrap_future(self._get_worker().submit(self._build_body, request))

    def _build_body(self, request: ModelRequest) -> Body:
        """Return the engine's request body, with tool rounds as text and special tokens escaped."""
        as_text = load_special_token_escaper(locate_weights(self.model, weights_package=self._weights_package))
        # The engine recognises special tokens anywhere in the text. In a note, one would end the turn and start a fake
        # one.
        template_fields = (
            replace_provider(message, pieces=(as_text(message.text),))
            for message in render_rounds_as_text(request.messages)
        )
        body = _DEMO_MODEL_FIELDS if self.model == LOCAL_MODEL_NAME else {}
        body = body | build_request(replace_provider(request, messages=tuple(template_fields)), LOCAL_PROFILE)
        further: Body = body.pop("extra_body", {})
        return body | further | _COMMON_FIELDS | ({} if request.tools else _FIELDS_WITHOUT_TOOLS)

    def _report_progress(self, chunk: Fields) -> None:
        progress = get_fields_at(chunk, "prompt_progress")
        if self._on_progress is not None and progress:
            total, cached, done = (get_count_at(progress, name) or 0 for name in ("total", "cache", "processed"))
            seconds = (get_count_at(progress, "time_ms") or 0) / 1_000
            self._on_progress(
                PromptProgress(total_tokens=total, cached_tokens=cached, processed_tokens=done, seconds=seconds)
            )

    @property
    def _target(self) -> RequestTarget:
        return RequestTarget(
            provider="The local engine",
            model=self.model,
            address="this process",
            timeout=0.0,
            window=self.profile.window,
        )


def _mark_repetition_stop(delta: Delta) -> Delta:
    """Replace the stop reason of an answer that was ended because it repeated itself."""
    return replace_provider(delta, reason=StopReason.LOOP_DETECTED) if isinstance(delta, StopDelta) else delta


def _mark_length_stop(delta: Delta, output: int | None, max_tokens: int) -> Delta:
    """Replace the stop reason of an answer that was cut before its own limit: the window was full."""
    if (
        isinstance(delta, StopDelta)
        and delta.reason is StopReason.LENGTH
        and output is not None
        and output < max_tokens
    ):
        return replace_provider(delta, reason=StopReason.CONTEXT_WINDOW)
    return delta
