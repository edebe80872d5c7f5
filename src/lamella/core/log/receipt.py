"""The receipt: what a compaction did, in the words in which it can be shown, repeated and undone."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from lamella.core.text.content import canonical_json, short_hash
from lamella.core.values import describe


class StepName(StrEnum):
    """The steps of the chain, as receipts name them."""

    CHITCHAT = "chitchat"
    HANDLE = "handle"
    PREVIEW = "preview"
    TOOL_RESULTS = "tool_results"
    OLDEST_STAGES = "oldest_stages"
    REPLIES = "replies"
    SUMMARY = "summary"
    RECENT_STAGES = "recent_stages"
    EXPENDABLE = "expendable"
    # What the user wished for in messages that went stays: no step of the chain, and the last of a receipt.
    RULES = "rules"


STEP_ORDER: tuple[StepName, ...] = tuple(name for name in StepName if name is not StepName.RULES)
# By which rules a receipt is applied. Under 1 every handle was a block of its own and no reply went without its
# question; receipts of then are applied as they were made, so that what was sent once is sent again.
CHAIN = 2
# Ids of messages are hexadecimal, so no name of a stage is one.
_STAGE = "stage:"


def name_stage(stage: str, attempt: int) -> str:
    """The data of a stage as receipts name it, as it was approved for the nth time."""
    return f"{_STAGE}{stage}:{attempt}"


def is_stage(name: str) -> bool:
    """Whether a receipt means the data of a stage by a name."""
    return name.startswith(_STAGE)


class Step(Struct, frozen=True, kw_only=True):
    """What one step takes out: ids of messages or artifacts, and the block that stands in for them, if any.

    ``content`` is what that block tells. ``gists`` are what outlines of replies tell, in the order of ``removed``,
    where that was written down. The tokens are those of the whole request before and after the step.
    """

    name: StepName
    removed: tuple[str, ...]
    text: str | None = None
    content: str = ""
    gists: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0

    def __repr__(self) -> str:
        return describe(self, without=("text", "content", "gists"))


class Skip(Struct, frozen=True, kw_only=True):
    """A step that could have run and did not, and why."""

    name: StepName
    why: str


class Certificate(NamedTuple):
    """Of exact words and standing wishes in what a compaction touched: how many stand, are recallable, are gone."""

    words: tuple[int, int, int] = (0, 0, 0)
    rules: tuple[int, int, int] = (0, 0, 0)

    @property
    def gone(self) -> int:
        return self.words[2] + self.rules[2]


class Receipt(Struct, frozen=True, kw_only=True):
    """A compaction: its steps in order. What it took out of the request is still in the log.

    ``parent`` is the message it was committed after. Without steps it only folded what stood in messages. ``chain``
    says by which rules it is applied; the ``certificate`` accounts for what it touched. With ``since`` nothing before
    that message moved: nothing folded, and no question went.
    """

    id: str
    parent: str
    steps: tuple[Step, ...]
    skipped: tuple[Skip, ...] = ()
    tokens_before: int
    tokens_after: int
    target: int
    automatic: bool = True
    chain: int = 1
    certificate: Certificate | None = None
    since: str = ""


def find_voided(names: Sequence[str], receipt: str | None) -> int | None:
    """From which of these compactions on an undo voids them: the one named, by default the last; none if none is.

    All later ones go with it: they were made from what it left.
    """
    if receipt is None:
        return len(names) - 1 if names else None
    return names.index(receipt) if receipt in names else None


def make_receipt(
    conversation: str,
    *,
    parent: str,
    steps: tuple[Step, ...],
    skipped: tuple[Skip, ...],
    tokens: tuple[int, int],
    target: int,
    automatic: bool,
    chain: int = CHAIN,
    certificate: Certificate | None = None,
    since: str = "",
) -> Receipt:
    """A receipt, named by what it does and where."""
    cuts = [[step.name, list(step.removed), step.text or ""] for step in steps]
    told = [conversation, parent, cuts, list(tokens), target, *([since] if since else [])]
    return Receipt(
        id=short_hash(canonical_json(told)),
        parent=parent,
        steps=steps,
        skipped=skipped,
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        target=target,
        automatic=automatic,
        chain=chain,
        certificate=certificate,
        since=since,
    )
