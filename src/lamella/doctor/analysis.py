"""Find the conversations of a log, what their prompts cost, where prefixes broke, and why.

``Examination.add`` takes the calls in the order of the log, one at a time. It remembers the last prompt of each
conversation and drops the texts of those that were not continued for long, so memory does not grow with the log.

Two shares of the input tokens are compared for each request. ``reached`` is what the cache served: as reported, or
else as the rules of the cache predict. ``reachable`` is what it could have served: everything that the request
repeats from the one before. Their difference has one cause, at the first byte that differs.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import accumulate

from msgspec import Struct

from lamella.core.budget import Tokenizer
from lamella.core.log.call import CacheUsage
from lamella.doctor.blocks import MESSAGES, SECTION_NAMES, SYSTEM, TOOLS, Block, Prompt, lifetime_seconds, split_prompt
from lamella.doctor.calls import LoggedCall, ReportedUsage, WireFormat
from lamella.doctor.causes import DESCRIPTIONS, FIXES, LossCause
from lamella.doctor.text_changes import TextChange, classify_change, count_common_characters, cut_example, is_similar
from lamella.doctor.transcripts import RecordedConversation, start_recording
from lamella.profiles import ModelProfile

# Texts of prompts to remember, in characters, and how many conversations.
_MAX_REMEMBERED_CHARS = 64_000_000
_MAX_CONVERSATIONS = 20_000
_MAX_LISTED_CONVERSATIONS = 2_000
_MAX_TEMPLATES = 8
_MAX_POINTS = 2_000
# A difference in tokens that counting alone may explain.
_TOLERANCE_TOKENS, _TOLERANCE_SHARE = 64, 0.08
# Lines this long identify a document; so many characters of them in one block make it a repetition.
_MIN_LINE, _MIN_REPEATED_CHARS = 48, 1_000
_MAX_LINES = 100_000
# A message that identifies a conversation.
_MIN_TELLING_MESSAGE = 24
_REMEMBERED_MESSAGES = 8
_SUMMARY_WORDS = ("summar", "compacted", "condensed", "ringkas", "zusammenfass")
_SUMMARY_SEARCHED_CHARS = 4_000
_MAX_BREAKPOINTS = 4
_ANSWER_KINDS = frozenset({"assistant", "tool_call", "reasoning"})
_IMAGE_SIDE = 1_024
_MIN_REQUESTS_BELOW_MINIMUM = 3
_BYTE_CAUSES_BETWEEN_CONVERSATIONS = frozenset(
    {
        LossCause.TIME_IN_PROMPT,
        LossCause.ID_IN_PROMPT,
        LossCause.TOOLS_REORDERED,
        LossCause.KEYS_REORDERED,
        LossCause.WHITESPACE,
    }
)
_EDITS = frozenset({LossCause.SYSTEM_CHANGED, LossCause.TOOLS_CHANGED, LossCause.HISTORY_REWRITTEN})
_CAUSE_OF_CHANGE = {
    TextChange.TIME: LossCause.TIME_IN_PROMPT,
    TextChange.ID: LossCause.ID_IN_PROMPT,
    TextChange.WHITESPACE: LossCause.WHITESPACE,
    TextChange.KEY_ORDER: LossCause.KEYS_REORDERED,
}
_REASONS = {
    "model_changed": LossCause.MODEL_CHANGED,
    "tools_changed": LossCause.TOOLS_CHANGED,
    "system_changed": LossCause.SYSTEM_CHANGED,
    "messages_changed": LossCause.HISTORY_REWRITTEN,
    "input_changed": LossCause.HISTORY_REWRITTEN,
    "context_compacted": LossCause.SUMMARY,
    "prompt_cache_key_changed": LossCause.PARAMETERS_CHANGED,
    "text_format_changed": LossCause.PARAMETERS_CHANGED,
    "reasoning_effort_changed": LossCause.PARAMETERS_CHANGED,
    "verbosity_changed": LossCause.PARAMETERS_CHANGED,
    "service_tier_changed": LossCause.PARAMETERS_CHANGED,
}

PriceFunction = Callable[[str, CacheUsage, datetime | None, int], Decimal | None]


class Knowledge(Struct, frozen=True, kw_only=True):
    """What the analysis knows about models: how they count, cache and charge."""

    get_profile: Callable[[str | None], ModelProfile]
    get_tokenizer: Callable[[str | None], Tokenizer]
    price: PriceFunction


class Finding(Struct, kw_only=True):
    """A cause at one place of the prompt, with all requests that show it and the money that it cost."""

    cause: LossCause
    where: str
    requests: list[int]
    tokens: int = 0
    cost: Decimal | None = None
    before: str = ""
    after: str = ""
    detail: str = ""

    @property
    def description(self) -> str:
        return DESCRIPTIONS[self.cause]

    @property
    def fix(self) -> str:
        return FIXES[self.cause]


class ConversationTotals(Struct, kw_only=True):
    """The totals of one conversation."""

    number: int
    label: str
    model: str
    requests: int = 0
    input: int = 0
    reached: int = 0
    reachable: int = 0
    cost: Decimal | None = None
    input_cost: Decimal | None = None
    counted: int = 0

    @property
    def share(self) -> float:
        return self.reached / self.input if self.input else 0.0


class TimelinePoint(Struct, kw_only=True):
    """Some consecutive requests: their time, tokens and money."""

    first: int
    last: int
    at: datetime | None
    input: int = 0
    reached: int = 0
    cost: Decimal = Decimal(0)
    lost: Decimal = Decimal(0)
    causes: list[LossCause] = []


class Diagnosis(Struct, kw_only=True):
    """The result of an examination. ``unpriced`` lists the models without a known price."""

    requests: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    reached: int = 0
    reachable: int = 0
    estimated_requests: int = 0
    spent: Decimal = Decimal(0)
    lost: Decimal = Decimal(0)
    conversation_count: int = 0
    conversations: list[ConversationTotals] = []
    findings: list[Finding] = []
    timeline: list[TimelinePoint] = []
    tokens_by_kind: dict[str, int] = {}
    unpriced: list[str] = []
    formats: dict[str, int] = {}
    models: dict[str, int] = {}

    @property
    def reached_share(self) -> float:
        return self.reached / self.input if self.input else 0.0

    @property
    def reachable_share(self) -> float:
        return self.reachable / self.input if self.input else 0.0


class _Loss(Struct, kw_only=True):
    """Tokens of one request that a cache could have served, and why it did not."""

    cause: LossCause
    where: str
    tokens: int
    before: str = ""
    after: str = ""
    detail: str = ""


class _Measured(Struct, kw_only=True):
    """A request with its tokens: in all, as served by the cache, and as the cache could have served them."""

    number: int
    total: int
    reached: int
    reachable: int
    loss: _Loss | None
    at: datetime | None


class _Conversation(Struct, kw_only=True):
    """What is remembered of a conversation: its last prompt and what the cache has of it."""

    totals: ConversationTotals
    call: LoggedCall
    prompt: Prompt
    ends: list[int]
    total: int
    model: str
    chain: list[int]
    hashes: list[int]
    reply: str
    entries: dict[int, int] = {}
    lines: set[int] = set()
    pending: list[_Measured] = []
    small: list[_Measured] = []
    reached_minimum: bool = False
    last_number: int = 0
    chars: int = 0


class Examination:
    """Examines the calls of a log one after the other.

    With ``records`` it keeps all conversations in ``recorded``, for a replay; memory then grows with the log.
    """

    def __init__(self, knowledge: Knowledge, *, records: bool = False) -> None:
        self._knowledge = knowledge
        self._records = records
        self.recorded: dict[int, RecordedConversation] = {}
        self._result = Diagnosis()
        self._findings: dict[tuple[LossCause, str], Finding] = {}
        self._open: OrderedDict[int, _Conversation] = OrderedDict()
        self._by_chain: dict[int, int] = {}
        self._by_end: dict[int, list[int]] = {}
        self._by_message: dict[int, int] = {}
        self._by_label: dict[str, list[int]] = {}
        self._templates: list[_Conversation] = []
        self._chars = 0
        self._kinds: Counter[str] = Counter()
        self._formats: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._unpriced: set[str] = set()
        self._group = 1

    def add(self, call: LoggedCall) -> None:
        """Examine the next call of the log."""
        result = self._result
        result.requests += 1
        number = result.requests
        self._formats[call.format] += 1
        model = normalize_model(call)
        self._models[model or "unknown"] += 1
        prompt = split_prompt(call)
        profile = self._knowledge.get_profile(model or None)
        if call.failed:
            result.failed += 1
            self._examine_failed(number, call, prompt, profile)
            return
        chain, hashes = _hash_messages(prompt, call.label)
        found = self._find_conversation(prompt, chain, hashes, call)
        before = self._open[found] if found is not None else None
        template = self._find_template(prompt, model) if before is None else None
        known = before or template
        self._count_tokens(call, prompt, known, model)
        ends = list(accumulate(block.tokens for block in prompt.blocks))
        tokenizer = self._knowledge.get_tokenizer(model or None)
        counted = (ends[-1] if ends else 0) + tokenizer.tokens_per_request
        current = _Request(
            number=number,
            call=call,
            prompt=prompt,
            ends=ends,
            counted=counted,
            total=call.usage.input if call.usage else counted,
            model=model,
            profile=profile,
        )
        measured = self._measure(current, before, template)
        self._record(current, measured, before, chain, hashes)

    @property
    def remembered_chars(self) -> int:
        """The characters of all prompts that are remembered."""
        return self._chars

    def finish(self) -> Diagnosis:
        """Return the diagnosis after the last call."""
        for conversation in list(self._open.values()):
            self._close(conversation)
        result = self._result
        result.findings = sorted(
            self._findings.values(), key=lambda one: (-(one.cost or Decimal(0)), -one.tokens, one.requests[0])
        )
        result.lost = sum((one.cost or Decimal(0) for one in result.findings), Decimal(0))
        result.conversations.sort(key=lambda one: (-(one.cost or Decimal(0)), -one.input, one.number))
        result.tokens_by_kind = dict(self._kinds.most_common())
        result.formats, result.models = dict(self._formats.most_common()), dict(self._models.most_common())
        result.unpriced = sorted(self._unpriced)
        return result

    # Conversations.

    def _find_conversation(
        self, prompt: Prompt, chain: Sequence[int], hashes: Sequence[int], call: LoggedCall
    ) -> int | None:
        """Return the conversation that a request continues: by exact prefix, else by shared messages."""
        runs = _count_answers_after(prompt)
        ended = [
            (self._answers(key, prompt, count), self._open[key].last_number, key)
            for count in range(len(chain), 0, -1)
            # The same single question again is another conversation; a longer request again is a retry.
            if runs[count] == 1 or (runs[count] == 0 and len(chain) > 1)
            for key in self._by_end.get(chain[count - 1], ())
        ]
        if ended:
            return max(ended)[-1]
        if len(chain) == 1 and chain[0] in self._by_end:
            return None
        for count in range(len(chain), 0, -1):
            found = self._by_chain.get(chain[count - 1])
            if found is not None:
                known = self._open[found]
                return found if self._continues(known, prompt, hashes, count, call) else None
        seen: set[int] = set()
        for key in (*reversed(hashes[:-1]), *_reply_keys(prompt)):
            found = self._by_message.get(_with_label(key, call.label))
            if found is not None and found not in seen:
                seen.add(found)
                if self._continues(self._open[found], prompt, hashes, 0, call):
                    return found
        return self._find_similar(prompt, hashes, call)

    def _answers(self, key: int, prompt: Prompt, count: int) -> bool:
        """Return whether the message behind so many is the reply that a conversation got."""
        reply = self._open[key].reply
        if not reply:
            return False
        return count < len(prompt.message_ends) and _message_text(prompt, count).strip() == reply

    def _find_similar(self, prompt: Prompt, hashes: Sequence[int], call: LoggedCall) -> int | None:
        """Return the recent conversation whose first message is nearly that of the request."""
        if call.label is not None:
            recent = reversed(self._by_label.get(call.label, [])[-_MAX_TEMPLATES:])
        else:
            recent = iter([one for one, _ in zip(reversed(self._open), range(_MAX_TEMPLATES), strict=False)])
        for key in recent:
            known = self._open[key]
            if known.call.label == call.label and self._continues(known, prompt, hashes, 0, call):
                return key
        return None

    def _continues(
        self, known: _Conversation, prompt: Prompt, hashes: Sequence[int], shared: int, call: LoggedCall
    ) -> bool:
        """Return whether a request that shares so many messages with a conversation continues it."""
        earlier, now = len(known.hashes), len(hashes)
        if shared >= earlier and earlier:
            return True
        if now < shared + 2:
            # It ends where it differs: an edited question, or another conversation with the same examples.
            return call.label is not None and now > shared and _has_summary(prompt, shared) and now < earlier
        later = set(hashes[shared + 1 :])
        if any(
            key in later and len(_message_text(known.prompt, number)) >= _MIN_TELLING_MESSAGE
            for number, key in enumerate(known.hashes[shared + 1 :], start=shared + 1)
        ):
            return True
        if known.reply and hash(known.reply) in set(_reply_keys(prompt)):
            return True
        if now < earlier and _has_summary(prompt, shared):
            return call.label is not None or shared > 0 or _same_system(known.prompt, prompt)
        if shared != earlier - 1 or not known.chars:
            return False
        mine, other = _message_text(prompt, shared), _message_text(known.prompt, shared)
        return is_similar(other, mine)

    def _find_template(self, prompt: Prompt, model: str) -> _Conversation | None:
        """Return the recent first request whose tools and system prompt are most like those of this one."""
        head = [block for block in prompt.blocks if block.section != MESSAGES]
        if not head:
            return None
        best: tuple[int, _Conversation] | None = None
        for one in reversed(self._templates):
            if one.model != model:
                continue
            keys = {block.text for block in one.prompt.blocks if block.section != MESSAGES}
            shared = sum(len(block.text) for block in head if block.text in keys)
            if best is None or shared > best[0]:
                best = (shared, one)
        return best[1] if best else None

    # Tokens.

    def _count_tokens(self, call: LoggedCall, prompt: Prompt, known: _Conversation | None, model: str) -> None:
        """Count the tokens of each block; what the known prompt has too is not counted again."""
        if call.token_counts and len(call.token_counts) == len(prompt.blocks):
            for block, tokens in zip(prompt.blocks, call.token_counts, strict=True):
                block.tokens = tokens
            return
        earlier = known.prompt.blocks if known is not None else []
        same = 0
        for one, other in zip(prompt.blocks, earlier, strict=False):
            if not one.matches(other):
                break
            one.tokens = other.tokens
            same += 1
        by_text = {block.text: block.tokens for block in earlier[same:]} if same < len(prompt.blocks) else {}
        tokenizer = self._knowledge.get_tokenizer(model or None)
        for number in range(same, len(prompt.blocks)):
            block = prompt.blocks[number]
            found = by_text.get(block.text)
            if found is not None:
                block.tokens = found
            elif block.kind == "image":
                block.tokens = tokenizer.count_image(_IMAGE_SIDE, _IMAGE_SIDE)
            else:
                block.tokens = tokenizer.count(block.text) + tokenizer.tokens_per_message

    # One request.

    def _measure(self, now: "_Request", before: _Conversation | None, template: _Conversation | None) -> _Measured:
        if before is not None:
            return self._measure_continued(now, before)
        if template is not None:
            return self._measure_first(now, template)
        return _Measured(
            number=now.number, total=now.total, reached=now.reported or 0, reachable=now.reported or 0,
            loss=None, at=now.call.at,
        )  # fmt: skip

    def _measure_continued(self, now: "_Request", before: _Conversation) -> _Measured:
        fork = _find_fork(before.prompt.blocks, now.prompt.blocks)
        intact = fork == len(before.prompt.blocks) and now.model == before.model
        shared = now.ends[fork - 1] if fork else 0
        partial = 0
        if not intact and fork < len(now.prompt.blocks) and fork < len(before.prompt.blocks):
            partial = _count_partial(before.prompt.blocks[fork], now.prompt.blocks[fork])
        loss = None if intact else self._explain_fork(before, now, fork)
        repeated = 0 if intact else _count_repeated(before, now, fork, loss)
        reachable = self._scale_reachable(now, before, shared + repeated, intact=intact)
        reachable = _round_to_cache(reachable, now.profile)
        pause = _pause(before.call, now.call)
        lifetime = _lifetime(before, now.profile)
        is_expired = pause is not None and lifetime is not None and pause > lifetime
        reached = now.reported
        if reached is None:
            valid = 0 if is_expired or now.model != before.model else fork
            reached = self._predict(now, before, valid, partial if valid else 0)
        reachable = max(reachable, reached)
        missing = reachable - reached
        measured = _Measured(
            number=now.number, total=now.total, reached=reached, reachable=reachable, loss=None, at=now.call.at
        )
        # A change of bytes is certain; that nothing changed and yet tokens miss may be an error of counting.
        tolerance = _tolerance(reachable, now.profile) if loss is None else _rounding_tolerance(now.profile)
        if missing <= tolerance:
            measured.reachable = reached if now.reported is not None and missing < _TOLERANCE_TOKENS else reachable
            return measured
        measured.loss = self._choose_loss(now, before, loss, missing, is_expired=is_expired, pause=pause)
        return measured

    def _choose_loss(
        self, now: "_Request", before: _Conversation, change: _Loss | None, missing: int, *, is_expired: bool,
        pause: float | None,
    ) -> _Loss:  # fmt: skip
        """Return why a request missed these tokens. The first cause that explains it alone counts."""
        if now.call.known_cause in set(LossCause):
            return _Loss(cause=LossCause(now.call.known_cause), where="as the log says", tokens=missing)
        if change is not None and change.cause is LossCause.MODEL_CHANGED:
            change.tokens = missing
            return change
        marks = now.prompt.breakpoints
        if now.is_explicit and len(marks) > (now.profile.breakpoints or _MAX_BREAKPOINTS):
            return _Loss(
                cause=LossCause.BREAKPOINTS_EXCEEDED, where="cache_control", tokens=missing,
                detail=f"{len(marks)} breakpoints",
            )  # fmt: skip
        if is_expired:
            return _Loss(
                cause=LossCause.EXPIRED, where="pause", tokens=missing, detail=f"a pause of {pause or 0:,.0f} s"
            )
        if change is not None:
            change.tokens = missing
            return change
        changed = _changed_parameters(before.prompt.parameters, now.prompt.parameters)
        if changed:
            names = ", ".join(changed)
            return _Loss(
                cause=LossCause.PARAMETERS_CHANGED, where=names, tokens=missing,
                before=before.prompt.parameters.get(changed[0], "not set"),
                after=now.prompt.parameters.get(changed[0], "not set"),
            )  # fmt: skip
        reason = _REASONS.get(now.call.miss_reason or "")
        if reason is not None:
            return _Loss(cause=reason, where="as the provider reports", tokens=missing)
        problem = _explain_breakpoints(now, before)
        if problem is not None:
            problem.tokens = missing
            return problem
        hidden = "" if now.call.has_whole_prompt else "the log has neither the system prompt nor the tools"
        return _Loss(cause=LossCause.PROVIDER_MISS, where="provider", tokens=missing, detail=hidden)

    def _measure_first(self, now: "_Request", template: _Conversation) -> _Measured:
        """Measure the first request of a conversation beside another conversation with nearly the same beginning."""
        head = [block for block in now.prompt.blocks if block.section != MESSAGES]
        earlier = [block for block in template.prompt.blocks if block.section != MESSAGES]
        fork = _find_fork(earlier, head)
        reached = now.reported or 0
        measured = _Measured(
            number=now.number, total=now.total, reached=reached, reachable=reached, loss=None, at=now.call.at
        )
        pause, lifetime = _pause(template.call, now.call), _lifetime(template, now.profile)
        if not now.call.has_whole_prompt or (pause is not None and lifetime is not None and pause > lifetime):
            return measured
        whole = sum(block.tokens for block in head)
        if fork == len(head) == len(earlier):
            if now.reported is None and not now.lacks_breakpoints:
                measured.reached = measured.reachable = self._predict(now, template, fork, 0)
            loss = (
                _Loss(cause=LossCause.BREAKPOINT_MISSING, where="cache_control", tokens=0)
                if now.lacks_breakpoints
                else None
            )
        else:
            loss = self._explain_fork(template, now, fork)
            if loss is not None and loss.cause not in _BYTE_CAUSES_BETWEEN_CONVERSATIONS:
                loss = None
        reachable = _round_to_cache(int(whole * now.scale), now.profile)
        if loss is None or reachable - reached <= _tolerance(reachable, now.profile):
            return measured
        measured.reachable, loss.tokens = reachable, reachable - reached
        measured.loss = loss
        return measured

    def _scale_reachable(self, now: "_Request", before: _Conversation, counted: int, *, intact: bool) -> int:
        """Convert counted tokens into those of the provider's count."""
        if now.call.usage is None:
            return counted
        if intact:
            return min(before.total, now.total)
        if now.call.has_whole_prompt:
            return min(int(counted * now.scale), now.total)
        hidden = max(0, now.total - now.counted)
        return min(hidden + counted, before.total, now.total)

    def _predict(self, now: "_Request", before: _Conversation, fork: int, partial: int) -> int:
        """Return what the rules of the cache let it serve of a request whose blocks are the same up to the fork."""
        blocks = now.prompt.blocks
        names = dict(now.profile.cache.invalidates)
        for name in _changed_parameters(before.prompt.parameters, now.prompt.parameters):
            part = names.get("effort" if name == "thinking" else name)
            if part is not None:
                start = SECTION_NAMES.index(part) if part in SECTION_NAMES else MESSAGES
                fork = min(fork, next((i for i, block in enumerate(blocks) if block.section >= start), fork))
                partial = 0
        if not now.is_explicit:
            return _round_to_cache((now.ends[fork - 1] if fork else 0) + partial, now.profile)
        marks = now.prompt.breakpoints[: now.profile.breakpoints or _MAX_BREAKPOINTS]
        lookback = now.profile.lookback or len(blocks)
        known = {number for number in before.entries if number < fork}
        hits = [number for number in known if any(number <= mark < number + lookback for mark in marks)]
        return _round_to_cache(now.ends[max(hits)], now.profile) if hits else 0

    def _explain_fork(self, before: _Conversation, now: "_Request", fork: int) -> _Loss | None:
        """Return why the blocks of a request are not those of the request before."""
        if now.model != before.model:
            return _Loss(cause=LossCause.MODEL_CHANGED, where="model", tokens=0, before=before.model, after=now.model)
        old, new = before.prompt.blocks, now.prompt.blocks
        earlier = old[fork] if fork < len(old) else None
        current = new[fork] if fork < len(new) else None
        section = min(block.section for block in (earlier, current) if block is not None)
        if not before.chars:
            return _Loss(cause=_whole_section_cause(section), where=SECTION_NAMES[section], tokens=0)
        if section == TOOLS:
            return _explain_tools(old, new, earlier, current)
        if section == SYSTEM:
            return _explain_system(earlier, current)
        return _explain_messages(before, now, fork)

    def _examine_failed(self, number: int, call: LoggedCall, prompt: Prompt, profile: ModelProfile) -> None:
        """Report a rejected request that has too many cache breakpoints; others cost nothing."""
        count = len(prompt.breakpoints)
        if call.wire is WireFormat.MESSAGES and count > (profile.breakpoints or _MAX_BREAKPOINTS):
            loss = _Loss(
                cause=LossCause.BREAKPOINTS_EXCEEDED, where="cache_control", tokens=0,
                detail=f"{count} breakpoints, and the request was rejected",
            )  # fmt: skip
            self._add_finding(loss, number, None)

    # The results.

    def _record(
        self, now: "_Request", measured: _Measured, before: _Conversation | None, chain: list[int], hashes: list[int]
    ) -> None:
        """Add a measured request to the totals, and remember it as the last one of its conversation."""
        result, call = self._result, now.call
        totals = before.totals if before else self._open_totals(now)
        result.input += measured.total
        result.output += call.usage.output if call.usage else 0
        result.reached += measured.reached
        result.reachable += measured.reachable
        result.estimated_requests += call.usage is None or call.usage.cached is None
        cost = self._price(now, measured.reached, output=call.usage.output if call.usage else 0)
        if cost is None:
            self._unpriced.add(now.model or "unknown")
        else:
            result.spent += cost
            totals.cost = (totals.cost or Decimal(0)) + cost
            totals.input_cost = (totals.input_cost or Decimal(0)) + (self._price(now, measured.reached) or Decimal(0))
        totals.requests += 1
        totals.input += measured.total
        totals.counted += now.counted
        totals.reached += measured.reached
        totals.reachable += measured.reachable
        for block in now.prompt.blocks:
            self._kinds[block.kind] += block.tokens
        if not call.has_whole_prompt:
            self._kinds["not in the log"] += max(0, now.total - now.counted)
        if self._records:
            if totals.number not in self.recorded:
                self.recorded[totals.number] = start_recording(now.prompt, is_complete=call.has_whole_prompt)
            self.recorded[totals.number].add(now.prompt, at=call.at, model=now.model, reply=call.reply)
        point = self._add_point(measured, cost)
        conversation = self._remember(now, measured, before, totals, chain, hashes)
        self._add_repetition(now, measured, before, conversation)
        self._add_loss(now, measured, conversation, point)
        self._forget_old()

    def _open_totals(self, now: "_Request") -> ConversationTotals:
        result = self._result
        result.conversation_count += 1
        totals = ConversationTotals(number=result.conversation_count, label=now.call.label or "", model=now.model)
        if len(result.conversations) < _MAX_LISTED_CONVERSATIONS:
            result.conversations.append(totals)
        return totals

    def _remember(
        self, now: "_Request", measured: _Measured, before: _Conversation | None, totals: ConversationTotals,
        chain: list[int], hashes: list[int],
    ) -> _Conversation:  # fmt: skip
        key = totals.number
        if before is not None:
            self._forget_keys(before, key)
            self._chars -= before.chars
        marks = now.prompt.breakpoints
        entries = dict.fromkeys(marks, now.number)
        if before is not None:
            fork = _find_fork(before.prompt.blocks, now.prompt.blocks)
            entries |= {number: at for number, at in before.entries.items() if number < fork and at > now.number - 64}
        conversation = _Conversation(
            totals=totals,
            call=_without_body(now.call),
            prompt=now.prompt,
            ends=now.ends,
            total=now.total,
            model=now.model,
            chain=chain,
            hashes=hashes,
            reply=now.call.reply.strip(),
            entries=entries,
            lines=before.lines if before else set(),
            pending=before.pending if before else [],
            small=before.small if before else [],
            reached_minimum=before.reached_minimum if before else False,
            last_number=now.number,
            chars=sum(len(block.text) for block in now.prompt.blocks) or 1,
        )
        self._chars += conversation.chars
        self._open[key] = conversation
        self._open.move_to_end(key)
        for one in chain:
            self._by_chain[one] = key
        if chain:
            self._by_end.setdefault(chain[-1], []).append(key)
        for one in hashes[-_REMEMBERED_MESSAGES:]:
            self._by_message[_with_label(one, now.call.label)] = key
        if len(conversation.reply) >= _MIN_TELLING_MESSAGE:
            self._by_message[_with_label(hash(conversation.reply), now.call.label)] = key
        if before is None:
            if now.call.label is not None:
                self._by_label.setdefault(now.call.label, []).append(key)
            self._add_template(conversation)
        return conversation

    def _add_template(self, conversation: _Conversation) -> None:
        head = [block.text for block in conversation.prompt.blocks if block.section != MESSAGES]
        others = [
            one
            for one in self._templates
            if [block.text for block in one.prompt.blocks if block.section != MESSAGES] != head
        ]
        self._templates = [*others[-_MAX_TEMPLATES + 1 :], conversation]

    def _forget_keys(self, conversation: _Conversation, key: int) -> None:
        for one in conversation.chain:
            if self._by_chain.get(one) == key:
                del self._by_chain[one]
        if conversation.chain:
            ended = self._by_end.get(conversation.chain[-1], [])
            if key in ended:
                ended.remove(key)
            if not ended:
                self._by_end.pop(conversation.chain[-1], None)
        for one in (*conversation.hashes[-_REMEMBERED_MESSAGES:], hash(conversation.reply)):
            named = _with_label(one, conversation.call.label)
            if self._by_message.get(named) == key:
                del self._by_message[named]

    def _forget_old(self) -> None:
        """Forget the texts of the conversations that were continued longest ago, and then these conversations."""
        while len(self._open) > _MAX_CONVERSATIONS or (self._chars > _MAX_REMEMBERED_CHARS and len(self._open) > 1):
            key, oldest = next(iter(self._open.items()))
            self._close(oldest)
            self._forget_keys(oldest, key)
            self._chars -= oldest.chars
            del self._open[key]
            named = self._by_label.get(oldest.call.label or "", [])
            if key in named:
                named.remove(key)

    def _close(self, conversation: _Conversation) -> None:
        self._settle_pending(conversation)
        small = conversation.small
        if not conversation.reached_minimum and len(small) >= _MIN_REQUESTS_BELOW_MINIMUM:
            for one in small:
                self._add_finding(one.loss, one.number, self._price_tokens(conversation, one))
        conversation.small = []

    def _add_loss(
        self, now: "_Request", measured: _Measured, conversation: _Conversation, point: TimelinePoint
    ) -> None:
        minimum = now.profile.cache.minimum
        repeated = conversation.totals.requests > 1
        if now.total >= minimum:
            conversation.reached_minimum = True
        elif repeated and now.call.has_whole_prompt and minimum and not measured.reached:
            tokens = now.ends[-1] if now.ends else 0
            loss = _Loss(
                cause=LossCause.BELOW_MINIMUM, where="prompt", tokens=tokens,
                detail=f"{now.total:,} tokens, and the cache of {now.model} starts at {minimum:,}",
            )  # fmt: skip
            conversation.small.append(
                _Measured(number=now.number, total=now.total, reached=0, reachable=0, loss=loss, at=now.call.at)
            )
        if measured.loss is None:
            self._settle_pending(conversation)
            return
        point.causes.append(measured.loss.cause)
        if measured.loss.cause is LossCause.PROVIDER_MISS and now.reported:
            if conversation.pending and conversation.pending[-1].reached != measured.reached:
                self._settle_pending(conversation)
            conversation.pending.append(measured)
            return
        self._settle_pending(conversation)
        cost = self._price_tokens(conversation, measured)
        point.lost += cost or Decimal(0)
        self._add_finding(measured.loss, now.number, cost)

    def _settle_pending(self, conversation: _Conversation) -> None:
        """Decide about misses that served something: constant if it happened again with the same count."""
        pending, conversation.pending = conversation.pending, []
        is_constant = len(pending) > 1 and pending[-1].total > pending[0].total
        for one in pending:
            assert one.loss is not None
            if is_constant:
                one.loss.cause, one.loss.where = LossCause.CONSTANT_CACHED, "usage"
                one.loss.detail = f"{one.reached:,} tokens cached each time"
            self._add_finding(one.loss, one.number, self._price_tokens(conversation, one))

    def _add_repetition(
        self, now: "_Request", measured: _Measured, before: _Conversation | None, conversation: _Conversation
    ) -> None:
        """Report documents that stand in the prompt more than once, and remember the lines of new blocks."""
        fork = _find_fork(before.prompt.blocks, now.prompt.blocks) if before else 0
        lines = conversation.lines
        if before is not None and fork < len(before.prompt.blocks):
            # Blocks changed or left: only what the request still has counts as repeated.
            lines.clear()
            for block in now.prompt.blocks[:fork]:
                lines.update(_long_lines(block.text).keys())
        is_explained = measured.loss is not None and measured.loss.cause is LossCause.DOCUMENT_REPEATED
        for block in now.prompt.blocks[fork:]:
            if block.section != MESSAGES or block.kind not in ("user", "document"):
                continue
            own = _long_lines(block.text)
            repeated = sum(length for line, length in own.items() if line in lines)
            if repeated >= _MIN_REPEATED_CHARS and not is_explained:
                tokens = int(block.tokens * min(1.0, repeated / max(1, len(block.text))) * now.scale)
                loss = _Loss(
                    cause=LossCause.DOCUMENT_REPEATED, where=block.path, tokens=tokens,
                    after=_first_repeated_line(block.text, lines),
                )  # fmt: skip
                one = _Measured(
                    number=now.number, total=now.total, reached=measured.reached, reachable=0, loss=loss, at=now.call.at
                )
                self._add_finding(loss, now.number, self._price_removed(conversation, one))
            if len(lines) < _MAX_LINES:
                lines.update(own)

    def _add_finding(self, loss: _Loss | None, number: int, cost: Decimal | None) -> None:
        if loss is None:
            return
        place = loss.where if not loss.where.startswith(("messages", "input")) else "messages"
        if loss.cause in (LossCause.EXPIRED, LossCause.BELOW_MINIMUM, LossCause.BREAKPOINTS_EXCEEDED):
            place = ""
        finding = self._findings.get((loss.cause, place))
        if finding is None:
            finding = self._findings[(loss.cause, place)] = Finding(
                cause=loss.cause, where=loss.where, requests=[], before=loss.before, after=loss.after,
                detail=loss.detail,
            )  # fmt: skip
        if not finding.requests or finding.requests[-1] != number:
            finding.requests.append(number)
        finding.tokens += loss.tokens
        if cost is not None:
            finding.cost = (finding.cost or Decimal(0)) + cost

    def _add_point(self, measured: _Measured, cost: Decimal | None) -> TimelinePoint:
        timeline = self._result.timeline
        last = timeline[-1] if timeline else None
        if last is None or last.last - last.first + 1 >= self._group:
            last = TimelinePoint(first=measured.number, last=measured.number, at=measured.at, causes=[])
            timeline.append(last)
        last.last = measured.number
        last.input += measured.total
        last.reached += measured.reached
        last.cost += cost or Decimal(0)
        if len(timeline) > _MAX_POINTS:
            self._group *= 2
            pairs = zip(timeline[::2], [*timeline[1::2], None], strict=False)
            self._result.timeline = [_merge_points(one, other) for one, other in pairs]
            return self._result.timeline[-1]
        return last

    # Money.

    def _price(self, now: "_Request", reached: int, *, output: int = 0) -> Decimal | None:
        usage = _split_usage(now.call.usage, now.total, reached, now.profile, is_explicit=now.is_explicit)
        return self._knowledge.price(now.model, usage, now.call.at, output)

    def _price_tokens(self, conversation: _Conversation, one: _Measured) -> Decimal | None:
        """Return what it cost that the cache did not serve the tokens of a loss."""
        return self._price_difference(conversation, one, served=True)

    def _price_removed(self, conversation: _Conversation, one: _Measured) -> Decimal | None:
        """Return what it cost that the tokens of a loss were in the request at all."""
        return self._price_difference(conversation, one, served=False)

    def _price_difference(self, conversation: _Conversation, one: _Measured, *, served: bool) -> Decimal | None:
        if one.loss is None:
            return None
        profile = self._knowledge.get_profile(conversation.model or None)
        call, model = conversation.call, conversation.model
        is_explicit = _is_explicit(call, profile)
        usage = call.usage if call.usage and call.usage.input == one.total else None
        actual = _split_usage(usage, one.total, one.reached, profile, is_explicit=is_explicit)
        from_write = min(one.loss.tokens, actual.write)
        from_plain = min(one.loss.tokens - from_write, actual.uncached)
        better = CacheUsage(
            read=actual.read + (from_write + from_plain if served else 0),
            write=actual.write - from_write,
            uncached=actual.uncached - from_plain,
        )
        spent = self._knowledge.price(model, actual, one.at, 0)
        ideal = self._knowledge.price(model, better, one.at, 0)
        return None if spent is None or ideal is None else max(Decimal(0), spent - ideal)


