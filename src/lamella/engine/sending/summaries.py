"""Summaries by a model: the conversation's own, whose request extends what was sent last, or another, asked apart.

Each call is an aside of the conversation. What it gave is laid on the shelf of the store: whoever plans the same again
before the conversation goes on, in whichever process, is told the same and pays nothing. Whoever awaits has it made on
the loop that sends; others on that one from outside, or where there is none on a loop of their own, over connections of
their own. So no connection is used by two loops, and a model in this process by one at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.log.terms import CacheMarks, Effort
from lamella.core.messages.delta import Reply, StopReason
from lamella.core.messages.request import Request, Seams
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.summaries import AT_ONCE, AsideBook, SummaryOrder, check_text, take_batches, tell_late
from lamella.engine.sending.asides import call_aside
from lamella.engine.sending.delivery import Delivery
from lamella.engine.sending.pool import ProviderPool
from lamella.errors import KeyRefusedError, LamellaError, UntrustedError
from lamella.ports import Shelf

CallNote = Callable[[Request, Answer, datetime], Awaitable[None]]
SAME, OFF = "same", "off"
PURPOSE = "summary"
SECONDS = 120.0
# What a model that thinks before it writes may think, in tokens, where the window leaves so much.
_THOUGHTS = 2_000
_BUSY = "it would hold up the event loop; send the question, and it is asked apart"
# For so long a plan is what was planned, if the conversation does not go on.
_KEPT = timedelta(hours=1)
# Where a text that was cut off may end.
_ENDS = ("\n", ". ", "。", "! ", "? ")


class SummaryMaker(Struct, frozen=True, kw_only=True):
    """Who writes summaries: the model that is asked, nobody, or another, as a setting says it; and how it is called.

    ``sign`` gives what a block says of who wrote it.
    """

    choice: str
    sign: Callable[[str], str] = str
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errand:
    """Who is asked, over what, and where each call is noted down."""

    model: str
    post: Delivery
    note: CallNote


class ModelFetcher:
    """Asks a model for summaries of one conversation, and notes down what each came to."""

    def __init__(self, pool: ProviderPool, chat: AsideBook, maker: SummaryMaker, *, shelf: Shelf | None = None) -> None:
        self._pool = pool
        self._chat = chat
        self._maker = maker
        self._shelf = shelf

    def find_model(self, model: str | None) -> str | None:
        """Who is asked for a turn to a model; none where that is nobody."""
        choice = self._maker.choice
        return {SAME: model, OFF: None}.get(choice, choice)

    def check(self) -> None:
        """Refuse another model that only somebody else's words name."""
        if self._maker.choice not in (SAME, OFF):
            self._pool.check(self._maker.choice)

    async def fetch_apart(self, order: SummaryOrder) -> None:
        """On the loop that sends, over what it sends by."""

        async def note(request: Request, given: Answer, at: datetime) -> None:
            await self._pool.workers.finish(partial(self._note, order, request, given, at=at))

        await self._fetch_with(order, note)

    def fetch(self, order: SummaryOrder) -> None:
        """Here and now, but never in the thread of a loop that runs.

        Calls are noted down by who waits here, and who may hold the conversation.
        """
        if _runs_loop():
            _settle(order, SummaryText(why=_BUSY))
            return
        made: list[tuple[Request, Answer, datetime]] = []

        async def note(request: Request, given: Answer, at: datetime) -> None:
            made.append((request, given, at))

        try:
            loop = self._pool.loop
            if loop is None:
                asyncio.run(self._fetch_with(order, note, own=True))
            else:
                self._fetch_on(loop, order, note)
        finally:
            for request, given, at in made:
                self._note(order, request, given, at=at)

    def _fetch_on(self, loop: asyncio.AbstractEventLoop, order: SummaryOrder, note: CallNote) -> None:
        """From outside of a loop, which may itself wait for whoever waits here: no longer than answers may take."""
        future = asyncio.run_coroutine_threadsafe(self._fetch_with(order, note), loop)
        try:
            future.result(self._maker.seconds * len(order.needs))
        except (TimeoutError, CancelledError):
            future.cancel()
            _settle(order, SummaryText(why=tell_late(self._maker.seconds)))

    def _note(self, order: SummaryOrder, request: Request, given: Answer, *, at: datetime) -> None:
        self._chat.note_aside(request, given, purpose=PURPOSE, after=order.head, at=at)

    async def _fetch_with(self, order: SummaryOrder, note: CallNote, *, own: bool = False) -> None:
        """Fetch what is needed, on a loop of its ``own`` over connections of its own."""
        model = self.find_model(order.model)
        assert model is not None, "whoever asks has looked who would be asked"
        try:
            if own:
                async with self._pool.lend(model, answer=1) as post:
                    await self._fetch_all(order, _Errand(model=model, post=post, note=note))
            else:
                post = self._pool.post(model, answer=1)
                await self._fetch_all(order, _Errand(model=model, post=post, note=note))
        except UntrustedError as error:
            # Whoever asks the model of the conversation is told when that is sent to.
            if self._maker.choice != SAME:
                raise
            _settle(order, _tell_failure(error))
        except LamellaError as error:
            _settle(order, _tell_failure(error))

    async def _fetch_all(self, order: SummaryOrder, errand: _Errand) -> None:
        """Every text that is needed, a few at a time; after one that takes too long no more are asked for."""
        here = self._pool.roams(errand.model)
        # What extends the last request is in the cache but for one question.
        reads = sum(one.tokens for need in order.needs if not need.alone for one in need.messages)
        if here and reads > order.window // 2:
            # It reads about 8 ms for each (2026-11-16), and whoever asked waits.
            _settle(order, SummaryText(why=f"a model in this process would take minutes to read {reads:,} tokens"))
            return
        # It answers one after the other, too, and those in line would be late for no fault of theirs.
        step = 1 if here else AT_ONCE
        for some in take_batches(order, step, late=tell_late(self._maker.seconds)):
            given = await asyncio.gather(*(self._fetch_one(need, order, errand) for need in some))
            order.into.update(zip((need.key for need in some), given, strict=True))

    async def _fetch_one(self, need: SummaryNeed, order: SummaryOrder, errand: _Errand) -> SummaryText:
        """A text that is there already, or one that is asked for now; what failed is asked for again the next time."""
        shelf, at = self._shelf, errand.post.clock.now()
        if shelf is None:
            return await self._ask(need, order, errand)
        name = _name_line(need, order, errand.model, conversation=self._chat.id)
        known = await errand.post.workers.run(lambda: shelf.find(name, at=at))
        if name in known:
            return SummaryText(text=known[name], by=self._maker.sign(errand.model))
        given = await self._ask(need, order, errand)
        if not given.why:
            put = partial(shelf.put, name, given.text, at=at, ends=at + _KEPT, conversation=self._chat.id)
            await errand.post.workers.finish(put)
        return given

    async def _ask(self, need: SummaryNeed, order: SummaryOrder, errand: _Errand) -> SummaryText:
        post, model = errand.post, errand.model
        request = make_summary_request(need, order, model, thinks=not self._pool.roams(model))

        async def keep(given: Answer) -> None:
            if post.answered is not None:
                await post.workers.finish(post.answered)
            await errand.note(request, given, post.clock.now())

        try:
            async with asyncio.timeout(self._maker.seconds):
                reply = await call_aside(request, post, note=keep)
        except TimeoutError:
            return SummaryText(why=tell_late(self._maker.seconds))
        except LamellaError as error:
            return _tell_failure(error)
        except Exception as error:  # noqa: BLE001 - a provider that a program gave may fail in any way
            return SummaryText(why=f"the summariser failed with {type(error).__name__}")
        answer = check_text(_read_text(reply))
        return answer if answer.why else answer._replace(by=self._maker.sign(model))


