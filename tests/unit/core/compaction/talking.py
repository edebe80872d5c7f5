"""Conversations for tests of compaction: four characters are a token, and messages weigh nothing beside their text."""

from collections.abc import Sequence

from lamella.core.prompt.applying import apply_receipt
from lamella.core.prompt.turns import close_turn, open_turn

from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.asking import Summaries
from lamella.core.compaction.chain import Plan, plan_compaction
from lamella.core.compaction.draft import Draft, begin_draft, weigh_turn
from lamella.core.compaction.rules import Compaction
from lamella.core.compaction.stages import resolve_stages
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import CarryForward, History, Layout
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.state import Rules, State
from lamella.core.values import replace

QUARTERS = Measure(
    name="quarters",
    count=lambda text: -(-len(text) // 4),
    encode=lambda text: list(text.encode()),
    count_image=lambda width, height: width * height,
    per_message=0,
    per_request=0,
    factor=1.0,
    error="none",
)
ROOM = Budget(window=1_000_000, reserve=0)
NOW = TurnInput(text="And now?")
FOLDING = TurnInput(text="And now?", fold=True)


def make_rules(
    compaction: Compaction | None = None,
    *,
    layout: Layout = Layout.IN_PLACE,
    budget: Budget = ROOM,
    history: History = History.FULL,
    history_turns: int | None = None,
    carry_forward: CarryForward = CarryForward.FULL,
) -> Rules:
    return Rules(
        measure=QUARTERS,
        layout=layout,
        budget=budget,
        compaction=compaction or Compaction(),
        history=history,
        history_turns=history_turns,
        carry_forward=carry_forward,
    )


class Story:
    """A conversation under way: every turn is opened and answered, and the ids of its messages are kept."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or make_rules()
        self.state = State(conversation="story", measured_by=QUARTERS.name)
        self.path: list[str] = []

    def say(self, text: str, reply: str, turn: TurnInput | None = None) -> "Story":
        """One more turn, as typed or as given, and its answer."""
        opened = open_turn(self.state, replace(turn or NOW, text=text), self.rules)
        self.state = close_turn(opened, reply, self.rules)
        self.path += [opened.user.id, self.state.head]
        return self

    def tokens(self, turn: TurnInput = NOW) -> int:
        return weigh_turn(self.state, turn, self.rules)

    def plan(self, *, goal: int = 0, turn: TurnInput = NOW, summaries: Summaries | None = None) -> Plan:
        """What the chain would do before a turn."""
        return plan_compaction(
            self.state,
            turn,
            self.rules,
            tokens=self.tokens(turn),
            goal=goal,
            summaries=summaries,
            path=self.path,
        )

    def compact(self, *, goal: int = 0, turn: TurnInput = NOW, summaries: Summaries | None = None) -> Receipt:
        """Do what the chain would do."""
        receipt = self.plan(goal=goal, turn=turn, summaries=summaries).receipt
        assert receipt is not None
        self.state = apply_receipt(self.state, receipt, self.rules)
        return receipt

    def draft(self, *, goal: int = 0, turn: TurnInput = NOW) -> Draft:
        stages = resolve_stages(self.rules.compaction.stages, self.path).stages
        return begin_draft(self.state, turn, self.rules, goal=goal, stages=stages)

    def ask(self, turn: TurnInput = NOW) -> Envelope:
        """The envelope that a turn would have, built and checked; nothing is kept of it."""
        return open_turn(self.state, turn, self.rules).envelope

    def sent(self, turn: TurnInput = NOW) -> str:
        return "\n".join(message.text for message in self.ask(turn).messages)


def note(name: str, text: str, *, policy: Policy | None = None, kind: Kind = Kind.NOTE) -> Artifact:
    return make_artifact(kind, text=text, source=Source(path=name), title=name, policy=policy)


def selection(name: str, text: str) -> Artifact:
    return make_artifact(Kind.SELECTED_TEXT, text=text, source=Source(path=name), title=name)


def result(query: str, output: str) -> Artifact:
    return make_tool_result("search", arguments={"q": query}, output=output)


def attaching(*artifacts: Artifact) -> TurnInput:
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
