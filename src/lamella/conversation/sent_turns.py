"""Derive the requests that were sent from the events of a stored conversation.

A request is derived from the events before it, in the same way as a conversation that is opened again builds its open
question: with the compactions, summaries and settings of that time. Nothing is planned again. The result is compared
with the hashes that were stored when the request was sent. ``load_sent_turns`` returns the turns of a branch, and
``iter_request_problems`` finds stored requests that cannot be derived.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.cache_ledger import UsageTracker
from lamella.conversation.log import last_model
from lamella.conversation.names import conversation_not_found_error
from lamella.conversation.past_turns import has_skipped_calls
from lamella.conversation.settings import with_last_layout
from lamella.conversation.token_counts import TokenCountCache
from lamella.conversation.turn import BuiltTurn, EarlierRequest, RequestCheck, RequestStatus
from lamella.core.log.branch import (
    branch_content_hashes,
    parse_event_time,
    parse_message_time,
    placeholder_text_hashes,
    read_model_calls,
    read_turns,
)
from lamella.core.log.call import RequestHash
from lamella.core.log.compactions import ActiveCompactions
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.events.kinds import DeleteEvent, EventKind, EventRecord, SwitchEvent
from lamella.core.log.events.message import QuestionEvent, ToolCallsEvent, ToolResultsEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import ReplyEvent, RequestFingerprint, Turn
from lamella.core.log.turn_records import TurnRecord
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import Envelope, hash_request, make_envelope, make_fingerprint
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.prompt import RENDERER_VERSION, Prompt
from lamella.core.prompt.receipts import UNDO_CAUSE
from lamella.core.prompt.replay import replay_turns
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.ports import StoreProblem

_MAX_SHOWN_NAMES = 3
# How many of the last requests a cache may still serve. It is rare that an older one serves more than these.
_MAX_LAST_REQUESTS = 32
_SENDING_KINDS = frozenset({EventKind.MESSAGE, EventKind.EDIT, EventKind.RESULTS, EventKind.COMPACTION})
# How many turns before the first one that is wanted are derived, so that a cache knows their requests.
_PRECEDING_TURNS = 3


class _Request(NamedTuple):
    """A derived request: the open turn, its record, and the hashes of contents that no longer exist.

    ``previous_prompt`` is the last request of the turns before it. ``unhashed_missing`` says whether missing content is
    not covered by the stored hashes, such as an image.
    """

    record: TurnRecord
    turn: Turn
    envelope: Envelope
    previous_prompt: Prompt | None
    missing: frozenset[str]
    unhashed_missing: bool


class _TurnWithContents(NamedTuple):
    """A turn with its contents, the events that it was read from, and the hashes of missing contents."""

    sources: tuple[object, ...]
    turn: Turn
    missing: frozenset[str]


class _CopiedMessage(NamedTuple):
    """The message that a deletion copied: its id, its question, and the number of the event that added it."""

    id: str
    question: str
    event_number: int


class _RequestTimeline:
    """When each question was open and sent, and which messages are copies.

    A version is a number of events. ``heads`` has the last message at each version. ``sent_versions`` has the versions
    at which a question was asked, continued after tool results, or compacted; ``opened_versions`` those at which it was
    opened again. ``answers`` has, by question, the number of each event that a model call gave and the hash of the
    request of that call. ``copies`` has the copied messages by the number of the deletion and the new id.
    """

    def __init__(self, conversation_key: str, records: Sequence[EventRecord]) -> None:
        log = FoldedLog(conversation_key)
        self.heads = [""]
        self.copies: dict[int, dict[str, _CopiedMessage]] = {}
        self.question_events: dict[str, list[tuple[int, QuestionEvent]]] = {}
        self.sent_versions: dict[str, list[int]] = {}
        self.opened_versions: dict[str, list[int]] = {}
        self.answers: dict[str, list[tuple[int, RequestHash]]] = {}
        for number, record in enumerate(records):
            if record.kind is EventKind.DELETE:
                before = log.branch_records()
                log.extend((record,))
                event = decode_event(record)
                assert isinstance(event, DeleteEvent)
                self.copies[number] = _list_copies(before, log.branch_records(), event.target)
            else:
                log.extend((record,))
                self._add_event(record, number, log)
            self.heads.append(log.head)
        self.log = log

    def _add_event(self, record: EventRecord, number: int, log: FoldedLog) -> None:
        if record.kind in (EventKind.MESSAGE, EventKind.EDIT):
            asked = log.nodes[log.head].event
            assert isinstance(asked, QuestionEvent)
            self.question_events.setdefault(asked.id, []).append((number, asked))
            self.sent_versions.setdefault(asked.id, []).append(number + 1)
        elif record.kind in (EventKind.CALLS, EventKind.REPLY):
            event = decode_event(record)
            assert isinstance(event, ToolCallsEvent | ReplyEvent)
            made = event.model_calls if isinstance(event, ToolCallsEvent) else event.calls
            if made and (request := made[-1].request) is not None:
                self.answers.setdefault(event.parent, []).append((number, request))
        elif record.kind in (EventKind.RESULTS, EventKind.COMPACTION, EventKind.SWITCH):
            event = decode_event(record)
            if isinstance(event, SwitchEvent):
                self.opened_versions.setdefault(event.head, []).append(number + 1)
            elif isinstance(event, ToolResultsEvent):
                self.sent_versions.setdefault(event.parent, []).append(number + 1)
            elif isinstance(event, CompactionEvent) and event.before:
                # The request before it did not fit, or is replaced by this one.
                versions = [at for at in self.sent_versions.get(event.before, ()) if at != number]
                self.sent_versions[event.before] = [*versions, number + 1]

    def find_request(self, record: TurnRecord) -> tuple[str, int] | None:
        """Return the question of a turn and the version of its last request; None if it was never open.

        A question that was opened again without a model call was not sent again, and a copy was sent as its original.
        """
        question, reply, end = record.message.id, record.reply, len(self.heads) - 1
        if reply is None and question == self.log.head:
            return question, end
        name, was_called = "" if reply is None else reply.id, False
        if reply is not None:
            end = reply.event_number
            was_called = bool(reply.text or (isinstance(reply.event, ReplyEvent) and reply.event.calls))
        while True:
            found = self._last_request_version(question, end, was_called=was_called)
            if found is not None:
                return question, found
            number = max((at for at, copied in self.copies.items() if at <= end and question in copied), default=None)
            if number is None:
                return None
            copy = self.copies[number].get(name)
            if copy is None:
                question, end = self.copies[number][question].id, number
            else:
                name, question, end = copy

    def _last_request_version(self, question: str, end: int, *, was_called: bool) -> int | None:
        """Return the last version up to ``end`` at which a question was open, or only those at which it was sent."""
        if was_called:
            return next((at for at in range(end, -1, -1) if self.heads[at] == question), None)
        return next((at for at in reversed(self.sent_versions.get(question, ())) if at <= end), None)

    def list_versions_with_open_question(self, question: str, answer: int) -> Sequence[int]:
        """Return the versions with which a question may have been sent for an answer, the latest first.

        Nothing is sent between the last event that says that it was sent and its answer. But settings may have changed
        meanwhile.
        """
        sent = max((at for at in self.sent_versions.get(question, ()) if at <= answer), default=0)
        return [at for at in range(answer, sent - 1, -1) if self.heads[at] == question]

    def find_question_event(self, record: TurnRecord, end: int) -> int | None:
        """Return the number of the event with which a question was asked, before event ``end``."""
        events = self.question_events.get(record.message.id, ())
        return next((at for at, event in reversed(events) if at < end and event == record.message.event), None)


def _list_copies(before: Sequence[TurnRecord], after: Sequence[TurnRecord], target: str) -> dict[str, _CopiedMessage]:
    """Return the messages that a deletion copied, by their new ids."""
    copies: dict[str, _CopiedMessage] = {}
    remaining = [turn for turn in before if turn.message.id != target]
    for old, new in zip(remaining, after, strict=True):
        for one, copy in ((old.message, new.message), (old.reply, new.reply)):
            if one is not None and copy is not None and one.id != copy.id:
                copies[copy.id] = _CopiedMessage(one.id, old.message.id, one.event_number)
    return copies


class _RequestDeriver:
    """Derives requests of one conversation; faster if their positions in the log increase."""

    def __init__(self, backend: Backend, conversation_key: str, records: Sequence[EventRecord]) -> None:
        self._backend = backend
        self._conversation_key = conversation_key
        self._records = records
        self._counter = TokenCountCache(backend.adapters.counter)
        self._counter.load_counts([record.counts for record in records])
        self._settings: tuple[Mapping[str, object], ConversationSettings] | None = None
        self._start_from_empty_log()

    def _start_from_empty_log(self) -> None:
        self._log = FoldedLog(self._conversation_key)
        self._turns: dict[tuple[object, ...], _TurnWithContents] = {}
        # The state before the last derived request: its tokenizer, the turns before it, and the state.
        self._known_state: tuple[str, Sequence[Turn], PromptState] | None = None

    def log_at(self, version: int) -> FoldedLog:
        """Return the log after its first ``version`` events."""
        if version < self._log.version:
            self._start_from_empty_log()
        self._log.extend(self._records[self._log.version : version])
        return self._log

    def derive_request(self, question: str, version: int, *, first: bool = False) -> _Request:
        """Return the request of a question that is open after ``version`` events.

        ``first`` derives the request before any tool round.
        """
        log = self.log_at(version)
        settings = self._resolve_settings(log)
        records = log.branch_records(question)
        compactions = log.active_compactions(records)
        read = [self._read_turn(record, compactions, settings) for record in records]
        *past, last = [one.turn for one in read]
        rounds = () if first else last.rounds
        # Calls that were never run were not sent back: the conversation continued without them.
        while rounds and has_skipped_calls(rounds[-1]):
            rounds = rounds[:-1]
        turn = replace(last, rounds=rounds)
        tokenizer = self._counter.get_tokenizer(last_model(records))
        plan_layout = settings.prompt_settings.plan_layout
        known = self._known_state
        if known is None or known[0] != tokenizer.name or not _turns_start_with(past, known[1]):
            known = (tokenizer.name, (), PromptState(conversation=self._conversation_key))
        state = replay_turns(known[2], past[len(known[1]) :], plan_layout, tokenizer=tokenizer)
        self._known_state = (tokenizer.name, past, state)
        if log.undo_changes_next_prefix() or log.undo_changed_prefix(question):
            state = replace(state, compaction_step=UNDO_CAUSE)
        prompt = get_pending_prompt(advance_by_turn(state, turn, plan_layout, tokenizer=tokenizer))
        missing = frozenset(name for one in read for name in one.missing)
        unhashed = {name for record in records for name in _iter_contents_without_fingerprint(record)}
        return _Request(
            record=records[-1],
            turn=turn,
            envelope=make_envelope(prompt, settings.prompt_settings.budget),
            previous_prompt=state.last_prompt,
            missing=missing,
            unhashed_missing=not missing.isdisjoint(unhashed),
        )

    def _resolve_settings(self, log: FoldedLog) -> ConversationSettings:
        if self._settings is None or self._settings[0] != log.settings:
            self._settings = dict(log.settings), self._backend.resolve_settings(log.settings)
        return with_last_layout(self._settings[1], log)

    def _read_turn(
        self, record: TurnRecord, compactions: ActiveCompactions, settings: ConversationSettings
    ) -> _TurnWithContents:
        """Return a turn with its contents; the same turn is read once."""
        events = compactions.by_next_question.get(record.message.id, ())
        reply = record.reply
        sources = (
            record.message.event,
            record.message.erased,
            *((reply.event, reply.rounds, reply.erased) if reply is not None else (record.open_rounds,)),
            *events,
            settings.turn_settings,
        )
        # The values are kept, so that their identities stay unique.
        key = tuple(map(id, sources))
        if key not in self._turns:
            own = ActiveCompactions(by_next_question={record.message.id: events})
            hashes = (*branch_content_hashes([record]), *placeholder_text_hashes(own))
            contents = self._backend.store.read_contents(self._conversation_key, hashes) if hashes else {}
            (turn,) = read_turns([record], contents, own, defaults=settings.turn_settings)
            erased = {*record.message.erased, *(reply.erased if reply is not None else ())}
            missing = frozenset(name for name in hashes if name not in contents or name in erased)
            self._turns[key] = _TurnWithContents(sources, turn, missing)
        return self._turns[key]


def _turns_start_with(turns: Sequence[Turn], beginning: Sequence[Turn]) -> bool:
    return len(beginning) <= len(turns) and all(one is other for one, other in zip(turns, beginning, strict=False))


def _iter_contents_without_fingerprint(record: TurnRecord) -> Iterator[str]:
    """Yield the hashes of contents that fingerprints do not cover: images, and replies in a provider's own form."""
    question = record.message.question_event
    if question is not None:
        yield from (image.hash for ref in question.artifacts() for image in ref.images)
    rounds = record.open_rounds if record.reply is None else record.reply.rounds
    yield from (one.provider_reply.json for one in rounds if one.provider_reply is not None)