class _Request(Struct, frozen=True, kw_only=True):
    """A request that is being examined."""

    number: int
    call: LoggedCall
    prompt: Prompt
    ends: list[int]
    counted: int
    total: int
    model: str
    profile: ModelProfile

    @property
    def reported(self) -> int | None:
        """The cached tokens that the provider reported."""
        return self.call.usage.cached if self.call.usage else None

    @property
    def scale(self) -> float:
        """The provider's tokens for one counted token."""
        return self.total / self.counted if self.call.usage and self.call.has_whole_prompt and self.counted else 1.0

    @property
    def is_explicit(self) -> bool:
        """Whether the cache keeps only what a breakpoint marks."""
        return _is_explicit(self.call, self.profile)

    @property
    def lacks_breakpoints(self) -> bool:
        """Whether nothing is cached because the request has no breakpoint."""
        return self.is_explicit and self.call.has_whole_prompt and not self.prompt.breakpoints and not self.reported


def normalize_model(call: LoggedCall) -> str:
    """Return the model of a call as ``provider:model`` where the provider is known, else as it was logged."""
    name = (call.model or "").strip()
    lower = name.lower()
    for family, provider in (("claude", "anthropic"), ("gpt-", "openai"), ("gemini", "google")):
        at = lower.find(family)
        if at >= 0:
            return f"{provider}:{name[at:].partition('@')[0].partition('-v1:')[0]}"
    return name.rpartition("/")[2] or name


