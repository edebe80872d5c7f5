"""A model in this process, behind the port that all providers stand behind."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

from lamella.adapters.providers.connection.failures import Refusal, Target, explain_broken, explain_refusal
from lamella.adapters.providers.local.account import AccountedEngine
from lamella.adapters.providers.local.cache import Forecast
from lamella.adapters.providers.local.engine import EngineOptions, EngineRefusal
from lamella.adapters.providers.local.facts import LOCAL_PROFILE
from lamella.adapters.providers.local.refrain import Refrain
from lamella.adapters.providers.local.rounds import tell_rounds
from lamella.adapters.providers.local.weights import LOCAL, SMOLLM2, WeightsPackage, find_weights, locate_weights
from lamella.adapters.providers.openai_chat.request import build_request
from lamella.adapters.providers.openai_chat.response import CompletionFold
from lamella.adapters.providers.wire.body import Body
from lamella.adapters.providers.wire.fields import Fields, count_at, fields_at
from lamella.adapters.tokens.marks import find_breaker
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.call import CacheUse
from lamella.core.messages.delta import Delta, Stop, StopReason
from lamella.core.messages.model import Message
from lamella.core.messages.request import Request
from lamella.core.messages.usage import Usage
from lamella.core.values import replace
from lamella.profiles import ModelProfile

T = TypeVar("T")

# Seconds that whoever leaves an answer is kept waiting.
_FAREWELL = 0.1

_ALWAYS: Body = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
# The ids of the tokens are reported with their probabilities only; one candidate is the fewest that can be asked for.
# The engine refuses to stream them beside tools.
_WITHOUT_TOOLS: Body = {"logprobs": True, "top_logprobs": 1}

# What the model that ships is asked with where nobody says otherwise. It keeps to the notes before it rather: of three
# questions to `vault_qa` it answered two by them, with the engine's own value, .8, one (2026-11-17).
_DEMO: Body = {"temperature": 0.2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of a prompt is read in, in tokens; ``cached`` of them had not to be. ``seconds`` since it began."""

    total: int
    cached: int
    done: int
    seconds: float


