"""Fit turns into the context window, and plan compactions before they are committed.

``TurnFitter`` fits a turn and fetches the summaries that the core asks for on the way. ``propose_compaction`` shows
what compacting now would remove and save, and ``resolve_range`` finds the turns between two messages.
``build_checked_request`` raises if a turn does not fit or breaks an invariant.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from lamella.clocks import measure_phase
from lamella.conversation.library import message_ids_by_alias
from lamella.conversation.summaries import (
    FetchedSummaries,
    SummariesNeeded,
    SummaryFetcher,
    SummaryRequestBatch,
    fetch_summaries,
    fetched_so_far,
    run_restarting_for_summaries,
)
from lamella.conversation.turn_reader import LabeledText, secret_warnings, with_secret_warnings
from lamella.core.budget import exceeds_share, should_compact, validate_share
from lamella.core.compaction.chain import CompactionPlan, CompactionProgress, plan_compaction
from lamella.core.compaction.draft import ALL_TURNS, TurnRange
from lamella.core.compaction.fitting import PromptSettings, check_fits, fit_turn
from lamella.core.compaction.summaries import SummaryRequest, SummaryResult
from lamella.core.ledger.cache_profile import CacheRequest
from lamella.core.ledger.entry import CompactionCostEstimate, Pricing, estimate_compaction_cost, to_cache_request
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import HistoryMode, SecretPolicy, Turn
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import Envelope, PromptTokenCounts, count_prompt_tokens, make_envelope
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import with_prefix_kept
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.ports import SecretScanner

__all__ = ["SummariesNeeded", "TurnFitter", "build_checked_request", "run_restarting_for_summaries", "summary_warnings"]

_NO_PREVIEW_SUMMARY_WARNING = (
    "No summary is asked for ahead: where a model writes one, that is sent instead of an outline."
)


def build_checked_request(
    pending_state: PromptState, settings: PromptSettings, *, previous_prompt: Prompt | None
) -> Envelope:
    """Build the request of a pending turn; raise if it does not fit or breaks an invariant.

    Some invariants compare it with ``previous_prompt``, the request before it.
    """
    envelope = make_envelope(get_pending_prompt(pending_state), settings.budget)
    if exceeds_share(envelope.total, settings.budget.hard, settings.budget):
        check_fits(envelope, settings.budget, attached=get_pending_prompt(pending_state).attached)
    check_invariants(envelope, before=previous_prompt)
    return envelope


def _list_new_texts(turn: Turn, state: PromptState) -> list[LabeledText]:
    """Return the texts that a turn is the first to send, each with a name for the user.

    If the turn has tool rounds, only the last tool outputs are new. If the model changes, everything in the prompt is
    new to it.
    """
    if turn.rounds:
        called = {call.id: call.name for call in turn.rounds[-1].calls}
        return [(f"what {called[one.call]} gave", one.output) for one in turn.rounds[-1].outputs]
    known = {} if turn.model not in (None, state.model) else state.library
    attached = (*turn.tool_results, *turn.attached)
    texts = [
        (str(one.id), one.text) for one in attached if one.id not in known or known[one.id].artifact.hash != one.hash
    ]
    texts.append(("what was typed", turn.text))
    if turn.rules is not None:
        texts += [("a rule", text) for one, text in turn.rules.added if one > state.turn_count]
    if turn.system is not None:
        texts += [(f"the system prompt's {name}", text) for name, text in turn.system.non_empty_parts()]
    if known is not state.library and state.turn_count:
        texts += [(str(name), entry.artifact.text) for name, entry in state.library.items()]
        texts += [
            (f"turn {one.turn_index + 1}", message.text) for one in state.history.turns for message in one.messages
        ]
    return texts


class TurnFitter:
    """Fits turns into the window, with or without a summarizer. It keeps no state between calls.

    Summaries that were fetched and used are part of the conversation. Failed summaries are requested again the next
    time, as they are when the conversation is opened again. Otherwise the two would send different bytes from then on.
    """

    def __init__(self, fetcher: SummaryFetcher | None, *, secrets: SecretScanner | None = None) -> None:
        self._fetcher = fetcher
        self._secret_scanner = secrets

    def without_summaries(self) -> "TurnFitter":
        """Return a fitter that asks no model for summaries, for previews and compactions that must not do so."""
        return TurnFitter(None, secrets=self._secret_scanner)

    def fit(
        self, state: PromptState, turn: Turn, settings: PromptSettings, *, message_ids: Sequence[str]
    ) -> tuple[Turn, PromptState]:
        """Return the turn, compacted or condensed if necessary, and the state that then awaits its reply.

        If a new text looks like a secret, the turn gets a warning, or ``SecretError`` is raised if the settings refuse
        secrets.
        """
        if self._secret_scanner is not None and settings.secrets is not SecretPolicy.OFF:
            texts, anchors = _list_new_texts(turn, state), self._secret_scanner.anchors
            # Nearly every text passes this check. Searching for fixed strings costs a fraction of counting tokens.
            if any(any(map(text.__contains__, anchors)) for _, text in texts):
                turn = with_secret_warnings(turn, state, texts, scanner=self._secret_scanner, policy=settings.secrets)
        # With the history mode ``strip`` a summary of hidden turns may be due although the turn fits.
        strips = turn.turn_settings.history is HistoryMode.STRIP and not turn.rounds
        retells = self._fetcher is not None and strips
        with measure_phase("render"):
            opened = advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer)
        if not retells and not should_compact(
            get_pending_prompt(opened).total, settings.budget, last_compacted_total=state.last_compacted_total
        ):
            return turn, opened
        with measure_phase("compaction"):
            return self._fit_by_compaction(state, turn, settings, path=message_ids)

    def _fit_by_compaction(
        self, state: PromptState, turn: Turn, settings: PromptSettings, *, path: Sequence[str]
    ) -> tuple[Turn, PromptState]:
        """Return the compacted turn, with summaries if they are due, and the state that awaits its reply."""
        model = turn.model or state.model
        known = self._summaries_fetched_so_far(model)
        while True:
            new_warnings = summary_warnings(known)
            asked = replace(turn, warnings=(*turn.warnings, *new_warnings)) if new_warnings else turn
            fitted, opened, needs = fit_turn(state, asked, settings, summaries=known, message_ids=path)
            if not needs:
                return fitted, opened
            self._fetch_summaries(needs, known, state=state, model=model, settings=settings)

    def preview_fit(
        self, state: PromptState, turn: Turn, settings: PromptSettings, *, path: Sequence[str]
    ) -> tuple[Turn, PromptState]:
        """Return the turn that ``fit`` would return without asking for summaries, and the resulting state.

        The state is returned even if the request would be too large to send. A turn without text is not fitted at all.
        """
        fitted, opened = TurnFitter(None).fit(state, turn, settings, message_ids=path) if turn.text else (turn, None)
        if fitted is not turn and self._summaries_fetched_so_far(turn.model or state.model) is not None:
            fitted, opened = replace(fitted, warnings=(*fitted.warnings, _NO_PREVIEW_SUMMARY_WARNING)), None
        if opened is None:
            opened = advance_by_turn(state, fitted, settings.plan_layout, tokenizer=settings.tokenizer)
        return fitted, opened

    def plan_compaction(
        self,
        state: PromptState,
        turn: Turn,
        settings: PromptSettings,
        *,
        target_tokens: int,
        soft_target_tokens: int | None = None,
        message_ids: Sequence[str],
        uncompacted_prompt: Prompt | None = None,
        automatic: bool = False,
        span: TurnRange = ALL_TURNS,
    ) -> tuple[CompactionPlan, tuple[str, ...]]:
        """Plan a compaction of ``span`` to ``target_tokens`` tokens before this turn; return the plan and warnings.

        Messages of the user are removed only down to ``soft_target_tokens``, by default to ``target_tokens`` as well.
        ``uncompacted_prompt`` is the request without the compaction; it is built if not given.
        """
        asked = uncompacted_prompt or get_pending_prompt(
            advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer)
        )
        model = turn.model or state.model
        known = self._summaries_fetched_so_far(model)
        progress: CompactionProgress | None = None
        while True:
            plan = plan_compaction(
                state,
                turn,
                settings.compaction_config_for(turn.turn_settings),
                tokenizer=settings.tokenizer,
                plan_layout=settings.plan_layout,
                window=settings.budget.window,
                current_prompt=asked,
                goal_tokens=target_tokens,
                summaries=known,
                message_ids=message_ids,
                automatic=automatic,
                soft_goal_tokens=soft_target_tokens,
                progress=progress,
                turn_range=span,
            )
            progress = plan.progress
            if not plan.summary_requests:
                return plan, summary_warnings(known)
            self._fetch_summaries(plan.summary_requests, known, state=state, model=model, settings=settings)

    def summarize(
        self, request: SummaryRequest, *, state: PromptState, settings: PromptSettings
    ) -> SummaryResult | None:
        """Fetch one summary that no compaction asks for; return None if there is no summarizer."""
        known = self._summaries_fetched_so_far(state.model)
        if known is not None and request.key not in known:
            self._fetch_summaries([request], known, state=state, model=state.model, settings=settings)
        return None if known is None else known.get(request.key)

    def _summaries_fetched_so_far(self, model: str | None) -> FetchedSummaries | None:
        """Return the summaries fetched so far for the current work, or None if there is no summarizer."""
        if self._fetcher is None or self._fetcher.summary_model(model) is None:
            return None
        return fetched_so_far()

    def _fetch_summaries(
        self,
        requests: Sequence[SummaryRequest],
        known: FetchedSummaries | None,
        *,
        state: PromptState,
        model: str | None,
        settings: PromptSettings,
    ) -> None:
        """Fetch these summaries into ``known``; does nothing without a summarizer."""
        if known is None or self._fetcher is None:
            return
        asked = self._fetcher.summary_model(model)
        warnings: list[str] = []
        # The chat model has been sent these texts already. Another model has not, so they are checked for secrets.
        if asked and asked != model:
            requests, warnings = self._withhold_secrets(requests, known, asked, policy=settings.secrets)
        batch = SummaryRequestBatch(
            requests=tuple(requests),
            results=known,
            model=model,
            last_prompt=state.last_prompt,
            head=state.head,
            window=settings.budget.window,
        )
        # Warnings are kept among the fetched summaries, because the work may be started again from its beginning.
        known.update((line, SummaryResult(warning=line)) for line in warnings)
        if requests:
            fetch_summaries(self._fetcher, batch)

    def _withhold_secrets(
        self, requests: Sequence[SummaryRequest], known: FetchedSummaries, model: str, *, policy: SecretPolicy
    ) -> tuple[list[SummaryRequest], list[str]]:
        """Return the summary requests that another model may be sent, and warnings about secrets in their texts."""
        found = {
            request.key: secret_warnings(
                request.standalone_messages or request.messages, model, scanner=self._secret_scanner, policy=policy
            )
            for request in requests
        }
        refused = [request for request in requests if found[request.key] and policy is SecretPolicy.REFUSE]
        known.update(
            (request.key, SummaryResult(failure=f"it would have read what {found[request.key][0]}"))
            for request in refused
        )
        new_warnings = [
            f"What {model} was sent for a summary {place}." for places in found.values() for place in places
        ]
        return [
            request for request in requests if request not in refused
        ], [] if policy is SecretPolicy.REFUSE else new_warnings


def summary_warnings(known: FetchedSummaries | None) -> tuple[str, ...]:
    """Return the warnings about fetched summaries, without duplicates."""
    return tuple(dict.fromkeys(one.warning for one in (known or {}).values() if one.warning))


# Proposals: what compacting now would remove and save.


class CompactionProposal(Struct, frozen=True, kw_only=True):
    """A planned compaction that is not committed, with its cost estimate.

    ``receipt`` is None if nothing would be gained. ``target_tokens`` is the target size in tokens. ``before`` and
    ``after`` are the token counts of the next request without any typed text. ``active_receipt_ids`` are the ids of the receipts
    that were active when it was planned.
    """

    receipt: CompactionReceipt | None
    target_tokens: int
    before: PromptTokenCounts
    cost_estimate: CompactionCostEstimate | None = None
    after: PromptTokenCounts | None = None
    active_receipt_ids: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CompactionRange(NamedTuple):
    """The messages between which a plan may compact; None leaves that side open."""

    since: str | None = None
    until: str | None = None


WHOLE_CONVERSATION = CompactionRange()


def resolve_range(state: PromptState, range_: CompactionRange) -> TurnRange:
    """Return the range of turns between two messages, given by id or as ``turn:3`` and ``reply:3``.

    Raises ``InvalidOperationError`` if a message is not in the prompt, or if the range is reversed.
    """
    if range_ == WHOLE_CONVERSATION:
        return ALL_TURNS
    names = message_ids_by_alias(state)
    turns = {message.id: one.turn_index for one in state.history.turns for message in one.messages}
    for name in (one for one in range_ if one is not None):
        if name not in names:
            raise InvalidOperationError(
                f"No message of the prompt is called {name!r}.",
                hint="Name a message by its id, or as turn:3 or reply:3; one that a compaction took out is none.",
            )
    first = 0 if range_.since is None else turns[names[range_.since]]
    last = None if range_.until is None else turns[names[range_.until]]
    if last is not None and last < first:
        raise InvalidOperationError(
            f"{range_.until} is before {range_.since}: there is nothing between them.",
            hint="Give since the earlier one, and until the later.",
        )
    return TurnRange(first=first, last=last, since_message="" if range_.since is None else names[range_.since])


def _check_prefix_unchanged(state: PromptState, planned: Prompt, since_message_id: str) -> None:
    """Raise ``InvalidOperationError`` if the next turn itself changes messages before ``since_message_id``."""
    kept_count = with_prefix_kept(state, since_message_id).kept_messages
    if (
        state.last_prompt is None
        or kept_count is None
        or state.last_prompt.messages[:kept_count] == planned.messages[:kept_count]
    ):
        return
    raise InvalidOperationError(
        f"The next turn moves what stands before {since_message_id} by itself: layout {planned.turn_settings.layout} takes what "
        "was attached or called for into the system message, so nothing before it could stay as it was sent.",
        hint="Compact without since, or ask once more without attaching anything and plan again.",
    )


def propose_compaction(
    state: PromptState,
    turn: Turn,
    settings: PromptSettings,
    *,
    range_: CompactionRange = WHOLE_CONVERSATION,
    fitter: TurnFitter,
    target_share: float | None,
    message_ids: Sequence[str],
    sent: CacheRequest | None,
    pricing: Pricing,
    at: datetime | None,
) -> CompactionProposal:
    """Plan a compaction before this turn down to a share of the limit, by default to the target."""
    budget = settings.budget
    goal = int((budget.target if target_share is None else validate_share(target_share)) * budget.limit)
    soft_goal = int(budget.soft_target * budget.limit) if target_share is None else None
    span = resolve_range(state, range_)
    as_is = get_pending_prompt(advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer))
    before = count_prompt_tokens(as_is, budget)
    # Folding alone may free a few tokens. If the request is below the goal, that does not justify a prefix change.
    if before.total <= goal:
        return CompactionProposal(receipt=None, target_tokens=goal, before=before)
    plan, warnings = fitter.plan_compaction(
        state,
        turn,
        settings,
        target_tokens=goal,
        soft_target_tokens=soft_goal,
        message_ids=message_ids,
        uncompacted_prompt=as_is,
        span=span,
    )
    if plan.receipt is None or plan.prompt is None:
        return CompactionProposal(receipt=None, target_tokens=goal, before=before, warnings=warnings)
    if span.since_message:
        _check_prefix_unchanged(state, plan.prompt, span.since_message)
    outlook = estimate_compaction_cost(
        sent,
        as_is=to_cache_request(as_is, at=at),
        compacted=to_cache_request(plan.prompt, at=at),
        pricing=pricing,
        tokenizer=settings.tokenizer,
        at=at,
    )
    after = count_prompt_tokens(plan.prompt, budget)
    return CompactionProposal(
        receipt=plan.receipt, target_tokens=goal, cost_estimate=outlook, before=before, after=after, warnings=warnings
    )