def _is_explicit(call: LoggedCall, profile: ModelProfile) -> bool:
    return call.wire is WireFormat.MESSAGES and not profile.implicit and profile.breakpoints > 0


def _hash_messages(prompt: Prompt, label: str | None) -> tuple[list[int], list[int]]:
    """Return the hash of each prefix of messages, and of each message."""
    chain: list[int] = []
    hashes: list[int] = []
    start = next((i for i, block in enumerate(prompt.blocks) if block.section == MESSAGES), len(prompt.blocks))
    running = hash(label)
    for end in prompt.message_ends:
        one = hash(tuple((block.kind, block.text) for block in prompt.blocks[start:end]))
        hashes.append(one)
        running = hash((running, one))
        chain.append(running)
        start = end
    return chain, hashes


def _count_answers_after(prompt: Prompt) -> list[int]:
    """Return for each number of messages how many answers of the model follow them."""
    answered: list[bool] = []
    start = next((i for i, block in enumerate(prompt.blocks) if block.section == MESSAGES), len(prompt.blocks))
    for end in prompt.message_ends:
        answered.append(start < end and prompt.blocks[start].kind in _ANSWER_KINDS)
        start = end
    counts = [0] * (len(answered) + 1)
    for number in range(len(answered) - 1, -1, -1):
        starts_answer = answered[number] and not (number and answered[number - 1])
        counts[number] = counts[number + 1] + starts_answer
    return counts


