"""Fitting turns into the window: the core says which summaries it needs, this fetches them and asks again."""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread

from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.compaction.chain import Plan, plan_compaction
from lamella.core.compaction.draft import weigh_turn
from lamella.core.compaction.fitting import Fitted, fit_turn
from lamella.core.history.state import Rules, State, TurnInput
from lamella.ports import Summarizer

AT_ONCE = 3


class Fitter:
    """Fits turns with a summariser, or without one. What it fetched once is not fetched again."""

    def __init__(self, summarizer: Summarizer | None, *, timeout: float) -> None:
        self._summarizer = summarizer
        self._timeout = timeout
        self._summaries: dict[str, SummaryText] = {}

    def fit(self, state: State, turn: TurnInput, rules: Rules, *, path: Sequence[str]) -> Fitted:
        """The turn as it is sent; what does not fit was made smaller, or raises."""
        while True:
            fitted = fit_turn(state, turn, rules, summaries=self._known(), path=path)
            if not fitted.needs:
                return fitted
            self._fetch(fitted.needs)

    def plan(self, state: State, turn: TurnInput, rules: Rules, *, goal: int, path: Sequence[str]) -> Plan:
        """What a compaction down to the goal would do before this turn."""
        tokens = weigh_turn(state, turn, rules)
        while True:
            plan = plan_compaction(
                state, turn, rules, tokens=tokens, goal=goal, summaries=self._known(), path=path, automatic=False
            )
            if not plan.needs:
                return plan
            self._fetch(plan.needs)

    def _known(self) -> dict[str, SummaryText] | None:
        return self._summaries if self._summarizer is not None else None

    def _fetch(self, needs: Sequence[SummaryNeed]) -> None:
        """Every text that is needed, a few at a time; each that fails or takes too long is known to have failed."""
        if self._summarizer is None:
            return
        summarize = self._summarizer.summarize
        answers: SimpleQueue[tuple[str, SummaryText]] = SimpleQueue()
        room = BoundedSemaphore(AT_ONCE)
        for need in needs:
            Thread(target=_ask, args=(summarize, need), kwargs={"answers": answers, "room": room}, daemon=True).start()
        for need in needs:
            self._summaries[need.key] = SummaryText(why=f"no answer within {self._timeout:g} seconds")
        for _ in needs:
            try:
                key, answer = answers.get(timeout=self._timeout)
            except Empty:
                return
            self._summaries[key] = answer


def _ask(
    summarize: Callable[..., str],
    need: SummaryNeed,
    *,
    answers: "SimpleQueue[tuple[str, SummaryText]]",
    room: BoundedSemaphore,
) -> None:
    with room:
        try:
            text = summarize(need.messages, max_tokens=need.max_tokens)
            answer = SummaryText(text=text) if isinstance(text, str) else SummaryText(why="the answer is not a text")
        except Exception as error:  # noqa: BLE001 - a guest's failure is a reason to skip a step, whatever it is
            answer = SummaryText(why=f"the summariser failed: {error or type(error).__name__}")
    answers.put((need.key, answer))
