"""The receipt: what a compaction did, in the words in which it can be shown, repeated and undone."""

from dataclasses import dataclass, field
from enum import StrEnum

from lamella.core.artifacts.make import canonical_json
from lamella.core.text.content import short_hash


class StepName(StrEnum):
    """The steps of the chain, as receipts name them."""

    CHITCHAT = "chitchat"
    PREVIEW = "preview"
    HANDLE = "handle"
    TOOL_RESULTS = "tool_results"
    OLDEST_STAGES = "oldest_stages"
    SUMMARY = "summary"
    RECENT_STAGES = "recent_stages"
    EXPENDABLE = "expendable"


STEP_ORDER: tuple[StepName, ...] = tuple(StepName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What one step takes out: ids of messages or artifacts, and the block that stands in for them, if any."""

    name: StepName
    removed: tuple[str, ...]
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A cut as it was made, with the tokens of the whole request before and after it."""

    cut: Cut
    tokens_before: int
    tokens_after: int

    @property
    def name(self) -> StepName:
        return self.cut.name

    @property
    def removed(self) -> tuple[str, ...]:
        return self.cut.removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A step that could have run and did not, and why."""

    name: StepName
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A compaction: its steps in order. What it took out of the request is still in the log.

    ``parent`` is the message it was committed after. Without steps it only folded what stood in messages.
    """

    id: str
    parent: str
    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...] = ()
    tokens_before: int
    tokens_after: int
    target: int
    automatic: bool = True


def make_receipt(
    conversation: str,
    *,
    parent: str,
    steps: tuple[Step, ...],
    skipped: tuple[Skipped, ...],
    tokens: tuple[int, int],
    target: int,
    automatic: bool,
) -> Receipt:
    """A receipt, named by what it does and where."""
    cuts = [[step.name, list(step.removed), step.cut.text or ""] for step in steps]
    return Receipt(
        id=short_hash(canonical_json([conversation, parent, cuts, list(tokens), target])),
        parent=parent,
        steps=steps,
        skipped=skipped,
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        target=target,
        automatic=automatic,
    )
