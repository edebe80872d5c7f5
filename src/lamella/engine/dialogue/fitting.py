"""Fitting turns into the window: the core says which summaries it needs, this fetches them and asks again."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Protocol, TypeVar

from lamella.core.budget.thresholds import is_over, must_shrink
from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.compaction.chain import Plan, plan_compaction
from lamella.core.compaction.fitting import Rules, check_fits, fit_turn
from lamella.core.log.terms import History, SecretRule
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.engine.dialogue.reading.secrets import Leaving, warn_of_secrets
from lamella.ports import SecretWatch, Summarizer

AT_ONCE = 3
T = TypeVar("T")
# What was fetched for the work of one who can wait for summaries elsewhere; where there is none, nobody is held up.
_FETCHED: ContextVar[dict[str, SummaryText] | None] = ContextVar("fetched", default=None)


class SummariesMissing(Exception):  # noqa: N818 - it is a request, not a failure
    """Summaries are needed first: call ``fetch``, wherever it holds nobody up, and do the same again."""

    def __init__(self, fetch: Callable[[], None]) -> None:
        super().__init__("summaries are needed first")
        self.fetch = fetch


class Elsewhere(Protocol):
    """Runs work where no event loop waits for it."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


async def wait_apart(work: Callable[[], T], run: Elsewhere) -> T:
    """What work gives that may need summaries; while they are fetched, other tasks go on.

    Work is done again from its start once they are there, so it must have changed nothing when it asks for them.
    """
    fetched: dict[str, SummaryText] = {}

    def attempt() -> T:
        with _handing_back(fetched):
            return work()

    while True:
        try:
            return await run(attempt)
        except SummariesMissing as missing:
            await _run_apart(missing.fetch)


@contextmanager
def _handing_back(fetched: dict[str, SummaryText]) -> Iterator[None]:
    token = _FETCHED.set(fetched)
    try:
        yield
    finally:
        _FETCHED.reset(token)