def _name_line(need: SummaryNeed, order: SummaryOrder, model: str, *, conversation: str) -> str:
    """What a summary is called on the shelf: of which text, how it is asked for and of whom, after which message."""
    asked = hash_text(f"{need.key} {need.max_tokens} {need.messages[-1].text}")
    return f"summary:{conversation}:{order.head}:{asked}:{model}"


def _runs_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _settle(order: SummaryOrder, answer: SummaryText) -> None:
    """One answer for all that is not there yet."""
    order.into.update((need.key, answer) for need in order.needs if need.key not in order.into)


def make_summary_request(need: SummaryNeed, order: SummaryOrder, model: str, *, thinks: bool) -> Request:
    """What is sent for a summary. To the model that was asked last it is that request and one more question.

    All that its cache depends on is as it was: tools, effort, who marks how far it reaches.
    """
    live, last = need.alone and model == order.model, order.last
    messages = need.messages if live or not need.alone else need.alone
    left = order.window - sum(message.tokens for message in messages) - 2 * need.max_tokens
    answer = need.max_tokens + (max(min(_THOUGHTS, left), 0) if thinks else 0)
    request = Request(model=model, messages=messages, answer=answer)
    if not live or last is None:
        return request
    terms = last.terms
    return replace(
        request,
        tools=last.tools,
        conversation=last.conversation_id,
        seams=Seams(messages=len(last.messages)),
        temperature=terms.temperature,
        caching=None if terms.cache_marks is CacheMarks.EXPLICIT else terms.cache_marks.value,
        effort=None if terms.reasoning_effort is Effort.DEFAULT else terms.reasoning_effort.value,
    )


def _read_text(reply: Reply) -> str:
    """What was written; of a text that was cut off, as far as its last whole line or sentence."""
    text = reply.text.strip()
    if reply.stop not in (StopReason.LENGTH, StopReason.WINDOW):
        return text
    ends = max(text.rfind(end) + len(end) if end in text else 0 for end in _ENDS)
    return text[:ends].strip()


def _tell_failure(error: LamellaError) -> SummaryText:
    """Why there is no summary. What an error says may hold an address with a key in it, and receipts are kept."""
    match error:
        case UntrustedError():
            return SummaryText(why="nobody here has named the model that would write it")
        case KeyRefusedError():
            return SummaryText(why="the model that would write it has no key, or its key is refused")
        case _:
            return SummaryText(why=f"the summariser failed with {error.code}")
