"""Fetch the summaries that a compaction needs, without blocking an event loop.

In async code the work raises ``SummariesNeeded``, the summaries are fetched, and the work starts again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Protocol, TypeVar

from msgspec import Struct

from lamella.conversation.threads import run_in_own_thread
from lamella.core.compaction.summaries import SummaryRequest, SummaryResult
from lamella.core.prompt.prompt import Prompt
from lamella.ports import Summarizer

# How many summaries a program's summarizer is asked for in parallel.
MAX_PARALLEL_SUMMARIES = 3
SKIPPED_AFTER_TIMEOUT = "not asked for: another was late"
Result = TypeVar("Result")
FetchedSummaries = dict[str, SummaryResult]
# The summaries fetched so far for work that runs under ``run_restarting_for_summaries``. None means that the caller may block:
# then summaries are fetched directly.
_CURRENT_SUMMARIES: ContextVar[FetchedSummaries | None] = ContextVar("fetched", default=None)


class SummaryRequestBatch(Struct, frozen=True, kw_only=True):
    """Summaries needed for a turn to ``model`` after the message ``head``, and the dict to put them into.

    ``last_prompt`` is the request that was sent last, ``window`` the context window of the model in tokens.
    """

    requests: tuple[SummaryRequest, ...]
    results: FetchedSummaries
    model: str | None
    last_prompt: Prompt | None
    head: str
    window: int


class SummaryFetcher(Protocol):
    """Fetches summaries for one conversation."""

    def summary_model(self, model: str | None) -> str | None:
        """Return the model that writes summaries for a turn to ``model``.

        None means that there is no summarizer. An empty string means that the model is unknown.
        """
        ...

    def check_model_is_trusted(self) -> None:
        """Raise if the summary model is named only by an untrusted source, such as a project file."""
        ...

    def fetch(self, batch: SummaryRequestBatch) -> None:
        """Fetch the summaries; blocks until they are there."""
        ...

    async def fetch_async(self, batch: SummaryRequestBatch) -> None:
        """Fetch the summaries without blocking the event loop."""
        ...


class SummariesNeeded(Exception):  # noqa: N818 - it is a request, not a failure
    """Signals that summaries must be fetched first; the caller fetches them and runs the same work again."""

    def __init__(self, fetcher: SummaryFetcher, batch: SummaryRequestBatch) -> None:
        super().__init__("summaries are needed first")
        self.fetcher, self.batch = fetcher, batch


class ThreadRunner(Protocol):
    """Runs work outside the event loop, for example in a thread."""

    async def __call__(self, function: Callable[[], Result]) -> Result: ...


async def run_restarting_for_summaries(function: Callable[[], Result], run_in_thread: ThreadRunner) -> Result:
    """Run work that may need summaries, and return its result; other tasks continue while they are fetched.

    The work is started again from its beginning once the summaries are there. It must not have changed anything before
    it asks for them.
    """
    fetched: FetchedSummaries = {}

    def attempt() -> Result:
        token = _CURRENT_SUMMARIES.set(fetched)
        try:
            return function()
        finally:
            _CURRENT_SUMMARIES.reset(token)

    while True:
        try:
            return await run_in_thread(attempt)
        except SummariesNeeded as missing:
            await missing.fetcher.fetch_async(missing.batch)


def fetched_so_far() -> FetchedSummaries:
    """Return the summaries that were fetched so far for the current work."""
    fetched = _CURRENT_SUMMARIES.get()
    return {} if fetched is None else fetched


def fetch_summaries(fetcher: SummaryFetcher, batch: SummaryRequestBatch) -> None:
    """Fetch summaries, or raise ``SummariesNeeded`` if the current work runs under ``run_restarting_for_summaries``."""
    if _CURRENT_SUMMARIES.get() is not None:
        raise SummariesNeeded(fetcher, batch)
    fetcher.fetch(batch)


class CallbackSummaryFetcher:
    """Asks a summarizer that a program passed, a few texts at a time, each with a timeout."""

    def __init__(self, summarizer: Summarizer, *, timeout: float) -> None:
        self._summarizer = summarizer
        self._timeout = timeout

    def summary_model(self, model: str | None) -> str | None:
        """Return an empty string: the model behind a program's summarizer is unknown."""
        del model
        return ""

    def check_model_is_trusted(self) -> None:
        """Do nothing: the program passed the summarizer itself."""

    def fetch(self, batch: SummaryRequestBatch) -> None:
        """Fetch all summaries, a few at a time; after one timeout no more are requested."""
        for some in iter_batches_until_timeout(
            batch, MAX_PARALLEL_SUMMARIES, timeout_message=summary_timeout_message(self._timeout)
        ):
            self._fetch_some(some, batch.results)

    async def fetch_async(self, batch: SummaryRequestBatch) -> None:
        """Fetch the summaries in a thread."""
        await run_in_own_thread(partial(self.fetch, batch), name="lamella-summary")

    def _fetch_some(self, requests: Sequence[SummaryRequest], results: FetchedSummaries) -> None:
        """Fetch a few summaries in parallel; those that miss the timeout are recorded as failed."""
        answers: SimpleQueue[tuple[str, SummaryResult]] = SimpleQueue()
        # Daemon threads: a summarizer that never returns must not keep the program from exiting.
        for request in requests:
            Thread(target=_summarize_into_queue, args=(self._summarizer, request, answers), daemon=True).start()
        # Every request counts as late until its answer arrives below.
        for request in requests:
            results[request.key] = SummaryResult(failure=summary_timeout_message(self._timeout))
        deadline = monotonic() + self._timeout
        for _ in requests:
            try:
                key, answer = answers.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                return
            results[key] = answer


def iter_batches_until_timeout(
    batch: SummaryRequestBatch, size: int, *, timeout_message: str
) -> Iterator[Sequence[SummaryRequest]]:
    """Yield the summaries to request at the same time, in batches of ``size``.

    After one of them failed with the message ``timeout_message``, the rest are marked as not requested.
    """
    for start in range(0, len(batch.requests), size):
        some = batch.requests[start : start + size]
        if any(answer.failure == timeout_message for answer in batch.results.values()):
            batch.results.update((request.key, SummaryResult(failure=SKIPPED_AFTER_TIMEOUT)) for request in some)
        else:
            yield some


def summary_timeout_message(seconds: float) -> str:
    """Return the message for a summarizer that exceeded its timeout."""
    return f"no answer within {seconds:g} seconds"


def _summarize_into_queue(
    summarizer: Summarizer, request: SummaryRequest, results: "SimpleQueue[tuple[str, SummaryResult]]"
) -> None:
    try:
        text = summarizer.summarize(request.messages, max_tokens=request.max_tokens)
        answer = validate_summary_text(text)
    except BaseException as error:  # noqa: BLE001 - any exception of a summarizer skips only its step
        # The error text is left out: it may contain a URL with a key, and receipts are stored and displayed.
        answer = SummaryResult(failure=f"the summariser failed with {type(error).__name__}")
    results.put((request.key, answer))


def validate_summary_text(text: object) -> SummaryResult:
    """Return a summary that can be sent on, or the reason why the answer cannot be used."""
    if not isinstance(text, str):
        return SummaryResult(failure="the answer is not a text")
        # A lone surrogate cannot be encoded as UTF-8, so it could be neither sent nor stored.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return SummaryResult(failure="the answer has half of a character in it")
    return SummaryResult(text=text)
