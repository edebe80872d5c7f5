"""The cache ledger of a conversation between turns, and the log lines about turns and calls.

``UsageTracker`` tracks what was sent and when, and the cost of each model call. ``log_turn`` and
``log_auxiliary_call`` write one line each with ids, hashes and numbers. The lines contain no API key, and no text
unless a setting allows a preview of the answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from logging import INFO, WARNING, getLogger

from lamella.clocks import PHASES
from lamella.conversation.adapters import Adapters, LastSentTurn
from lamella.conversation.library import reattach_missing
from lamella.conversation.shared_prefixes import SharedPrefixRegistry
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnLedger
from lamella.core.budget import TokenBudget, count_request_tokens, count_tools_tokens
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.layout.costs import ADVANCE_PLANNERS, changes_prefix_anyway
from lamella.core.layout.layouts import plan_restored_texts
from lamella.core.layout.shared_prefix import shared_prefix_key, with_shared_prefix
from lamella.core.ledger.cache_profile import NO_COMMON_PREFIX, CacheRequest, CacheSimulation
from lamella.core.ledger.entry import (
    CacheLedger,
    LedgerEntry,
    Pricing,
    add_predicted_turn,
    find_breakpoint_candidates,
    make_answer_call,
    make_auxiliary_call,
    make_prefix_report,
    to_cache_request,
    with_comparison_caches_filled,
)
from lamella.core.log.call import ModelCall, PrefixChangeCause
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.log.turn import (
    BreakpointMode,
    HistoryChangeReason,
    LayoutPlan,
    ReasoningEffort,
    RequestFingerprint,
    Turn,
)
from lamella.core.messages import ModelRequest
from lamella.core.prompt.advance import LayoutPlanner, advance_by_turn, get_pending_prompt, with_turn_overrides
from lamella.core.prompt.envelope import Envelope, hash_request, make_envelope, make_fingerprint
from lamella.core.prompt.layers.model import LAYER_ORDER, build_system_layer
from lamella.core.prompt.prefix_change import is_prefix_of
from lamella.core.prompt.prompt import RENDERER_VERSION, Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

TURN_LOGGER = getLogger("lamella.turns")
CALL_LOGGER = getLogger("lamella.calls")
_RATIO_DIGITS = 3
# Maximum characters of an answer preview.
_MAX_PREVIEW_CHARS = 200


def log_turn(
    prompt: Prompt,
    fingerprint: RequestFingerprint,
    *,
    entry: LedgerEntry | None,
    calls: Sequence[ModelCall],
    level: int,
    text: str = "",
    with_preview: bool = False,
) -> None:
    """Log an answered turn in one line; the record has the same data as a mapping in ``record.turn``.

    ``text`` is the answer. Its length is logged, and a preview only if ``with_preview``.
    """
    fields = {
        **describe_turn(prompt, fingerprint, entry=entry, calls=calls),
        "length": len(text),
        **({"preview": preview_text(text)} if with_preview else {}),
    }
    TURN_LOGGER.log(level, "turn %s", _format_log_fields(fields), extra={"turn": fields})


def log_auxiliary_call(conversation_key: str, call: ModelCall) -> None:
    """Log an auxiliary call in one line; the record has the same data as a mapping in ``record.call``."""
    usage, billed = call.usage, call.billed
    fields = {
        "conversation": conversation_key,
        "purpose": call.purpose,
        "model": call.model,
        "plain": usage.plain,
        "read": usage.read,
        "write": usage.write,
        "write_long": usage.write_long,
        "output": usage.output,
        "cost": None if billed is None else float(billed),
        "total": call.timing.total,
    }
    CALL_LOGGER.info("call %s", _format_log_fields(fields), extra={"call": fields})


def describe_turn(
    prompt: Prompt, fingerprint: RequestFingerprint, *, entry: LedgerEntry | None, calls: Sequence[ModelCall]
) -> Mapping[str, str | int | float | None]:
    """Return the data of a turn for its log record; unknown values are None.

    The part of the prompt that changed is not included: it may be a URL that contains a key.
    """
    timings = [call.timing for call in calls]
    segments = dict(zip((f"segments_{layer.value}" for layer in LAYER_ORDER), fingerprint.segments, strict=False))
    return {
        "conversation": prompt.conversation_id,
        "message": prompt.message_id,
        "model": prompt.model,
        "renderer": fingerprint.renderer,
        "system": fingerprint.system,
        "library": fingerprint.library,
        "prefix": fingerprint.prefix,
        "whole": fingerprint.whole,
        "cause": _prefix_change_cause(entry, calls),
        "triggered": None if entry is None else int(entry.prefix.triggered),
        "outcome": calls[0].verdict.outcome.value if calls else None,
        "calls": len(calls),
        "tokens": prompt.total,
        "predicted": _sum_known(call.predicted.read for call in calls if call.predicted is not None),
        "cached": _sum_known(call.usage.read for call in calls),
        "used": sum_used_tokens(calls),
        "build": _sum_known(timing.build for timing in timings),
        **{f"build_{phase}": _sum_known(timing.phases.get(phase) for timing in timings) for phase in PHASES},
        "first": timings[0].first if timings else None,
        "total": _sum_known(timing.total for timing in timings),
        **segments,
        "dedup_ratio": round(fingerprint.dedup_ratio, _RATIO_DIGITS),
        "compacted_share": round(fingerprint.compacted_share, _RATIO_DIGITS),
        "unparsed": fingerprint.unparsed,
    }


def sum_used_tokens(calls: Iterable[ModelCall]) -> int | None:
    """Return the input and output tokens of calls as reported by the provider, or None if not reported."""
    usages = [call.usage for call in calls]
    known = [one.prompt_tokens + (one.output or 0) for one in usages if one.prompt_tokens is not None]
    return sum(known) if known else None


def preview_text(text: str) -> str:
    """Return the beginning of a text on one line, with control characters escaped."""
    # Look at more text than is shown, because runs of white space become one blank.
    line = " ".join(text[: _MAX_PREVIEW_CHARS * 10].split())
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
    return (
        plain
        if len(plain) <= _MAX_PREVIEW_CHARS and len(text) <= _MAX_PREVIEW_CHARS * 10
        else f"{plain[:_MAX_PREVIEW_CHARS]}..."
    )


def _prefix_change_cause(entry: LedgerEntry | None, calls: Sequence[ModelCall]) -> str | None:
    """Return why the prefix of the turn's first request changed.

    The cause comes from the ledger entry, or from the first call if another process made the entry.
    """
    if entry is not None:
        return entry.prefix.cause
    return calls[0].verdict.prefix_change.cause.value if calls else None


def _sum_known(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return round(sum(known), _RATIO_DIGITS) if known else None


def _format_log_fields(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_format_log_value(value)}" for name, value in fields.items())


def _format_log_value(value: object) -> str:
    """Format a value as ASCII without blanks, so that the line can be split and has no terminal escapes."""
    return "-" if value is None else ascii("_".join(str(value).split()))[1:-1] or "-"


# The cache ledger between turns.

# Returns a request that was sent earlier, or None.
FindPrompt = Callable[[], Prompt | None]
# Returns the last requests that were sent, on all branches, oldest first, each with the time at which it was sent.
ListSentRequests = Callable[[], Iterable[tuple[Envelope, datetime | None]]]
# With these causes, no earlier request serves more than the last one.
_CAUSES_SERVED_BY_LAST = frozenset({PrefixChangeCause.NONE, PrefixChangeCause.FIRST_TURN})


class UsageTracker:
    """Tracks what was sent and when, and the cost of each model call.

    With ``ledger=False`` it only reports prefix changes and predicts no cache usage.
    """

    def __init__(
        self, adapters: Adapters, *, keeps_ledger: bool, shared_prefixes: SharedPrefixRegistry | None = None
    ) -> None:
        self._adapters = adapters
        self._shared_prefixes = shared_prefixes
        self._keeps_ledger = keeps_ledger
        self._cache_ledger = CacheLedger()
        self._pricing_by_model: dict[str | None, Pricing] = {}
        self._turn_ledger: TurnLedger | None = None
        self._asked_at: datetime | None = None
        self._pause_seconds: float | None = None
        # Seconds since the current turn was asked, if it was sent again since.
        self._resend_pause_seconds: float | None = None
        self._last_response_id: str | None = None
        self._find_uncompacted: FindPrompt = lambda: None
        # None if the ledger has every request that a cache may still serve.
        self._list_sent: ListSentRequests | None = None
        # The model calls made for the current turn.
        self._calls: tuple[ModelCall, ...] = ()
        # When the last request was sent again only to keep its cache entry.
        self._keep_alive_times: tuple[datetime, ...] = ()
        # When the last turn was sent on after tool outputs or a compaction; None if it was not.
        self._continued_at: datetime | None = None

    @property
    def last_request(self) -> CacheRequest | None:
        """The request that was sent last, as a cache sees it."""
        return self._cache_ledger.last_request

    @property
    def idle_since(self) -> datetime | None:
        """When the last request was sent, apart from keep-alives."""
        return self._continued_at or self._asked_at

    @property
    def keep_alive_times(self) -> Sequence[datetime]:
        """When the last request was sent again only to keep its cache entry."""
        return self._keep_alive_times

    def record_keep_alive(self, at: datetime) -> None:
        """Record a keep-alive: the lifetime of the last request's cache entry starts again at this time."""
        self._keep_alive_times = (*self._keep_alive_times, at)
        # A keep-alive renews nothing in the caches that turns are compared with, so these must exist before it.
        ledger = with_comparison_caches_filled(self._cache_ledger) if self._keeps_ledger else self._cache_ledger
        requests = ledger.simulated_cache.requests
        if ledger.last_request is not None:
            ledger = replace(ledger, last_request=replace(ledger.last_request, at=at))
        if requests:
            newest, fork = requests[-1]
            cache = replace(ledger.simulated_cache, requests=(*requests[:-1], (replace(newest, at=at), fork)))
            ledger = replace(ledger, simulated_cache=cache)
        self._cache_ledger = ledger

    def mark_history_rewritten(
        self, turn: Turn, rewritten: HistoryChangeReason, *, state: PromptState, plan_layout: LayoutPlanner
    ) -> Turn:
        """Return the turn marked as following an edited history, or as unchanged if that history was sent last.

        If it was sent last, the provider still has those bytes and the turn need not fold. This cannot be determined
        again after later requests, so it is stored with the turn. Compactions are ignored on both sides of the
        comparison. The result is therefore the same after they are undone, and a branch from before a compaction
        continues from what was sent then.
        """
        marked, sent = (
            replace(turn, history_rewrite=rewritten),
            self._find_uncompacted() or self._cache_ledger.last_prompt,
        )
        if sent is None or sent.tools != state.tools:
            return marked
        tokenizer = self._adapters.counter.get_tokenizer(turn.model or state.model)
        prompt = get_pending_prompt(advance_by_turn(state, turn, plan_layout, tokenizer=tokenizer))
        stays = prompt.layout_plan.keep_messages is None and is_prefix_of(
            prompt.messages[: prompt.question_index], sent.messages
        )
        return replace(marked, prefix_unchanged=True) if stays else marked

    def restore_last_request(
        self,
        last_prompt: Prompt | None,
        sent: LastSentTurn,
        *,
        budget: TokenBudget,
        find_uncompacted: FindPrompt,
        list_sent: ListSentRequests,
    ) -> None:
        """Continue after the request that was sent last.

        If another renderer version sent it and its bytes would differ today, no cache entry matches what is rendered
        now. ``find_uncompacted`` returns the last request as it would have been without any compaction, or None if
        there was none. ``list_sent`` is called at most once, when a request does not extend the last one or attaches
        something: a cache may then serve an older one, and the text may have been sent before.
        """
        self._find_uncompacted = find_uncompacted
        self._asked_at, self._last_response_id, self._pause_seconds = (
            sent.asked_at,
            sent.response_id,
            sent.seconds_since_previous_turn,
        )
        if last_prompt is None:
            return
        fingerprint = sent.fingerprint
        if (
            fingerprint is not None
            and fingerprint.renderer != RENDERER_VERSION
            and fingerprint.hashes != _rendered_hashes(last_prompt, budget)
        ):
            self._cache_ledger = CacheLedger(last_prompt=replace(last_prompt, renderer_version=fingerprint.renderer))
            return
        request = to_cache_request(last_prompt, at=sent.sent_at)
        self._cache_ledger = CacheLedger(
            last_request=request,
            last_prompt=last_prompt,
            simulated_cache=CacheSimulation(requests=((request, NO_COMMON_PREFIX),)),
        )
        for at in sent.keep_alive_times:
            self.record_keep_alive(at)
        self._list_sent = list_sent

    def build_ledger_entry(self, envelope: Envelope, *, at: datetime | None) -> tuple[LedgerEntry, CacheLedger]:
        """Return the ledger entry for a request, and the ledger after it.

        The caller keeps the new ledger only after the turn was written.
        """
        prompt = envelope.prompt
        if self._keeps_ledger:
            pricing = self.get_pricing(prompt.model)
            entry, ledger = add_predicted_turn(self._cache_ledger, envelope, pricing=pricing, at=at)
            is_known = entry.prefix.prefix_change.cause in _CAUSES_SERVED_BY_LAST and not prompt.attached
            if self._list_sent is None or is_known:
                return entry, ledger
            self._load_sent_requests()
            return add_predicted_turn(self._cache_ledger, envelope, pricing=pricing, at=at)
        entry = LedgerEntry(prefix=make_prefix_report(self._cache_ledger.last_prompt, prompt))
        return entry, replace(self._cache_ledger, last_prompt=prompt, last_request=to_cache_request(prompt, at=at))

    def _load_sent_requests(self) -> None:
        """Rebuild the ledger from all requests of the log that a cache may still serve."""
        list_sent, self._list_sent = self._list_sent, None
        known, ledger = self._cache_ledger, CacheLedger()
        for envelope, at in () if list_sent is None else list_sent():
            _, ledger = add_predicted_turn(ledger, envelope, pricing=self.get_pricing(envelope.prompt.model), at=at)
        if ledger.last_prompt is None or known.last_prompt is None:
            return
        if ledger.last_prompt.messages != known.last_prompt.messages:
            return
        self._cache_ledger = replace(ledger, last_prompt=known.last_prompt)
        keep_alive_times, self._keep_alive_times = self._keep_alive_times, ()
        for at in keep_alive_times:
            self.record_keep_alive(at)

    def get_pricing(self, model: str | None) -> Pricing:
        """Return the prices of a model; each model is looked up once."""
        pricing = self._pricing_by_model.get(model)
        if pricing is None:
            pricing = self._pricing_by_model[model] = self._adapters.get_pricing(model)
        return pricing

    def with_layout_plan(
        self, state: PromptState, turn: Turn, settings: PromptSettings, *, at: datetime | None
    ) -> Turn:
        """Return the turn with its layout plan, if it cannot be computed again from the state and the turn.

        That is the case if the layout is decided by price, or if the library gets back the text of outlined artifacts.
        Artifacts that must be readable again, although an earlier turn removed their text, are attached to the turn.
        """
        plan_ahead = ADVANCE_PLANNERS.get(turn.turn_settings.layout)
        if plan_ahead is None:
            restored = plan_restored_texts(state, turn)
            return turn if restored is None else replace(turn, layout_plan=restored)
        turn = reattach_missing(turn, state)
        budget, profile = settings.budget, self.get_pricing(turn.model or state.model).profile
        room, aim = budget.trigger * budget.limit, budget.target * budget.limit
        last_keep_alive = self._keep_alive_times[-1] if self._keep_alive_times and at is not None else None
        layout_plan = plan_ahead(
            state,
            turn,
            profile,
            tokenizer=settings.tokenizer,
            max_tokens=room,
            target=aim,
            at=at,
            kept_alive_at=last_keep_alive,
        )
        return replace(turn, layout_plan=self._with_shared_prefix(layout_plan, state, turn, settings, at=at))

    def _with_shared_prefix(
        self, layout_plan: LayoutPlan, state: PromptState, turn: Turn, settings: PromptSettings, *, at: datetime | None
    ) -> LayoutPlan:
        """Return the plan with the cache lifetime for the system message that other conversations share."""
        profile = self.get_pricing(turn.model or state.model).profile
        if self._shared_prefixes is None or at is None or not profile.marks or profile.longer is None:
            return layout_plan
        now = with_turn_overrides(state, turn)
        layer, count = build_system_layer(now.system, count=settings.tokenizer.count), settings.tokenizer.count
        if layer.tokens + count_tools_tokens(now.tools, count) < profile.minimum:
            return layout_plan
        uses = self._shared_prefixes.find_uses(shared_prefix_key(now.model, now.tools, layer.pieces), at=at)
        return with_shared_prefix(layout_plan, uses, profile, at=at)

    def _record_prefix_use(self, ledger: CacheLedger) -> None:
        """Record that the system message of the last request was sent."""
        prompt, request = ledger.last_prompt, ledger.last_request
        if self._shared_prefixes is None or prompt is None or request is None or request.at is None:
            return
        profile, layer, plan = self.get_pricing(prompt.model).profile, prompt.system_layer, prompt.layout_plan
        tokens = layer.tokens + count_tools_tokens(prompt.tools, prompt.tokenizer.count)
        if prompt.model is None or 0 not in plan.breakpoints or tokens < profile.minimum:
            return
        self._shared_prefixes.record_use(
            shared_prefix_key(prompt.model, prompt.tools, layer.pieces),
            model=prompt.model,
            tokens=tokens,
            profile=profile,
            at=request.at,
            has_long_lifetime=plan.long_lifetime_until is not None,
        )

    def changes_prefix_anyway(self, prompt: Prompt) -> bool:
        """Return whether a request changes the cached prefix anyway, so that L1 and the tools may change with it."""
        return prompt.layout_plan.priced and changes_prefix_anyway(prompt, self.get_pricing(prompt.model).profile)

    def record_asked_turn(self, ledger: CacheLedger, *, at: datetime | None) -> None:
        """Record that a turn was asked, and keep its ledger."""
        before = self._keep_alive_times[-1] if self._keep_alive_times else self._asked_at
        self._pause_seconds = (at - before).total_seconds() if at and before else None
        self._continued_at = None
        self._cache_ledger, self._asked_at, self._calls, self._resend_pause_seconds, self._keep_alive_times = (
            ledger,
            at,
            (),
            None,
            (),
        )
        self._record_prefix_use(ledger)

    def build_resend_entry(self, envelope: Envelope, *, at: datetime | None) -> LedgerEntry:
        """Return the ledger entry for a turn that is sent again.

        The ledger stays as it is. No event records the time of a resend, and a conversation that is opened again must
        arrive at the same ledger.
        """
        if at is not None and self._asked_at is not None:
            self._resend_pause_seconds = (at - self._asked_at).total_seconds()
        return self.build_ledger_entry(envelope, at=at)[0]

    def record_continued_turn(self, ledger: CacheLedger) -> None:
        """Keep the ledger of a turn that is sent on, after tool outputs or after a compaction."""
        self._cache_ledger, self._keep_alive_times = ledger, ()
        self._continued_at = None if ledger.last_request is None else ledger.last_request.at
        self._last_response_id = self._calls[-1].id if self._calls else self._last_response_id
        self._record_prefix_use(ledger)

    def record_call(self, call: ModelCall) -> tuple[ModelCall, ...]:
        """Record one more model call, and return all calls made for the turn."""
        self._calls = (*self._calls, call)
        if self._turn_ledger is not None:
            self._turn_ledger.entry = replace(self._turn_ledger.entry, calls=(*self._turn_ledger.entry.calls, call))
        return self._calls

    def record_answered_turn(self, prompt: Prompt, fingerprint: RequestFingerprint | None, text: str) -> None:
        """Finish a turn that was answered, and write its log line if logging is enabled."""
        entry = None if self._turn_ledger is None else self._turn_ledger.entry
        # A prefix change that nothing in the turn explains is logged as a warning.
        level = INFO if entry is None or entry.prefix.triggered else WARNING
        if fingerprint is not None and TURN_LOGGER.isEnabledFor(level):
            shown = self._adapters.logs_text_preview
            log_turn(prompt, fingerprint, entry=entry, calls=self._calls, level=level, text=text, with_preview=shown)
        self._last_response_id = self._calls[-1].id if self._calls else None
        self._calls = ()

    def build_turn(
        self, envelope: Envelope, entry: LedgerEntry, *, number: int, receipt: CompactionReceipt | None
    ) -> BuiltTurn:
        """Return the built turn with a new ledger entry, which later calls extend."""
        turn = BuiltTurn(
            number=number,
            envelope=envelope,
            turn_ledger=TurnLedger(entry=entry, envelope=envelope),
            compaction=receipt,
            previous_response_id=self._last_response_id,
            seconds_since_previous_turn=self._pause_seconds,
            build_sdk_request=self._adapters.wire_formats.build_request if self._adapters.wire_formats else None,
        )
        self._turn_ledger = turn.turn_ledger
        return turn

    def preview_turn(
        self, envelope: Envelope, *, number: int, receipt: CompactionReceipt | None, at: datetime | None
    ) -> BuiltTurn:
        """Return a turn that is not asked yet as it would be built; nothing is recorded."""
        entry, ledger = self.build_ledger_entry(envelope, at=at)
        ahead = copy(self)
        ahead._shared_prefixes = None
        ahead.record_asked_turn(ledger, at=at)
        return ahead.build_turn(envelope, entry, number=number, receipt=receipt)

    def build_call_record(
        self,
        prompt: Prompt,
        answer: ModelAnswer,
        *,
        previous_prompt: Prompt | None,
        budget: TokenBudget,
        at: datetime | None,
    ) -> ModelCall:
        """Return the model call that gave an answer; ``previous_prompt`` is the request before its own."""
        page = self._turn_ledger
        envelope = page.envelope if page is not None else make_envelope(prompt, budget)
        return make_answer_call(
            page.entry if page is not None else LedgerEntry(prefix=make_prefix_report(previous_prompt, prompt)),
            prompt,
            answer.reply,
            pricing=self.get_pricing(prompt.model),
            by_layer=envelope.tokens.by_layer,
            timing=answer.timing,
            predicted_usage=answer.predicted_cache_usage,
            pause=self._pause_seconds if self._resend_pause_seconds is None else self._resend_pause_seconds,
            at=at,
            retries=answer.retries,
            stop_reason=answer.end_reason,
            request=hash_request(envelope),
        )

    def build_auxiliary_call_record(
        self, request: ModelRequest, answer: ModelAnswer, *, purpose: str, at: datetime | None
    ) -> ModelCall:
        """Return the record of an auxiliary call. The ledger stays as it is: turns are compared only with turns."""
        tokenizer, pricing = self._adapters.counter.get_tokenizer(request.model), self.get_pricing(request.model)
        counted = [one if one.tokens else replace(one, tokens=tokenizer.count(one.text)) for one in request.messages]
        seen = CacheRequest(
            model=request.model,
            tools=request.tools,
            messages=tuple(counted),
            total=count_request_tokens(counted, request.tools, tokenizer),
            at=at,
            effort=request.effort or ReasoningEffort.DEFAULT.value,
            has_images=any(one.images for one in counted),
            breakpoints=find_breakpoint_candidates(
                counted,
                request.tools,
                stable_messages=request.effective_cache_boundaries.stable_messages,
                requested=request.breakpoints,
                by_provider=request.breakpoint_mode == BreakpointMode.AUTOMATIC,
            ),
        )
        served = None
        if self._keeps_ledger:
            served = (
                answer.predicted_cache_usage
                or self._cache_ledger.simulated_cache.simulate_request(
                    seen, profile=pricing.profile, tokenizer=tokenizer
                )[0]
            )
        return make_auxiliary_call(
            purpose,
            seen,
            answer.reply,
            pricing=pricing,
            predicted=served,
            timing=answer.timing,
            retries=answer.retries,
            stop_reason=answer.end_reason,
        )


def _rendered_hashes(prompt: Prompt, budget: TokenBudget) -> tuple[str, ...]:
    """Return the hashes of a prompt's question if it were rendered now, before any tool round."""
    return make_fingerprint(make_envelope(replace(prompt, rounds=()), budget)).hashes