async def _run_apart(work: Callable[[], None]) -> None:
    """Work in a thread that neither a cancelled task nor the end of the program waits for."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits, whatever it is
            failed.append(error)
        finally:
            # The loop may be closed by now: then nobody waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

    Thread(target=run, daemon=True).start()
    await done.wait()
    if failed:
        raise failed[0]


def seal_request(opened: State, rules: Rules, *, before: Prompt | None) -> Envelope:
    """The request as it may be sent: it fits, and breaks no law beside the one before it."""
    envelope = make_envelope(waiting(opened), rules.budget)
    if is_over(envelope.total, rules.budget.hard, rules.budget):
        check_fits(envelope, rules.budget, attached=waiting(opened).attached)
    check_laws(envelope, before=before)
    return envelope


def _list_leaving(turn: Turn, state: State) -> list[Leaving]:
    """The texts that a turn is the first to send, by the names that people know them by.

    A turn that is sent on has sent everything but what its tools gave last. Another model has been sent nothing yet.
    """
    if turn.rounds:
        called = {call.id: call.name for call in turn.rounds[-1].calls}
        return [(f"what {called[one.call]} gave", one.output) for one in turn.rounds[-1].outputs]
    known = {} if turn.model not in (None, state.model) else state.library
    attached = (*turn.results, *turn.attached)
    texts = [
        (str(one.id), one.text) for one in attached if one.id not in known or known[one.id].artifact.hash != one.hash
    ]
    texts.append(("what was typed", turn.text))
    if turn.system is not None:
        texts += [(f"the system prompt's {name}", text) for name, text in turn.system.named()]
    if known is not state.library and state.turns:
        texts += [(str(name), entry.artifact.text) for name, entry in state.library.items()]
        texts += [(f"turn {one.number + 1}", said.text) for one in state.talk.exchanges for said in one.said]
    return texts


class Fitter:
    """Fits turns with a summariser, or without one. It remembers nothing beyond what it is doing.

    What was fetched and stands is in the conversation. What failed or was refused is asked for again the next time, as
    it is when the conversation is opened anew: otherwise the two would send different bytes from then on.
    """

    def __init__(self, summarizer: Summarizer | None, *, timeout: float, secrets: SecretWatch | None = None) -> None:
        self._summarizer = summarizer
        self._timeout = timeout
        self._secrets = secrets

    def fit(self, state: State, turn: Turn, rules: Rules, *, path: Sequence[str]) -> tuple[Turn, State]:
        """The turn as it is asked, made smaller where that is needed, and the state that then waits.

        What looks like a secret and leaves with it is said; where that is refused, nothing leaves.
        """
        if self._secrets is not None and rules.secrets is not SecretRule.OFF:
            texts, anchors = _list_leaving(turn, state), self._secrets.anchors
            # Nearly every text ends here: looking for some letters takes a fraction of counting its tokens.
            if any(anchor in text for _, text in texts for anchor in anchors):
                turn = warn_of_secrets(turn, state, texts, watch=self._secrets, rule=rules.secrets)
        strips = turn.terms.history is History.STRIP and not turn.rounds
        retells = self._summarizer is not None and strips
        opened = advance(state, turn, rules.place, measure=rules.measure)
        if not retells and not must_shrink(waiting(opened).total, rules.budget, shrunk_to=state.shrunk_to):
            return turn, opened
        known = self._begin()
        while True:
            fitted, opened, needs = fit_turn(state, turn, rules, summaries=known, path=path)
            if not needs:
                return fitted, opened
            self._fetch(needs, known)

    def plan(
        self,
        state: State,
        turn: Turn,
        rules: Rules,
        *,
        goal: int,
        path: Sequence[str],
        as_is: Prompt | None = None,
        automatic: bool = False,
    ) -> Plan:
        """A compaction down to the goal before this turn, whose prompt without one is ``as_is``."""
        asked = as_is or waiting(advance(state, turn, rules.place, measure=rules.measure))
        known = self._begin()
        while True:
            plan = plan_compaction(
                state,
                turn,
                rules.chain_for(turn.terms),
                measure=rules.measure,
                place=rules.place,
                window=rules.budget.window,
                as_is=asked,
                goal=goal,
                summaries=known,
                path=path,
                automatic=automatic,
            )
            if not plan.needs:
                return plan
            self._fetch(plan.needs, known)

    def _begin(self) -> dict[str, SummaryText] | None:
        """What is known of summaries by now: what was fetched for this very work, none without a summariser."""
        if self._summarizer is None:
            return None
        fetched = _FETCHED.get()
        return {} if fetched is None else fetched

    def _fetch(self, needs: Sequence[SummaryNeed], known: dict[str, SummaryText] | None) -> None:
        """Fetch what is needed. Who has no summariser needs nothing."""
        if known is None or self._summarizer is None:
            return
        fetch = partial(self._fetch_all, self._summarizer, needs, known)
        if _FETCHED.get() is not None:
            raise SummariesMissing(fetch)
        fetch()

    def _fetch_all(self, summarizer: Summarizer, needs: Sequence[SummaryNeed], known: dict[str, SummaryText]) -> None:
        """Every text that is needed, a few at a time; after one that takes too long no more are asked for."""
        late = False
        for start in range(0, len(needs), AT_ONCE):
            some = needs[start : start + AT_ONCE]
            if late:
                known.update((need.key, SummaryText(why="not asked for: another was late")) for need in some)
            else:
                late = not self._fetch_some(summarizer, some, known)

    def _fetch_some(self, summarizer: Summarizer, needs: Sequence[SummaryNeed], known: dict[str, SummaryText]) -> bool:
        """Whether all of these were answered in time, one way or the other."""
        answers: SimpleQueue[tuple[str, SummaryText]] = SimpleQueue()
        for need in needs:
            Thread(target=_ask, args=(summarizer, need, answers), daemon=True).start()
        for need in needs:
            known[need.key] = SummaryText(why=f"no answer within {self._timeout:g} seconds")
        deadline = monotonic() + self._timeout
        for _ in needs:
            try:
                key, answer = answers.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                return False
            known[key] = answer
        return True


def _ask(summarizer: Summarizer, need: SummaryNeed, answers: "SimpleQueue[tuple[str, SummaryText]]") -> None:
    try:
        text = summarizer.summarize(need.messages, max_tokens=need.max_tokens)
        answer = _check_text(text)
    except BaseException as error:  # noqa: BLE001 - a guest's failure is a reason to skip a step, whatever it is
        # What it says may hold an address with a key in it, and receipts are kept and shown.
        answer = SummaryText(why=f"the summariser failed with {type(error).__name__}")
    answers.put((need.key, answer))


def _check_text(text: object) -> SummaryText:
    """An answer that can be sent on; anything else is why the step is skipped."""
    if not isinstance(text, str):
        return SummaryText(why="the answer is not a text")
    if any("\ud800" <= character <= "\udfff" for character in text):
        return SummaryText(why="the answer has half of a character in it")
    return SummaryText(text=text)
