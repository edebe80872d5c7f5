"""What a conversation works with: the adapters it walks through, and where it writes down what happens."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from msgspec import Struct

from lamella.core.ledger.entry import Tariff
from lamella.core.log.call import Call
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.stage import WorkflowSpec
from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply
from lamella.core.messages.rounds import ToolOutput
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.reading.choosing import Rank, rank_by_words
from lamella.engine.dialogue.summaries import GuestFetcher, SummaryFetcher
from lamella.errors import CallError
from lamella.ports import Dialects, Look, PriceBook, ProfileBook, SecretWatch, Sources, Summarizer, TokenCounter


class World(Struct, frozen=True, kw_only=True):
    """The adapters a conversation walks through."""

    counter: TokenCounter
    prices: PriceBook
    profiles: ProfileBook
    sources: Look = Sources
    summarizer: Summarizer | None = None
    summary_timeout: float = 60
    # Who writes summaries where no summariser is given.
    fetcher: SummaryFetcher | None = None
    dialects: Dialects | None = None
    # The seam for a better ranking than by words: whoever has an index of the notes gives its own.
    rank: Rank = rank_by_words
    secrets: SecretWatch | None = None
    # Whether the log of the program may show how an answer begins.
    log_preview: bool = False
    # Workflows by name or path, for whoever works in stages.
    workflows: Callable[[str], WorkflowSpec] | None = None
    # Whether what left the prompt and speaks of the same goes with a question.
    recall_hints: bool = False

    def find_workflow(self, name: str) -> WorkflowSpec:
        """A workflow by its name or the path of its file."""
        if self.workflows is None:
            raise CallError("No workflow is known here.", hint="Work in a conversation that knows some.")
        return self.workflows(name)

    def tariff(self, model: str | None) -> Tariff:
        """How a turn that goes to a model is billed."""
        profile = self.profiles.profile(model)
        return Tariff(profile=profile, price=partial(self.prices.price, model)) if model else Tariff(profile=profile)

    def find_fetcher(self) -> SummaryFetcher | None:
        """Who fetches summaries: a summariser that is given comes first."""
        return GuestFetcher(self.summarizer, timeout=self.summary_timeout) if self.summarizer else self.fetcher

    def read_answer(self, given: object) -> Answer:
        """What a model answered, from the object that a provider's SDK gave."""
        if self.dialects is None:
            raise CallError("No wire format is known here.", hint="Give the answer as a text.")
        return Answer(reply=self.dialects.read(given))


class SentTurn(Struct, frozen=True, kw_only=True):
    """What is known of the turn that was sent last: when, the provider's name for its answer, and what it sent then.

    ``pause`` is how long before it the turn before was asked, in seconds, where it waits. ``kept`` is when it was sent
    again since, only to keep it in the cache.
    """

    asked_at: datetime | None = None
    answered_by: str | None = None
    pause: float | None = None
    imprint: Imprint | None = None
    kept: tuple[datetime, ...] = ()


class LeftTurn(Struct, frozen=True, kw_only=True):
    """A turn that another one follows before it was answered: the id of its question, and the calls nobody made."""

    id: str
    skipped: tuple[ToolOutput, ...] = ()


class Journal(Protocol):
    """Where turns and replies are written down before they count as asked and answered."""

    def write_turn(
        self,
        turn: Turn,
        *,
        message: str,
        parent: str,
        left: LeftTurn | None,
        receipt: Receipt | None,
        at: datetime | None,
    ) -> None:
        """A turn after its parent, as the message of this id, with what is compacted before it.

        The turn that is ``left`` gets an empty reply.
        """
        ...

    def write_calls(self, reply: Reply, *, parent: str, at: datetime | None, call: Call) -> None:
        """What the model asks of its tools in answer to a question, before any of it is done."""
        ...

    def write_results(self, outputs: Sequence[ToolOutput], *, parent: str, at: datetime | None) -> None:
        """What the tools gave back for the calls written last."""
        ...

    def write_reply(
        self, given: Answer, *, message: str, parent: str, at: datetime | None, calls: Sequence[Call] = ()
    ) -> None:
        """What the turn asked last was answered with, as the message of this id."""
        ...

    def write_receipt(self, receipt: Receipt, *, at: datetime | None, before: str | None = None) -> None: ...