def _check_request(request: _Request, fingerprint: RequestFingerprint | None) -> RequestCheck:
    """Compare the first request of a turn with the fingerprint that was stored when it was sent."""
    same = fingerprint is not None and make_fingerprint(request.envelope).hashes == fingerprint.hashes
    if request.missing and (not same or request.unhashed_missing):
        return RequestCheck(status=RequestStatus.ERASED, detail=_describe_erased(request))
    if fingerprint is None:
        return RequestCheck(status=RequestStatus.UNVERIFIED, detail="no hash was stored when it was sent")
    if same:
        return RequestCheck(status=RequestStatus.VERIFIED)
    if fingerprint.renderer != RENDERER_VERSION:
        return RequestCheck(status=RequestStatus.OTHER_RENDERER, detail=_describe_other_renderer(fingerprint.renderer))
    detail = f"its hash is {make_fingerprint(request.envelope).whole}, and {fingerprint.whole} was sent"
    return RequestCheck(status=RequestStatus.DIFFERS, detail=detail)


def _check_answered_request(
    deriver: _RequestDeriver, question: str, versions: Sequence[int], stored: RequestHash
) -> tuple[_Request | None, RequestCheck]:
    """Derive the request that a model call answered, and compare it with the hash that was stored with the call.

    Returns the first derived request with that hash. If none has it, the latest one is described.
    """
    latest: _Request | None = None
    for version in versions:
        request = deriver.derive_request(question, version)
        if hash_request(request.envelope).hash == stored.hash:
            erased = RequestCheck(status=RequestStatus.ERASED, detail=_describe_erased(request))
            return request, erased if request.unhashed_missing else RequestCheck(status=RequestStatus.VERIFIED)
        latest = latest or request
    if latest is None:
        return None, RequestCheck(status=RequestStatus.UNVERIFIED, detail="its question was not open when it was sent")
    if latest.missing:
        return None, RequestCheck(status=RequestStatus.ERASED, detail=_describe_erased(latest))
    if stored.renderer != RENDERER_VERSION:
        return None, RequestCheck(status=RequestStatus.OTHER_RENDERER, detail=_describe_other_renderer(stored.renderer))
    detail = f"its hash is {hash_request(latest.envelope).hash}, and {stored.hash} was sent"
    return None, RequestCheck(status=RequestStatus.DIFFERS, detail=detail)