def _with_label(key: int, label: str | None) -> int:
    return key if label is None else hash((key, label))


def _reply_keys(prompt: Prompt) -> Iterator[int]:
    """Yield the hashes of the latest replies in a prompt, as they are when they come from the model."""
    found = 0
    for block in reversed(prompt.blocks):
        if block.kind == "assistant" and len(block.text) >= _MIN_TELLING_MESSAGE:
            yield hash(block.text.strip())
            found += 1
            if found >= _REMEMBERED_MESSAGES:
                return


def _message_text(prompt: Prompt, number: int) -> str:
    end = prompt.message_ends[number]
    start = prompt.message_ends[number - 1] if number else 0
    return "\n".join(block.text for block in prompt.blocks[start:end] if block.section == MESSAGES)


def _has_summary(prompt: Prompt, first: int) -> bool:
    """Return whether one of two messages speaks of a summary."""
    texts = (_message_text(prompt, number) for number in range(first, min(first + 2, len(prompt.message_ends))))
    return any(word in text[:_SUMMARY_SEARCHED_CHARS].lower() for text in texts for word in _SUMMARY_WORDS)


def _same_system(one: Prompt, other: Prompt) -> bool:
    mine = [block.text for block in one.blocks if block.section == SYSTEM]
    return bool(mine) and mine == [block.text for block in other.blocks if block.section == SYSTEM]


