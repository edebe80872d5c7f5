"""Summaries on their way: what the core needs is fetched where it holds nobody up, and the work is done again."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Protocol, TypeVar

from msgspec import Struct

from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.messages.request import Request
from lamella.core.prompt.prompt import Prompt
from lamella.engine.apart import run_apart
from lamella.engine.dialogue.answer import Answer
from lamella.ports import Summarizer

AT_ONCE = 3
LATE = "not asked for: another was late"
T = TypeVar("T")
Fetched = dict[str, SummaryText]
# What was fetched for the work of one who can wait for summaries elsewhere; where there is none, nobody is held up.
_FETCHED: ContextVar[Fetched | None] = ContextVar("fetched", default=None)


class SummaryOrder(Struct, frozen=True, kw_only=True):
    """Summaries that are needed, and what they are fetched into; for a turn to ``model`` after the message ``head``.

    ``last`` is the request that was sent last, ``window`` what the model takes.
    """

    needs: tuple[SummaryNeed, ...]
    into: Fetched
    model: str | None
    last: Prompt | None
    head: str
    window: int


class AsideBook(Protocol):
    """A conversation, by its key as ``id``, that is told of model calls which are no answers of it."""

    @property
    def id(self) -> str: ...

    def note_aside(
        self, request: Request, given: Answer, *, purpose: str, after: str | None = None, at: datetime | None = None
    ) -> None: ...


class SummaryFetcher(Protocol):
    """Fetches summaries for one conversation."""

    def find_model(self, model: str | None) -> str | None:
        """Who would be asked for a turn to a model: none where there is nobody, empty where nobody here knows."""
        ...

    def check(self) -> None:
        """Refuse who would be asked where that is a model which only somebody else's words name."""
        ...

    def fetch(self, order: SummaryOrder) -> None:
        """Here and now: whoever calls waits for them."""
        ...

    async def fetch_apart(self, order: SummaryOrder) -> None:
        """The same for a program that awaits; its loop goes on."""
        ...


class SummariesMissing(Exception):  # noqa: N818 - it is a request, not a failure
    """Summaries are needed first: have them fetched, wherever that holds nobody up, and do the same again."""

    def __init__(self, fetcher: SummaryFetcher, order: SummaryOrder) -> None:
        super().__init__("summaries are needed first")
        self.fetcher, self.order = fetcher, order


class Elsewhere(Protocol):
    """Runs work where no event loop waits for it."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


async def wait_apart(work: Callable[[], T], run: Elsewhere) -> T:
    """What work gives that may need summaries; while they are fetched, other tasks go on.

    Work is done again from its start once they are there, so it must have changed nothing when it asks for them.
    """
    fetched: Fetched = {}

    def attempt() -> T:
        token = _FETCHED.set(fetched)
        try:
            return work()
        finally:
            _FETCHED.reset(token)

    while True:
        try:
            return await run(attempt)
        except SummariesMissing as missing:
            await missing.fetcher.fetch_apart(missing.order)


def begin_fetching() -> Fetched:
    """What was fetched for this very work by now."""
    fetched = _FETCHED.get()
    return {} if fetched is None else fetched


def fetch_summaries(fetcher: SummaryFetcher, order: SummaryOrder) -> None:
    """Fetch what is needed, or have it fetched where that holds nobody up."""
    if _FETCHED.get() is not None:
        raise SummariesMissing(fetcher, order)
    fetcher.fetch(order)


class GuestFetcher:
    """Asks a summariser that a program gave, a few texts at a time, each for as long as its patience lasts."""

    def __init__(self, summarizer: Summarizer, *, timeout: float) -> None:
        self._summarizer = summarizer
        self._timeout = timeout

    def find_model(self, model: str | None) -> str | None:
        """Whom it asks is its own affair."""
        del model
        return ""

    def check(self) -> None:
        """A program gave it."""

    def fetch(self, order: SummaryOrder) -> None:
        """Every text that is needed, a few at a time; after one that takes too long no more are asked for."""
        for some in take_batches(order, AT_ONCE, late=tell_late(self._timeout)):
            self._fetch_some(some, order.into)

    async def fetch_apart(self, order: SummaryOrder) -> None:
        """The same in a thread."""
        await run_apart(partial(self.fetch, order), name="lamella-summary")

    def _fetch_some(self, needs: Sequence[SummaryNeed], into: Fetched) -> None:
        """What is answered in time, one way or the other, and who is late."""
        answers: SimpleQueue[tuple[str, SummaryText]] = SimpleQueue()
        for need in needs:
            Thread(target=_ask, args=(self._summarizer, need, answers), daemon=True).start()
        for need in needs:
            into[need.key] = SummaryText(why=tell_late(self._timeout))
        deadline = monotonic() + self._timeout
        for _ in needs:
            try:
                key, answer = answers.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                return
            into[key] = answer


def take_batches(order: SummaryOrder, size: int, *, late: str) -> Iterator[Sequence[SummaryNeed]]:
    """What is to be asked for at once, a few at a time, until one of them is ``late``: then no more are asked for."""
    for start in range(0, len(order.needs), size):
        some = order.needs[start : start + size]
        if any(answer.why == late for answer in order.into.values()):
            order.into.update((need.key, SummaryText(why=LATE)) for need in some)
        else:
            yield some


def tell_late(seconds: float) -> str:
    """Why there is no summary from one who took too long."""
    return f"no answer within {seconds:g} seconds"


def _ask(summarizer: Summarizer, need: SummaryNeed, answers: "SimpleQueue[tuple[str, SummaryText]]") -> None:
    try:
        text = summarizer.summarize(need.messages, max_tokens=need.max_tokens)
        answer = check_text(text)
    except BaseException as error:  # noqa: BLE001 - a guest's failure is a reason to skip a step, whatever it is
        # What it says may hold an address with a key in it, and receipts are kept and shown.
        answer = SummaryText(why=f"the summariser failed with {type(error).__name__}")
    answers.put((need.key, answer))


def check_text(text: object) -> SummaryText:
    """An answer that can be sent on; anything else is why the step is skipped."""
    if not isinstance(text, str):
        return SummaryText(why="the answer is not a text")
    if any("\ud800" <= character <= "\udfff" for character in text):
        return SummaryText(why="the answer has half of a character in it")
    return SummaryText(text=text)