class LocalProvider:
    """Loaded when it is first asked, in a thread of its own that does one thing after the other.

    ``progress`` is called on the event loop while a prompt is read in. ``record`` is a file in which weights whose hash
    was right are remembered by size and time.
    """

    def __init__(
        self,
        *,
        model: str = LOCAL,
        options: EngineOptions | None = None,
        progress: Callable[[Progress], None] | None = None,
        record: Path | None = None,
        packaged: WeightsPackage = SMOLLM2,
    ) -> None:
        self.model = model
        self._options = options or EngineOptions()
        self._progress = progress
        self._record = record
        self._packaged = packaged
        self._engine: AccountedEngine | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._running: set[Event] = set()
        self._warming: set[Event] = set()

    @property
    def profile(self) -> ModelProfile:
        """What is known of the model."""
        return replace(LOCAL_PROFILE, window=self._engine.window if self._engine else self._options.window)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        # What a warming has read by now stays in the cache, and the question goes on from there.
        for warming in self._warming:
            warming.set()
        fold, refrain, ended = CompletionFold(), Refrain(), None
        chunks = self._chunks(await self._built(request))
        try:
            async for chunk in chunks:
                for delta in fold.take(chunk):
                    yield delta
                ended = refrain.take(chunk) if self.model == LOCAL else None
                if ended is not None:
                    for delta in fold.take(ended):
                        yield delta
                    break
        finally:
            await chunks.aclose()
        if not fold.finished:
            raise explain_broken(self._target, "it ended before its last chunk")
        output: int | None = None
        for delta in fold.end():
            output = delta.output if isinstance(delta, Usage) else output
            told = _tell_window(delta, output, request.answer)
            yield told if ended is None else _tell_circles(told)

    async def warm(self, messages: Sequence[Message], *, tools: tuple[ToolDefinition, ...] = ()) -> None:
        """Read messages in before there is a question. A question that comes meanwhile ends it."""
        body = await self._built(Request(model=self.model, messages=tuple(messages), tools=tools, answer=0))
        stopped = Event()
        self._warming.add(stopped)
        try:
            async for _ in self._chunks(body, stopped):
                pass
        finally:
            self._warming.discard(stopped)

    async def forecast(self, request: Request) -> Forecast:
        """What the cache would serve of a request if it were sent now."""
        body = await self._built(request)
        return await asyncio.wrap_future(self._work().submit(self._tried, lambda: self._open().forecast(body)))

    async def foresee(self, request: Request) -> CacheUse | None:
        """The same by price class, for the ledger; none if an answer before was not fully seen."""
        found = await self.forecast(request)
        return CacheUse(read=found.cached, write=0, uncached=found.prompt - found.cached) if found.exact else None

    async def close(self) -> None:
        for stopped in self._running:
            stopped.set()
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.wrap_future(worker.submit(self._shut))
            worker.shutdown(wait=False)

    async def _chunks(self, body: Body, stopped: Event | None = None) -> AsyncGenerator[Fields]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Fields | None] = asyncio.Queue()
        halt = stopped or Event()

        def listen(chunk: Fields) -> bool:
            if not halt.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, chunk)
            return halt.is_set()

        work = asyncio.wrap_future(self._work().submit(self._tried, lambda: self._answer(body, listen, halt)))
        work.add_done_callback(lambda _: queue.put_nowait(None))
        self._running.add(halt)
        try:
            while (chunk := await queue.get()) is not None:
                self._tell(chunk)
                yield chunk
            await work
        finally:
            halt.set()
            self._running.discard(halt)
            # The engine stops after the batch it is at, which may take seconds; what comes next waits for it in line.
            await asyncio.wait([work], timeout=_FAREWELL)
            work.cancel()

    def _answer(self, body: Body, listen: Callable[[Fields], bool], halt: Event) -> None:
        if not halt.is_set():
            self._open().answer(body, listen)

    def _tried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except EngineRefusal as refusal:
            told = Refusal(status=refusal.status, kind=refusal.kind, words=refusal.words)
            raise explain_refusal(told, self._target) from refusal

    def _open(self) -> AccountedEngine:
        if self._engine is None:
            weights = find_weights(self.model, record=self._record, packaged=self._packaged)
            self._engine = AccountedEngine(weights, self._options)
        return self._engine

    def _shut(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _work(self) -> ThreadPoolExecutor:
        self._worker = self._worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="lamella-local")
        return self._worker

    async def _built(self, request: Request) -> Body:
        # The first time, a file's vocabulary is read for it.
        return await asyncio.wrap_future(self._work().submit(self._build, request))

    def _build(self, request: Request) -> Body:
        as_text = find_breaker(locate_weights(self.model, packaged=self._packaged))
        # The engine reads a mark wherever it stands: in a note, it would end the turn and begin one that nobody took.
        told = (replace(message, pieces=(as_text(message.text),)) for message in tell_rounds(request.messages))
        body = _DEMO if self.model == LOCAL else {}
        body = body | build_request(replace(request, messages=tuple(told)), LOCAL_PROFILE)
        further: Body = body.pop("extra_body", {})
        return body | further | _ALWAYS | ({} if request.tools else _WITHOUT_TOOLS)

    def _tell(self, chunk: Fields) -> None:
        told = fields_at(chunk, "prompt_progress")
        if self._progress is not None and told:
            total, cached, done = (count_at(told, name) or 0 for name in ("total", "cache", "processed"))
            seconds = (count_at(told, "time_ms") or 0) / 1_000
            self._progress(Progress(total=total, cached=cached, done=done, seconds=seconds))

    @property
    def _target(self) -> Target:
        return Target(
            provider="The local engine",
            model=self.model,
            address="this process",
            patience=0.0,
            window=self.profile.window,
        )


def _tell_circles(delta: Delta) -> Delta:
    """An answer that was ended because it went in circles did not end by itself."""
    return replace(delta, reason=StopReason.CIRCLES) if isinstance(delta, Stop) else delta


def _tell_window(delta: Delta, output: int | None, answer: int) -> Delta:
    """An answer that was cut before it was as long as it might have been met the end of the window."""
    if isinstance(delta, Stop) and delta.reason is StopReason.LENGTH and output is not None and output < answer:
        return replace(delta, reason=StopReason.WINDOW)
    return delta