def _find_fork(before: Sequence[Block], now: Sequence[Block]) -> int:
    """Return how many blocks at the start are the same."""
    for number, (one, other) in enumerate(zip(before, now, strict=False)):
        if one is not other and not one.matches(other):
            return number
    return min(len(before), len(now))


def _count_partial(before: Block, now: Block) -> int:
    """Return the tokens of the common start of two blocks."""
    if not before.text or not now.text or before.kind != now.kind:
        return 0
    return int(now.tokens * count_common_characters(before.text, now.text) / len(now.text))


def _count_repeated(before: _Conversation, now: _Request, fork: int, loss: _Loss | None) -> int:
    """Return the tokens behind the fork that the request before had, too: a cache could have served them."""
    old = Counter((block.kind, block.text) for block in before.prompt.blocks[fork:])
    repeated = 0
    for block in now.prompt.blocks[fork:]:
        key = (block.kind, block.text)
        if old[key] > 0:
            old[key] -= 1
            repeated += block.tokens
    if loss is None:
        return repeated
    if loss.cause is LossCause.MODEL_CHANGED:
        same = _find_fork(before.prompt.blocks, now.prompt.blocks)
        return repeated if fork else now.ends[same - 1] if same else 0
    if loss.cause is LossCause.DOCUMENT_REPEATED:
        return repeated + loss.tokens
    if fork < len(now.prompt.blocks) and fork < len(before.prompt.blocks):
        block, old_text = now.prompt.blocks[fork], before.prompt.blocks[fork].text
        is_same_but = loss.cause in _BYTE_CAUSES_BETWEEN_CONVERSATIONS and loss.cause is not LossCause.TOOLS_REORDERED
        if old_text != block.text and (is_same_but or (loss.cause in _EDITS and is_similar(old_text, block.text))):
            repeated += block.tokens
    return repeated


