"""The adapters that a conversation uses."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec import Struct

from lamella.conversation.note_selection import RankNotes, rank_by_words
from lamella.conversation.summaries import CallbackSummaryFetcher, SummaryFetcher
from lamella.conversation.turn import ModelAnswer
from lamella.core.ledger.entry import Pricing
from lamella.core.log.events.compaction import WorkflowSpec
from lamella.core.log.turn import RequestFingerprint
from lamella.core.messages import ToolOutput
from lamella.errors import InvalidOperationError
from lamella.ports import (
    CacheProfileRegistry,
    OpenSources,
    PriceTable,
    SecretScanner,
    SourceReaders,
    Summarizer,
    TokenizerRegistry,
    WireFormatRegistry,
)


class Adapters(Struct, frozen=True, kw_only=True):
    """The adapters that a conversation uses."""

    counter: TokenizerRegistry
    prices: PriceTable
    profiles: CacheProfileRegistry
    open_sources: OpenSources = SourceReaders
    summarizer: Summarizer | None = None
    summary_timeout: float = 60
    # Writes summaries if no summarizer is given.
    summary_fetcher: SummaryFetcher | None = None
    wire_formats: WireFormatRegistry | None = None
    # Ranks the notes of a folder for a question. A program that has an index of the notes can pass a better ranking.
    rank_notes: RankNotes = rank_by_words
    secret_scanner: SecretScanner | None = None
    # Whether the application log may contain the beginning of an answer.
    logs_text_preview: bool = False
    # Looks up a workflow by its name or path, in a language; None if workflows are not available.
    load_workflow: Callable[[str, str | None], WorkflowSpec] | None = None
    # Whether a question is sent with matching passages that are no longer in the prompt.
    recall_hints: bool = False

    def get_workflow(self, name_or_path: str, *, language: str | None = None) -> WorkflowSpec:
        """Return a workflow by its name or the path of its file, by default in its own language.

        Raises ``InvalidOperationError`` if workflows are not available here.
        """
        if self.load_workflow is None:
            raise InvalidOperationError("No workflow is known here.", hint="Work in a conversation that knows some.")
        return self.load_workflow(name_or_path, language)

    def get_pricing(self, model: str | None) -> Pricing:
        """Return the cache profile and prices of a model; without a model the pricing has no price function."""
        profile = self.profiles.get_cache_profile(model)
        return Pricing(profile=profile, price=partial(self.prices.price, model)) if model else Pricing(profile=profile)

    def get_summary_fetcher(self) -> SummaryFetcher | None:
        """Return the summary fetcher, or None; a summarizer that the program passed takes precedence."""
        return (
            CallbackSummaryFetcher(self.summarizer, timeout=self.summary_timeout)
            if self.summarizer
            else self.summary_fetcher
        )

    def parse_response(self, response: object) -> ModelAnswer:
        """Parse the response object of a provider's SDK into an answer."""
        if self.wire_formats is None:
            raise InvalidOperationError("No wire format is known here.", hint="Give the answer as a text.")
        return ModelAnswer(reply=self.wire_formats.parse_reply(response))


class LastSentTurn(Struct, frozen=True, kw_only=True):
    """Known facts about the turn that was sent last.

    ``asked_at`` is the time of the last question of the branch, ``sent_at`` that of the last request on any branch.
    ``response_id`` is the provider's id of its reply. ``seconds_since_previous_turn`` is the number of seconds between the turn
    before and this one, if this one still awaits its reply. ``keep_alive_times`` are the times at which it was sent
    again only to keep its cache entry.
    """

    asked_at: datetime | None = None
    sent_at: datetime | None = None
    response_id: str | None = None
    seconds_since_previous_turn: float | None = None
    fingerprint: RequestFingerprint | None = None
    keep_alive_times: tuple[datetime, ...] = ()


class AbandonedTurn(Struct, frozen=True, kw_only=True):
    """A turn that was followed by another one before it was answered.

    ``id`` is the id of its question. ``placeholder_outputs`` are placeholder outputs for the tool calls that were never
    run.
    """

    id: str
    placeholder_outputs: tuple[ToolOutput, ...] = ()