def _describe_other_renderer(renderer: int) -> str:
    return f"it was written by renderer {renderer}, and this version has renderer {RENDERER_VERSION}"


def _describe_erased(request: _Request) -> str:
    count = len(request.missing)
    return f"{count:,} {'content' if count == 1 else 'contents'} that it had {'was' if count == 1 else 'were'} erased"


# The turns of a branch.


class SentTurns(NamedTuple):
    """The number of turns of a branch, and the turns."""

    turn_count: int
    turns: Iterator[BuiltTurn]


def load_sent_turns(
    backend: Backend, conversation_key: str, head: str | None = None, *, first: int = 1, last: int | None = None
) -> SentTurns:
    """Return each turn of a branch with the last request that was sent for it, by default of the active branch.

    ``check`` says whether the request equals the one that was sent. Predictions compare each request with the one
    before it on this branch. The store must stay open until the last turn was taken.

    ``first`` and ``last`` are the numbers of the first and the last turn that are wanted. The cache that predicts the
    first of them knows only the few requests before it.
    """
    records = backend.store.load(conversation_key)
    if not records:
        raise conversation_not_found_error(conversation_key)
    timeline = _RequestTimeline(conversation_key, records)
    if head is not None and head not in timeline.log.nodes:
        raise InvalidOperationError(
            f"{conversation_key} has no message {head!r}.",
            hint=f"Its branches: {', '.join(timeline.log.list_branch_heads())}.",
        )
    branch = list(timeline.log.branch_records(head))
    return SentTurns(
        len(branch), _iter_sent_turns_of_branch(backend, timeline, records, branch=branch[:last], first=max(first, 1))
    )