def _whole_section_cause(section: int) -> LossCause:
    return (LossCause.TOOLS_CHANGED, LossCause.SYSTEM_CHANGED, LossCause.HISTORY_REWRITTEN)[section]


def _explain_tools(old: Sequence[Block], new: Sequence[Block], earlier: Block | None, current: Block | None) -> _Loss:
    mine = [block.text for block in old if block.section == TOOLS]
    other = [block.text for block in new if block.section == TOOLS]
    path = current.path if current is not None and current.section == TOOLS else "tools"
    if sorted(mine) == sorted(other):
        before, after = cut_example("; ".join(_tool_names(old)), "; ".join(_tool_names(new)))
        return _Loss(cause=LossCause.TOOLS_REORDERED, where="tools", tokens=0, before=before, after=after)
    is_pair = earlier is not None and current is not None and earlier.section == current.section == TOOLS
    if is_pair and len(mine) == len(other):
        assert earlier is not None
        assert current is not None
        change = classify_change(earlier.text, current.text)
        before, after = cut_example(earlier.text, current.text)
        cause = _CAUSE_OF_CHANGE.get(change, LossCause.TOOLS_CHANGED)
        return _Loss(cause=cause, where=path, tokens=0, before=before, after=after)
    names, other_names = set(_tool_names(old)), set(_tool_names(new))
    added, removed = ", ".join(sorted(other_names - names)), ", ".join(sorted(names - other_names))
    detail = "; ".join([*([f"added: {added}"] if added else []), *([f"removed: {removed}"] if removed else [])])
    return _Loss(cause=LossCause.TOOLS_CHANGED, where="tools", tokens=0, detail=detail)


