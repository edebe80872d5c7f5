"""Conversations for tests of compaction: four characters are a token, and messages have no overhead."""

from collections.abc import Sequence
from typing import NamedTuple

from lamella.core.artifacts.kinds import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.budget import TokenBudget, Tokenizer
from lamella.core.compaction.chain import CompactionPlan, CompactionProgress, plan_compaction
from lamella.core.compaction.draft import PromptDraft, make_draft
from lamella.core.compaction.fitting import PromptSettings, check_fits, fit_turn
from lamella.core.compaction.rules import CompactionConfig, resolve_stages
from lamella.core.compaction.summaries import Summaries, SummaryRequest
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import LayoutMode, Turn, TurnSettings
from lamella.core.prompt.advance import add_reply_to_waiting_turn, advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import apply_receipt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.settings.word_lists import load_word_lists

QUARTERS = Tokenizer(
    name="quarters",
    count=lambda text: -(-len(text) // 4),
    encode=lambda text: list(text.encode()),
    count_image=lambda width, height: width * height,
    tokens_per_message=0,
    tokens_per_request=0,
    count_factor=1.0,
)
WORD_LISTS = load_word_lists()
ROOM = TokenBudget(window=1_000_000, reserve=0)
NOW = Turn(text="And now?")
FOLDING = Turn(text="And now?", fold=True)


IN_PLACE = TurnSettings(layout=LayoutMode.IN_PLACE)
LIBRARY = TurnSettings(layout=LayoutMode.LIBRARY)


def make_rules(chain: CompactionConfig | None = None, *, budget: TokenBudget = ROOM) -> PromptSettings:
    config = replace(chain or CompactionConfig(), words=WORD_LISTS)
    return PromptSettings(tokenizer=QUARTERS, plan_layout=choose_layout, budget=budget, compaction_config=config)


class Fit(NamedTuple):
    """A turn made to fit: what had to be compacted for it, the state before it, and what is sent."""

    state: PromptState
    receipt: CompactionReceipt | None
    envelope: Envelope
    needs: tuple[SummaryRequest, ...]


class Story:
    """A conversation under way: every turn is opened and answered, and the ids of its messages are kept."""

    def __init__(self, rules: PromptSettings | None = None, terms: TurnSettings = IN_PLACE) -> None:
        self.rules = rules or make_rules()
        self.terms = terms
        self.state = PromptState(conversation="story", tokenizer_name=QUARTERS.name)
        self.path: list[str] = []

    def bind(self, turn: Turn) -> Turn:
        """The turn under the terms of this story."""
        return replace(turn, turn_settings=self.terms)

    def open(self, turn: Turn = NOW) -> PromptState:
        """The state in which a turn waits for its reply."""
        return advance_by_turn(self.state, self.bind(turn), self.rules.plan_layout, tokenizer=self.rules.tokenizer)

    def say(self, text: str, reply: str, turn: Turn | None = None) -> "Story":
        """One more turn, as typed or as given, and its answer."""
        opened = self.open(replace(turn or NOW, text=text))
        self.state = add_reply_to_waiting_turn(opened, reply)
        self.path += [opened.head, self.state.head]
        return self

    def tokens(self, turn: Turn = NOW) -> int:
        return self.prompt(turn).total

    def prompt(self, turn: Turn = NOW) -> Prompt:
        """What would be sent as things are."""
        return get_pending_prompt(
            advance_by_turn(self.state, self.bind(turn), self.rules.plan_layout, tokenizer=self.rules.tokenizer)
        )

    def plan(
        self,
        *,
        goal: int = 0,
        turn: Turn = NOW,
        summaries: Summaries | None = None,
        course: CompactionProgress | None = None,
    ) -> CompactionPlan:
        """What the chain would do before a turn."""
        return plan_compaction(
            self.state,
            self.bind(turn),
            self.rules.compaction_config,
            tokenizer=self.rules.tokenizer,
            plan_layout=self.rules.plan_layout,
            window=self.rules.budget.window,
            current_prompt=self.prompt(turn),
            goal_tokens=goal,
            summaries=summaries,
            message_ids=self.path,
            progress=course,
        )

    def compact(self, *, goal: int = 0, turn: Turn = NOW, summaries: Summaries | None = None) -> CompactionReceipt:
        """Do what the chain would do."""
        receipt = self.plan(goal=goal, turn=turn, summaries=summaries).receipt
        assert receipt is not None
        self.apply(receipt)
        return receipt

    def apply(self, receipt: CompactionReceipt) -> None:
        self.state = apply_receipt(self.state, receipt, self.terms, tokenizer=self.rules.tokenizer)

    def draft(self, *, goal: int = 0, turn: Turn = NOW) -> PromptDraft:
        stages, _ = resolve_stages(self.rules.compaction_config.stages, self.path)
        return make_draft(
            self.state,
            self.bind(turn),
            config=self.rules.compaction_config,
            tokenizer=self.rules.tokenizer,
            plan_layout=self.rules.plan_layout,
            window=self.rules.budget.window,
            goal_tokens=goal,
            stages=stages,
        )

    def fit(self, turn: Turn = NOW, summaries: Summaries | None = None) -> Fit:
        """The turn made to fit, as it would be sent; raises where it cannot be. Nothing is kept of it."""
        fitted, opened, needs = fit_turn(
            self.state, self.bind(turn), self.rules, summaries=summaries, message_ids=self.path
        )
        envelope = make_envelope(get_pending_prompt(opened), self.rules.budget)
        if needs:
            return Fit(self.state, None, envelope, needs)
        check_invariants(envelope, before=self.state.last_prompt)
        check_fits(envelope, self.rules.budget)
        state = self.state
        for receipt in fitted.receipts:
            state = apply_receipt(state, receipt, self.terms, tokenizer=self.rules.tokenizer)
        return Fit(state, fitted.receipts[-1] if fitted.receipts else None, envelope, ())

    def ask(self, turn: Turn = NOW) -> Envelope:
        """The envelope that a turn would have, built and checked; nothing is kept of it."""
        envelope = make_envelope(get_pending_prompt(self.open(turn)), self.rules.budget)
        check_invariants(envelope, before=self.state.last_prompt)
        return envelope

    def sent(self, turn: Turn = NOW) -> str:
        return "\n".join(message.text for message in self.ask(turn).messages)


def note(
    name: str, text: str, *, policy: AttachmentPolicy | None = None, kind: ArtifactKind = ArtifactKind.NOTE
) -> Artifact:
    return make_artifact(kind, text=text, source=ArtifactSource(path=name), title=name, policy=policy)


def selection(name: str, text: str) -> Artifact:
    return make_artifact(ArtifactKind.SELECTED_TEXT, text=text, source=ArtifactSource(path=name), title=name)


def result(query: str, output: str) -> Artifact:
    return make_tool_result("search", arguments={"q": query}, output=output)


def attaching(*artifacts: Artifact) -> Turn:
    """A turn with these attachments; tool results among them as results."""
    results = tuple(one for one in artifacts if one.kind is ArtifactKind.TOOL)
    return replace(
        NOW, attached=tuple(one for one in artifacts if one.kind is not ArtifactKind.TOOL), tool_results=results
    )


def chat(turns: int, *, words: int = 50, rules: PromptSettings | None = None) -> Story:
    """Plain talk: numbered questions and long answers."""
    story = Story(rules)
    for number in range(turns):
        story.say(f"Question {number}: why?", f"Answer {number}. " + "because " * words)
    return story


def names(receipt: CompactionReceipt | None) -> list[str]:
    """The steps of a receipt by name."""
    return [step.name.value for step in receipt.steps] if receipt else []


def removed(receipt: CompactionReceipt | None, name: str) -> Sequence[str]:
    """What the steps of a name took out."""
    return [one for step in (receipt.steps if receipt else ()) if step.name == name for one in step.removed]