def _iter_sent_turns_of_branch(
    backend: Backend,
    timeline: _RequestTimeline,
    records: Sequence[EventRecord],
    *,
    branch: Sequence[TurnRecord],
    first: int,
) -> Iterator[BuiltTurn]:
    deriver = _RequestDeriver(backend, timeline.log.conversation, records)
    tracker = UsageTracker(backend.adapters, keeps_ledger=backend.keeps_ledger)
    response_id: str | None = None
    for number, record in enumerate(branch, start=1):
        if number >= first - _PRECEDING_TURNS:
            turn = _build_sent_turn(timeline, deriver, tracker, record=record, number=number, response_id=response_id)
            if number >= first:
                yield turn
        calls = read_model_calls(record)
        if calls or (record.reply is not None and record.reply.text):
            response_id = calls[-1].id if calls else None


def _build_sent_turn(
    timeline: _RequestTimeline,
    deriver: _RequestDeriver,
    tracker: UsageTracker,
    *,
    record: TurnRecord,
    number: int,
    response_id: str | None,
) -> BuiltTurn:
    question, end = timeline.find_request(record) or (record.message.id, len(timeline.heads) - 1)
    log = deriver.log_at(end)
    opened = log.branch_records(question)[-1]
    asked = timeline.find_question_event(opened, end)
    first = None if asked is None else deriver.derive_request(question, asked + 1, first=True)
    fingerprint = (
        None if asked is None or opened.message.question_event is None else opened.message.question_event.imprint
    )
    requests: list[_Request] = []
    for version in _list_sent_versions(timeline, question, start=end if asked is None else asked + 1, end=end):
        request = deriver.derive_request(question, version)
        if not requests or request.envelope.messages != requests[-1].envelope.messages:
            requests.append(request)
    check = _check_request(requests[-1] if first is None else first, fingerprint)
    is_last_known = False
    for number_of_answer, stored in timeline.answers.get(question, ()):
        if number_of_answer > end or (asked is not None and number_of_answer < asked):
            continue
        versions = timeline.list_versions_with_open_question(question, number_of_answer)
        sent, answered = _check_answered_request(deriver, question, versions, stored)
        is_last_known = answered.status is RequestStatus.VERIFIED and not any(
            number_of_answer < at <= end for at in timeline.sent_versions.get(question, ())
        )
        if is_last_known and sent is not None:
            requests[-1] = sent
        if check.has_no_known_difference and answered.status is not RequestStatus.UNVERIFIED:
            check = answered
    last = requests[-1]
    if (
        check.has_no_known_difference
        and not is_last_known
        and last.missing
        and (last.turn.rounds or last.unhashed_missing)
    ):
        # The stored hashes do not cover the last request.
        check = RequestCheck(status=RequestStatus.ERASED, detail=_describe_erased(last))
    elif check.status is RequestStatus.VERIFIED and not is_last_known and last.turn.rounds:
        detail = "no hash was stored of its last request, after tools were run"
        check = RequestCheck(status=RequestStatus.UNVERIFIED, detail=detail)
    if check.has_no_known_difference:
        check_invariants(requests[-1].envelope, before=requests[-1].previous_prompt)
    at = parse_message_time(opened.message)
    entry, ledger = tracker.build_ledger_entry(requests[0].envelope, at=at)
    tracker.record_asked_turn(ledger, at=at)
    prefix = entry.prefix
    earlier: list[EarlierRequest] = []
    for previous, request in pairwise(requests):
        tokens = previous.envelope.tokens.total
        earlier.append(EarlierRequest(tokens=tokens, cache=entry.predicted_usage, cost=entry.cost))
        entry, ledger = tracker.build_ledger_entry(request.envelope, at=at)
        tracker.record_continued_turn(ledger)
    receipt = next((one for one in reversed(requests[-1].turn.receipts) if one.automatic), None)
    calls = [call for one in opened.open_rounds for call in one.model_calls] if requests[-1].turn.rounds else []
    return replace(
        tracker.build_turn(requests[-1].envelope, replace(entry, prefix=prefix), number=number, receipt=receipt),
        previous_response_id=calls[-1].id if calls else response_id,
        check=check,
        earlier_requests=tuple(earlier),
    )