def _tool_names(blocks: Sequence[Block]) -> list[str]:
    return [_tool_name(block.text) for block in blocks if block.section == TOOLS]


def _tool_name(text: str) -> str:
    at = text.find('"name":"')
    return text[at + 8 : text.find('"', at + 8)] if at >= 0 else text[:24]


def _explain_system(earlier: Block | None, current: Block | None) -> _Loss:
    old = earlier.text if earlier is not None and earlier.section == SYSTEM else ""
    new = current.text if current is not None and current.section == SYSTEM else ""
    path = next((block.path for block in (current, earlier) if block is not None and block.section == SYSTEM), "system")
    before, after = cut_example(old, new)
    change = classify_change(old, new) if old and new else TextChange.OTHER
    cause = LossCause.ID_IN_PROMPT if change is TextChange.NUMBER else _CAUSE_OF_CHANGE.get(change)
    return _Loss(cause=cause or LossCause.SYSTEM_CHANGED, where=path, tokens=0, before=before, after=after)


def _explain_messages(before: _Conversation, now: _Request, fork: int) -> _Loss:
    """Return why an earlier message is no longer what it was."""
    old, new = before.prompt.blocks, now.prompt.blocks
    earlier = old[fork] if fork < len(old) else None
    current = new[fork] if fork < len(new) else None
    path = current.path if current is not None else earlier.path if earlier is not None else "messages"
    shown = cut_example(earlier.text if earlier else "", current.text if current else "")

    def loss(cause: LossCause, tokens: int = 0, detail: str = "") -> _Loss:
        return _Loss(cause=cause, where=path, tokens=tokens, before=shown[0], after=shown[1], detail=detail)

    if _has_cleared_result(old, new, fork):
        return loss(LossCause.TOOL_RESULT_CLEARED)
    first = current.message if current is not None and current.message >= 0 else 0
    is_shorter = len(now.prompt.message_ends) < len(before.prompt.message_ends)
    if (is_shorter and _has_summary(now.prompt, first)) or (current is not None and current.kind == "compaction"):
        return loss(LossCause.SUMMARY)
    moved = _count_moved(earlier, current, new[fork + 1 :])
    if moved:
        return loss(LossCause.DOCUMENT_REPEATED, moved)
    if earlier is not None and current is not None and earlier.kind == current.kind:
        change = classify_change(earlier.text, current.text)
        cause = _CAUSE_OF_CHANGE.get(change)
        if cause is not None:
            return loss(cause)
    return loss(LossCause.HISTORY_REWRITTEN)


