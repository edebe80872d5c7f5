"""Conversations for tests of compaction: four characters are a token, and messages weigh nothing beside their text."""

from collections.abc import Sequence
from typing import NamedTuple

from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.chain import Course, Plan, plan_compaction
from lamella.core.compaction.draft import Draft, begin_draft
from lamella.core.compaction.fitting import Rules, check_fits, fit_turn
from lamella.core.compaction.rules import ChainRules
from lamella.core.compaction.stages import resolve_stages
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Layout, Terms
from lamella.core.log.turn import Turn
from lamella.core.planning.layouts import place
from lamella.core.prompt.advance import advance, answer, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import apply_receipt
from lamella.core.prompt.state import State
from lamella.core.values import replace

QUARTERS = Measure(
    name="quarters",
    count=lambda text: -(-len(text) // 4),
    encode=lambda text: list(text.encode()),
    count_image=lambda width, height: width * height,
    per_message=0,
    per_request=0,
    factor=1.0,
)
ROOM = Budget(window=1_000_000, reserve=0)
NOW = Turn(text="And now?")
FOLDING = Turn(text="And now?", fold=True)


IN_PLACE = Terms(layout=Layout.IN_PLACE)
LIBRARY = Terms(layout=Layout.LIBRARY)


def make_rules(chain: ChainRules | None = None, *, budget: Budget = ROOM) -> Rules:
    return Rules(measure=QUARTERS, place=place, budget=budget, chain=chain or ChainRules())


class Fit(NamedTuple):
    """A turn made to fit: what had to be compacted for it, the state before it, and what is sent."""

    state: State
    receipt: Receipt | None
    envelope: Envelope
    needs: tuple[SummaryNeed, ...]


class Story:
    """A conversation under way: every turn is opened and answered, and the ids of its messages are kept."""

    def __init__(self, rules: Rules | None = None, terms: Terms = IN_PLACE) -> None:
        self.rules = rules or make_rules()
        self.terms = terms
        self.state = State(conversation="story", measured_by=QUARTERS.name)
        self.path: list[str] = []

    def bind(self, turn: Turn) -> Turn:
        """The turn under the terms of this story."""
        return replace(turn, terms=self.terms)

    def open(self, turn: Turn = NOW) -> State:
        """The state in which a turn waits for its reply."""
        return advance(self.state, self.bind(turn), self.rules.place, measure=self.rules.measure)

    def say(self, text: str, reply: str, turn: Turn | None = None) -> "Story":
        """One more turn, as typed or as given, and its answer."""
        opened = self.open(replace(turn or NOW, text=text))
        self.state = answer(opened, reply)
        self.path += [opened.head, self.state.head]
        return self

    def tokens(self, turn: Turn = NOW) -> int:
        return self.prompt(turn).total

    def prompt(self, turn: Turn = NOW) -> Prompt:
        """What would be sent as things stand."""
        return waiting(advance(self.state, self.bind(turn), self.rules.place, measure=self.rules.measure))

    def plan(
        self,
        *,
        goal: int = 0,
        turn: Turn = NOW,
        summaries: Summaries | None = None,
        course: Course | None = None,
    ) -> Plan:
        """What the chain would do before a turn."""
        return plan_compaction(
            self.state,
            self.bind(turn),
            self.rules.chain,
            measure=self.rules.measure,
            place=self.rules.place,
            window=self.rules.budget.window,
            as_is=self.prompt(turn),
            goal=goal,
            summaries=summaries,
            path=self.path,
            course=course,
        )

    def compact(self, *, goal: int = 0, turn: Turn = NOW, summaries: Summaries | None = None) -> Receipt:
        """Do what the chain would do."""
        receipt = self.plan(goal=goal, turn=turn, summaries=summaries).receipt
        assert receipt is not None
        self.apply(receipt)
        return receipt

    def apply(self, receipt: Receipt) -> None:
        self.state = apply_receipt(self.state, receipt, self.terms, measure=self.rules.measure)

    def draft(self, *, goal: int = 0, turn: Turn = NOW) -> Draft:
        stages, _ = resolve_stages(self.rules.chain.stages, self.path)
        return begin_draft(
            self.state,
            self.bind(turn),
            chain=self.rules.chain,
            measure=self.rules.measure,
            place=self.rules.place,
            window=self.rules.budget.window,
            goal=goal,
            stages=stages,
        )

    def fit(self, turn: Turn = NOW, summaries: Summaries | None = None) -> Fit:
        """The turn made to fit, as it would be sent; raises where it cannot be. Nothing is kept of it."""
        fitted, opened, needs = fit_turn(self.state, self.bind(turn), self.rules, summaries=summaries, path=self.path)
        envelope = make_envelope(waiting(opened), self.rules.budget)
        if needs:
            return Fit(self.state, None, envelope, needs)
        check_laws(envelope, before=self.state.last)
        check_fits(envelope, self.rules.budget)
        state = self.state
        for receipt in fitted.receipts:
            state = apply_receipt(state, receipt, self.terms, measure=self.rules.measure)
        return Fit(state, fitted.receipts[-1] if fitted.receipts else None, envelope, ())

    def ask(self, turn: Turn = NOW) -> Envelope:
        """The envelope that a turn would have, built and checked; nothing is kept of it."""
        envelope = make_envelope(waiting(self.open(turn)), self.rules.budget)
        check_laws(envelope, before=self.state.last)
        return envelope

    def sent(self, turn: Turn = NOW) -> str:
        return "\n".join(message.text for message in self.ask(turn).messages)


def note(name: str, text: str, *, policy: Policy | None = None, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name), title=name, policy=policy)


def selection(name: str, text: str) -> Artifact:
    return make_artifact(Kind.SELECTED_TEXT, text=text, source=Source(path=name), title=name)


def result(query: str, output: str) -> Artifact:
    return make_tool_result("search", arguments={"q": query}, output=output)


def attaching(*artifacts: Artifact) -> Turn:
    """A turn with these attachments; tool results among them as results."""
    results = tuple(one for one in artifacts if one.kind is Kind.TOOL)
    return replace(NOW, attached=tuple(one for one in artifacts if one.kind is not Kind.TOOL), results=results)


def chat(turns: int, *, words: int = 50, rules: Rules | None = None) -> Story:
    """Plain talk: numbered questions and long answers."""
    story = Story(rules)
    for number in range(turns):
        story.say(f"Question {number}: why?", f"Answer {number}. " + "because " * words)
    return story


def names(receipt: Receipt | None) -> list[str]:
    """The steps of a receipt by name."""
    return [step.name.value for step in receipt.steps] if receipt else []


def removed(receipt: Receipt | None, name: str) -> Sequence[str]:
    """What the steps of a name took out."""
    return [one for step in (receipt.steps if receipt else ()) if step.name == name for one in step.removed]