def _list_sent_versions(timeline: _RequestTimeline, question: str, *, start: int, end: int) -> Sequence[int]:
    """Return the versions at which a question was sent since it was asked or opened again, up to ``end``."""
    opened = [at for at in timeline.opened_versions.get(question, ()) if start < at <= end]
    start = opened[-1] if opened else start
    return sorted({start, end, *(at for at in timeline.sent_versions.get(question, ()) if start < at <= end)})


def _is_compaction_of_open_question(record: EventRecord) -> bool:
    event = decode_event(record) if record.kind is EventKind.COMPACTION else None
    return isinstance(event, CompactionEvent) and bool(event.before)


def list_last_requests(
    backend: Backend, conversation_key: str, *, events: int
) -> Sequence[tuple[Envelope, datetime | None]]:
    """Return the last requests that were sent, on any branch, oldest first, each with its time.

    Only the first ``events`` events count. Requests that another renderer wrote are left out, since they cannot be
    derived.
    """
    records = backend.store.load(conversation_key)[:events]
    sent = [number for number, record in enumerate(records) if record.kind in _SENDING_KINDS]
    # The request right before a compaction of an open question did not fit, or is replaced by the next one.
    replaced = {number - 1 for number in sent if _is_compaction_of_open_question(records[number])}
    deriver = _RequestDeriver(backend, conversation_key, records)
    requests: list[tuple[Envelope, datetime | None]] = []
    for number in [one for one in sent if one not in replaced][-_MAX_LAST_REQUESTS:]:
        log = deriver.log_at(number + 1)
        question, is_sent = log.last_sent
        if is_sent != number:
            continue
        asked = log.nodes[question].question_event
        if asked is None or asked.imprint is None or asked.imprint.renderer != RENDERER_VERSION:
            continue
        envelope = deriver.derive_request(question, number + 1).envelope
        # Until all tools of a round have run, nothing is sent.
        if not requests or requests[-1][0].messages != envelope.messages:
            requests.append((envelope, parse_event_time(records[number])))
    return requests


# Verification.


def iter_request_problems(backend: Backend, conversation_key: str) -> Iterator[StoreProblem]:
    """Yield a problem for each stored request whose derived bytes do not have the stored hash."""
    records = backend.store.load(conversation_key)
    timeline = _RequestTimeline(conversation_key, records)
    deriver = _RequestDeriver(backend, conversation_key, records)
    asked = {number: event for events in timeline.question_events.values() for number, event in events if event.imprint}
    answered = {number: (question, one) for question, found in timeline.answers.items() for number, one in found}
    for number in sorted(asked.keys() | answered.keys()):
        if number in asked:
            question, fingerprint = asked[number].id, asked[number].imprint
            check = _check_request(deriver.derive_request(question, number + 1, first=True), fingerprint)
        else:
            question, stored = answered[number]
            versions = timeline.list_versions_with_open_question(question, number)
            check = _check_answered_request(deriver, question, versions, stored)[1]
        if check.status is RequestStatus.DIFFERS:
            yield StoreProblem(
                conversation=conversation_key,
                location=f"message {question}",
                description=f"the request derived for it is not the one that was sent: {check.detail}",
            )