def _has_cleared_result(old: Sequence[Block], new: Sequence[Block], fork: int) -> bool:
    """Return whether the first block that differs is a tool result that is now shorter or gone."""
    if fork >= len(old) or old[fork].kind != "tool_result":
        return False
    earlier = old[fork]
    current = new[fork] if fork < len(new) else None
    if current is None or current.kind != "tool_result":
        return len(new) > fork
    return len(current.text) < len(earlier.text) / 2


def _count_moved(earlier: Block | None, current: Block | None, later: Sequence[Block]) -> int:
    """Return the tokens of a text that left its place and stands further behind now."""
    if earlier is None or earlier.kind not in ("user", "document", "system"):
        return 0
    kept = _long_lines(current.text) if current is not None else {}
    left = {line: length for line, length in _long_lines(earlier.text).items() if line not in kept}
    if sum(left.values()) < _MIN_REPEATED_CHARS:
        return 0
    moved = 0
    for block in later:
        if block.kind in ("user", "document", "system"):
            moved = max(moved, sum(length for line, length in _long_lines(block.text).items() if line in left))
    if 2 * moved < sum(left.values()):
        return 0
    return int(earlier.tokens * moved / max(1, len(earlier.text)))


def _long_lines(text: str) -> dict[int, int]:
    """Return the hashes of a text's long lines, with their lengths. Sentences count as lines in a text without any."""
    if len(text) < _MIN_LINE:
        return {}
    lines = text.split("\n")
    if len(text) > _MIN_REPEATED_CHARS and max(map(len, lines)) > _MIN_REPEATED_CHARS:
        lines = [part for line in lines for part in line.replace(". ", ".\n").split("\n")]
    return {hash(line.strip()): len(line) for line in lines if len(line) >= _MIN_LINE}


def _first_repeated_line(text: str, lines: set[int]) -> str:
    found = (line.strip() for line in text.replace(". ", ".\n").split("\n") if hash(line.strip()) in lines)
    return next(found, "")[:80]


def _changed_parameters(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        name for name in (*before, *(name for name in now if name not in before)) if before.get(name) != now.get(name)
    ]


def _explain_breakpoints(now: _Request, before: _Conversation) -> _Loss | None:
    """Return what is wrong with the cache breakpoints of a request whose prefix did not change, if anything."""
    if not now.is_explicit or not now.call.has_whole_prompt:
        return None
    marks = now.prompt.breakpoints
    if not marks:
        if now.reported:
            return None  # The log leaves breakpoints out, because something was cached.
        return _Loss(cause=LossCause.BREAKPOINT_MISSING, where="cache_control", tokens=0, detail="no breakpoint")
    entries = list(before.entries)
    last_entry = max(entries, default=-1)
    lookback = now.profile.lookback or len(now.prompt.blocks)
    end = len(before.prompt.blocks) - 1
    covered = before.ends[last_entry] if 0 <= last_entry < len(before.ends) else 0
    if before.ends and before.ends[-1] - covered > _tolerance(before.ends[-1], now.profile):
        place = before.prompt.blocks[last_entry].path if last_entry >= 0 else "nothing"
        return _Loss(
            cause=LossCause.BREAKPOINT_MISSING, where="cache_control", tokens=0,
            detail=f"the last breakpoint is after {place}, {end - last_entry} blocks before the end",
        )  # fmt: skip
    if not any(last_entry <= mark < last_entry + lookback for mark in marks):
        distance = min((mark - last_entry for mark in marks if mark >= last_entry), default=None)
        far = "no breakpoint behind it" if distance is None else f"{distance} blocks before the next breakpoint"
        return _Loss(
            cause=LossCause.BREAKPOINT_MISSING, where="cache_control", tokens=0,
            detail=f"the cache entry is {far}, and the provider searches {lookback} blocks back",
        )  # fmt: skip
    return None


def _round_to_cache(tokens: int, profile: ModelProfile) -> int:
    """Return what a cache can serve of so many tokens."""
    rounded = tokens - tokens % max(1, profile.cache.granularity)
    return rounded if rounded >= profile.cache.minimum else 0


def _tolerance(tokens: int, profile: ModelProfile) -> float:
    return max(profile.cache.granularity - 1, 0) + max(_TOLERANCE_TOKENS, tokens * _TOLERANCE_SHARE)


def _rounding_tolerance(profile: ModelProfile) -> int:
    return max(profile.cache.granularity - 1, 0) + _TOLERANCE_TOKENS // 2


def _pause(before: LoggedCall, now: LoggedCall) -> float | None:
    if before.at is None or now.at is None:
        return None
    return (now.at - before.at).total_seconds()


def _lifetime(before: _Conversation, profile: ModelProfile) -> int | None:
    """Return the seconds for which the cache keeps a conversation's last prompt; None for no known end."""
    lifetime = profile.cache.lifetime
    marked = [lifetime_seconds(before.prompt.blocks[number].breakpoint) for number in before.prompt.breakpoints]
    return max([lifetime, *marked]) if lifetime is not None else None


def _split_usage(
    usage: ReportedUsage | None, total: int, reached: int, profile: ModelProfile, *, is_explicit: bool
) -> CacheUsage:
    """Return the input of a request by price: as reported, or else as the rules of the cache say."""
    rest = max(0, total - reached)
    if usage is not None and usage.written is not None:
        written = min(usage.written, rest)
        return CacheUsage(
            read=min(reached, total), write=written, uncached=rest - written,
            long_lifetime=min(usage.written_long, written),
        )  # fmt: skip
    writes = profile.cache.bills_writes and not is_explicit and total >= profile.cache.minimum and usage is None
    return CacheUsage(read=min(reached, total), write=rest if writes else 0, uncached=0 if writes else rest)


def _without_body(call: LoggedCall) -> LoggedCall:
    """Return a call without its body, which the blocks of its prompt replace."""
    return LoggedCall(
        format=call.format, wire=call.wire, body={}, model=call.model, at=call.at, usage=call.usage,
        label=call.label, has_whole_prompt=call.has_whole_prompt,
    )  # fmt: skip


def _merge_points(one: TimelinePoint, other: TimelinePoint | None) -> TimelinePoint:
    if other is None:
        return one
    return TimelinePoint(
        first=one.first, last=other.last, at=one.at, input=one.input + other.input, reached=one.reached + other.reached,
        cost=one.cost + other.cost, lost=one.lost + other.lost, causes=[*one.causes, *other.causes],
    )  # fmt: skip
