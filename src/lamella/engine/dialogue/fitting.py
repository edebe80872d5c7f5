"""Fitting turns into the window: the core says which summaries it needs, this has them fetched and asks again."""

from collections.abc import Sequence

from lamella.core.budget.thresholds import is_over, must_shrink
from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.compaction.certificate import WISHES_SHARE
from lamella.core.compaction.chain import Course, Plan, plan_compaction
from lamella.core.compaction.draft import WHOLE, Stretch
from lamella.core.compaction.fitting import Rules, check_fits, fit_turn
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import History, SecretRule
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.reading.secrets import Leaving, find_secrets, warn_of_secrets
from lamella.engine.dialogue.summaries import (
    Fetched,
    SummariesMissing,
    SummaryFetcher,
    SummaryOrder,
    begin_fetching,
    fetch_summaries,
    wait_apart,
)
from lamella.ports import SecretWatch

__all__ = ["Fitter", "SummariesMissing", "list_warnings", "seal_request", "wait_apart"]

_UNSUMMARIZED = "No summary is asked for ahead: where a model writes one, that is sent instead of an outline."


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
    if turn.rules is not None:
        texts += [("a rule", text) for one, text in turn.rules.added if one > state.turns]
    if turn.system is not None:
        texts += [(f"the system prompt's {name}", text) for name, text in turn.system.named()]
    if known is not state.library and state.turns:
        texts += [(str(name), entry.artifact.text) for name, entry in state.library.items()]
        texts += [(f"turn {one.number + 1}", said.text) for one in state.talk.exchanges for said in one.said]
    return texts


class Fitter:
    """Fits turns with a summariser, or without one. It remembers nothing beyond what it is doing.

    What was fetched and stands is in the conversation. What failed is asked for again the next time, as it is when the
    conversation is opened anew: otherwise the two would send different bytes from then on.
    """

    def __init__(self, fetcher: SummaryFetcher | None, *, secrets: SecretWatch | None = None) -> None:
        self._fetcher = fetcher
        self._secrets = secrets

    def without_summaries(self) -> "Fitter":
        """One for a look at what is there, which is nobody's reason to ask a model."""
        return Fitter(None, secrets=self._secrets)

    def fit(self, state: State, turn: Turn, rules: Rules, *, path: Sequence[str]) -> tuple[Turn, State]:
        """The turn as it is asked, made smaller where that is needed, and the state that then waits.

        What looks like a secret and leaves with it is said; where that is refused, nothing leaves.
        """
        if self._secrets is not None and rules.secrets is not SecretRule.OFF:
            texts, anchors = _list_leaving(turn, state), self._secrets.anchors
            # Nearly every text ends here: looking for some letters takes a fraction of counting its tokens.
            if any(any(map(text.__contains__, anchors)) for _, text in texts):
                turn = warn_of_secrets(turn, state, texts, watch=self._secrets, rule=rules.secrets)
        strips = turn.terms.history is History.STRIP and not turn.rounds
        retells = self._fetcher is not None and strips
        opened = advance(state, turn, rules.place, measure=rules.measure)
        if not retells and not must_shrink(waiting(opened).total, rules.budget, shrunk_to=state.shrunk_to):
            return turn, opened
        model = turn.model or state.model
        known = self._begin(model)
        while True:
            told = list_warnings(known)
            asked = replace(turn, warnings=(*turn.warnings, *told)) if told else turn
            fitted, opened, needs = fit_turn(state, asked, rules, summaries=known, path=path)
            if not needs:
                return fitted, opened
            self._fetch(needs, known, state=state, model=model, rules=rules)

    def look_ahead(
        self, state: State, turn: Turn, rules: Rules, *, path: Sequence[str]
    ) -> tuple[Receipt | None, State]:
        """The state that ``fit`` would give if nobody is asked for a summary, and what would be compacted for it.

        What could not be sent is given all the same, and so is what stands there where nothing is typed.
        """
        fitted, opened = Fitter(None).fit(state, turn, rules, path=path) if turn.text else (turn, None)
        if fitted is not turn and self._begin(turn.model or state.model) is not None:
            fitted, opened = replace(fitted, warnings=(*fitted.warnings, _UNSUMMARIZED)), None
        if opened is None:
            opened = advance(state, fitted, rules.place, measure=rules.measure)
        return next(reversed(fitted.receipts), None), opened

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
        span: Stretch = WHOLE,
    ) -> tuple[Plan, tuple[str, ...]]:
        """A compaction of a span, down to the goal before this turn, which is ``as_is`` now; and what is told of it."""
        asked = as_is or waiting(advance(state, turn, rules.place, measure=rules.measure))
        model = turn.model or state.model
        known = self._begin(model)
        course: Course | None = None
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
                room=int(WISHES_SHARE * rules.budget.limit),
                course=course,
                span=span,
            )
            course = plan.course
            if not plan.needs:
                return plan, list_warnings(known)
            self._fetch(plan.needs, known, state=state, model=model, rules=rules)

    def summarize(self, need: SummaryNeed, *, state: State, rules: Rules) -> SummaryText | None:
        """One summary that no compaction asks for; none where nobody writes any."""
        known = self._begin(state.model)
        if known is not None and need.key not in known:
            self._fetch([need], known, state=state, model=state.model, rules=rules)
        return None if known is None else known.get(need.key)

    def _begin(self, model: str | None) -> Fetched | None:
        """What is known of summaries by now: what was fetched for this very work, none where nobody writes any."""
        if self._fetcher is None or self._fetcher.find_model(model) is None:
            return None
        return begin_fetching()

    def _fetch(
        self, needs: Sequence[SummaryNeed], known: Fetched | None, *, state: State, model: str | None, rules: Rules
    ) -> None:
        """Fetch what is needed. Who has no summariser needs nothing."""
        if known is None or self._fetcher is None:
            return
        asked = self._fetcher.find_model(model)
        warnings: list[str] = []
        if asked and asked != model:
            needs, warnings = self._watch(needs, known, asked, rule=rules.secrets)
        order = SummaryOrder(
            needs=tuple(needs), into=known, model=model, last=state.last, head=state.head, window=rules.budget.window
        )
        # They wait with what is fetched: the work may be done again from its start.
        known.update((line, SummaryText(warning=line)) for line in warnings)
        if needs:
            fetch_summaries(self._fetcher, order)

    def _watch(
        self, needs: Sequence[SummaryNeed], known: Fetched, model: str, *, rule: SecretRule
    ) -> tuple[list[SummaryNeed], list[str]]:
        """What may be asked of a model that was not sent these texts yet, and what is told of secrets in them."""
        found = {
            need.key: find_secrets(need.alone or need.messages, model, watch=self._secrets, rule=rule) for need in needs
        }
        held = [need for need in needs if found[need.key] and rule is SecretRule.REFUSE]
        known.update((need.key, SummaryText(why=f"it would have read what {found[need.key][0]}")) for need in held)
        told = [f"What {model} was sent for a summary {place}." for places in found.values() for place in places]
        return [need for need in needs if need not in held], [] if rule is SecretRule.REFUSE else told


def list_warnings(known: Fetched | None) -> tuple[str, ...]:
    """What is to be told of having fetched summaries."""
    return tuple(dict.fromkeys(one.warning for one in (known or {}).values() if one.warning))
