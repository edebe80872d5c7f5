"""A dialogue: one conversation walked turn by turn, from what was typed to what would be sent, with its books."""

from collections.abc import Sequence
from datetime import datetime

from lamella.core.compaction.fitting import Rules, check_fits
from lamella.core.ledger.cache import CacheModel
from lamella.core.ledger.common import NO_FORK
from lamella.core.ledger.entry import Books, Entry, enter_turn, judge_call, make_prefix, see_request
from lamella.core.log.call import Call
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply, StopReason
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.advance import advance, answer, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import UNDONE, apply_receipts
from lamella.core.prompt.state import State
from lamella.core.search.index import Found
from lamella.core.values import replace
from lamella.engine.answer import Answer
from lamella.engine.ask import Ask
from lamella.engine.fitting import Fitter
from lamella.engine.past import Past
from lamella.engine.proposal import Proposal, propose
from lamella.engine.reading import read_turn
from lamella.engine.recalling import FOUND_AT_MOST, Recaller
from lamella.engine.rounds import check_outputs, close_round, skip_call
from lamella.engine.turn import LedgerPage, TurnView
from lamella.engine.world import Journal, World
from lamella.errors import CallError

# How much of a request is kept that a provider called too long, although by our count it fits.
_AFTER_OVERFLOW = 0.7


class Dialogue:
    """One conversation. Ask, then reply; asking again leaves the turn before with the empty reply.

    With a journal, what cannot be written down did not happen.
    """

    def __init__(
        self,
        world: World,
        rules: Rules,
        start: State,
        *,
        terms: Terms,
        past: Past | None = None,
        ledger: bool = True,
        journal: Journal | None = None,
        fitter: Fitter | None = None,
    ) -> None:
        self._world = world
        self._rules = rules
        self._terms = terms
        self._start = start
        self._past = past or Past()
        self._ledger = ledger
        self._journal = journal
        self._fitter = fitter or Fitter(world.summarizer, timeout=world.summary_timeout)
        self._recaller = Recaller()
        # The state before the turn that waits for its reply, if one does, and after the last that was answered.
        self._before = self._state = start
        self._page: LedgerPage | None = None
        self._books = Books()
        self._asked_at: datetime | None = None
        self._pause: float | None = None
        self._answered_by: str | None = None
        # The answer whose calls wait for their results, and the calls to the model that were made for the open turn.
        self._pending: Reply | None = None
        self._made: tuple[Call, ...] = ()
        self._fold()

    def _fold(self) -> None:
        """The state that the past leads to."""
        turns, measure = self._past.turns, self._rules.measure
        if turns and turns[-1].reply is None:
            earlier = Past(turns[:-1])
            self._before = earlier.fold(self._start, measure)
            self._state = advance(self._before, turns[-1], self._rules.place, measure)
        else:
            self._before = self._state = self._past.fold(self._start, measure)

    def go_on(
        self, before: Prompt | None = None, *, asked_at: datetime | None = None, answered_by: str | None = None
    ) -> None:
        """Go on from what was sent last: ``before``, or the last request of the past."""
        self._asked_at, self._answered_by = asked_at, answered_by
        sent = before or self._state.last
        if sent is not None:
            request = see_request(sent, at=asked_at)
            self._books = Books(last=request, prompt=sent, cache=CacheModel(requests=((request, NO_FORK),)))

    def mark_undone(self) -> None:
        """The next request differs from the one before it because a compaction was undone."""
        self._state = replace(self._state, compacted=UNDONE)

    def mark_waiting_undone(self) -> None:
        """So does the one that waits."""
        sent = replace(waiting(self._state), compacted=UNDONE)
        self._state = replace(self._state, last=sent)

    @property
    def model(self) -> str | None:
        """The model that holds, if one was named."""
        return self._state.model

    @property
    def waits(self) -> bool:
        """Whether a turn waits for its reply."""
        return self._state.waits

    @property
    def last(self) -> Prompt | None:
        """The last request of this branch."""
        return self._state.last

    def ask(self, asked: Ask, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """Build the next turn. If it cannot be built or written down, nothing has changed."""
        if at is not None and at.tzinfo is None:
            raise CallError(
                f"The time {at.isoformat()} has no time zone.",
                hint="Give an aware datetime, for example with tzinfo=UTC.",
            )
        unanswered = waiting(self._state).user.id if self._state.waits else None
        state = answer(self._state, "") if self._state.waits else self._state
        turn = replace(self._read(asked, state), rewritten=rewritten)
        rules = replace(self._rules, measure=self._world.counter.measure(turn.model or state.model))
        settled = apply_receipts(state, self._past.receipts, turn.terms, rules.measure)
        turn, opened = self._fitter.fit(settled, turn, rules, path=self._past.path)
        receipt = turn.receipts[-1] if turn.receipts else None
        envelope = self._seal(opened, rules, before=state.last)
        entry, books = self._enter(envelope, at=at)
        pause = (at - self._asked_at).total_seconds() if at and self._asked_at else None
        if self._journal is not None:
            self._journal.write_turn(turn, parent=state.head, unanswered=unanswered, receipt=receipt, at=at)
        if unanswered is not None:
            self._past.answer("", message=state.head)
        self._past.ask(replace(turn, receipts=(*self._past.receipts, *turn.receipts)), message=opened.head)
        self._before, self._state, self._rules = state, opened, rules
        self._books, self._asked_at, self._pause = books, at, pause
        self._made, self._pending = (), None
        return self._view(envelope, entry, receipt)

    def _read(self, asked: Ask, state: State) -> Turn:
        return read_turn(asked, state, self._world.sources(), terms=self._terms)

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> Reply:
        """Record what the model answered to the turn asked last: a text, or all that is known of the call.

        An answer that calls tools leaves the turn open: ``give`` what they gave back.
        """
        if not self._state.waits:
            raise CallError("There is no open turn to reply to.", hint="Call ask() first; each turn takes one reply.")
        prompt = waiting(self._state)
        if isinstance(given, Answer) and given.message not in (None, prompt.user.id):
            raise CallError(
                "Another question was asked before this answer came; it is not recorded.",
                hint="Send one turn at a time, or open the conversation once for each.",
            )
        reply = Reply(text=given, stop=StopReason.END) if isinstance(given, str) else given.reply
        call = None if isinstance(given, str) else self._judge(prompt, given, at=at)
        if reply.calls and call is not None:
            self._open_round(reply, call, at=at)
        else:
            self._close(reply.text, call, at=at)
        return reply

    def _open_round(self, reply: Reply, call: Call, *, at: datetime | None) -> None:
        """The model calls tools: the turn stays open until it knows what they gave."""
        self._skip_round(at=at)
        if self._journal is not None:
            self._journal.write_calls(reply, parent=waiting(self._state).user.id, at=at, call=call)
        self._note(call)
        self._pending = reply

    def _close(self, text: str, call: Call | None, *, at: datetime | None) -> None:
        self._skip_round(at=at)
        prompt = waiting(self._state)
        calls = self._made if call is None else (*self._made, call)
        state = answer(self._state, text)
        if self._journal is not None:
            # Those of the rounds were written down with them.
            self._journal.write_reply(text, parent=prompt.user.id, at=at, calls=() if call is None else (call,))
        if call is not None:
            self._note(call)
        self._past.answer(text, message=state.head)
        self._before = self._state = state
        self._answered_by = calls[-1].id if calls else None
        self._made = ()

    def _note(self, call: Call) -> None:
        self._made = (*self._made, call)
        if self._page is not None:
            self._page.entry = replace(self._page.entry, calls=(*self._page.entry.calls, call))

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView:
        """Hand back what the tools gave for the calls of the last answer; the same turn, to be sent on."""
        if self._pending is None:
            raise CallError("No tool was called.", hint="Give results for the calls of the reply before.")
        check_outputs(self._pending.calls, outputs)
        return self._give(outputs, at=at)

    def _give(self, outputs: Sequence[ToolOutput], *, at: datetime | None) -> TurnView:
        done = close_round(self._pending, outputs)
        turn = self._past.turns[-1]
        longer = replace(turn, rounds=(*turn.rounds, done))
        fitted, opened = self._fitter.fit(
            self._settle(turn.terms), replace(longer, receipts=()), self._rules, path=self._past.path[:-1]
        )
        receipt = fitted.receipts[-1] if fitted.receipts else None
        envelope = self._seal(opened, self._rules)
        entry, books = self._enter(envelope, at=at)
        if self._journal is not None:
            self._journal.write_results(done.outputs, parent=opened.head, at=at)
            if receipt is not None:
                self._journal.write_receipt(receipt, before=opened.head, at=at)
        self._past.turns[-1] = replace(fitted, receipts=(*turn.receipts, *fitted.receipts))
        self._state, self._books, self._pending = opened, books, None
        self._answered_by = self._made[-1].id if self._made else None
        return self._view(envelope, entry, receipt)

    def _skip_round(self, *, at: datetime | None) -> None:
        """Calls that nobody answered are told so: what the model said is kept, and every call has its result."""
        if self._pending is not None:
            self._give([skip_call(call) for call in self._pending.calls], at=at)

    def _judge(self, prompt: Prompt, given: Answer, *, at: datetime | None) -> Call:
        page = self._page
        envelope = page.envelope if page is not None else make_envelope(prompt, self._rules.budget)
        return judge_call(
            page.entry if page is not None else self._compare(prompt),
            prompt,
            given.reply,
            tariff=self._world.tariff(prompt.model),
            by_layer=envelope.tokens.by_layer,
            timing=given.timing,
            foreseen=given.foreseen,
            pause=self._pause,
            at=at,
            retries=given.retries,
            ended=given.ended,
        )

    def _view(self, envelope: Envelope, entry: Entry, receipt: Receipt | None) -> TurnView:
        self._page = LedgerPage(entry=entry, envelope=envelope)
        return TurnView(
            number=len(self._past.turns),
            envelope=envelope,
            page=self._page,
            compaction=receipt,
            after=self._answered_by,
            pause=self._pause,
            speak=self._world.dialects.build if self._world.dialects else None,
        )

    def _seal(self, opened: State, rules: Rules, *, before: Prompt | None = None) -> Envelope:
        """The request as it may be sent: it fits, and breaks no law beside the one before it."""
        envelope = make_envelope(waiting(opened), rules.budget)
        check_fits(envelope, rules.budget)
        check_laws(envelope, before=before or self._before.last)
        return envelope

    def preview(self, asked: Ask) -> Envelope:
        """The request that asking this would give if nothing has to go for it. Nothing changes."""
        state = answer(self._state, "") if self._state.waits else self._state
        turn = replace(self._read(asked, state), receipts=self._past.receipts)
        opened = advance(state, turn, self._rules.place, self._rules.measure)
        return make_envelope(waiting(opened), self._rules.budget)

    def waiting(self) -> TurnView | None:
        """The turn that waits for its reply, to be sent again; raises if it no longer fits."""
        if not self._state.waits:
            return None
        envelope = self._seal(self._state, self._rules)
        receipts = self._past.turns[-1].receipts
        return self._view(envelope, self._compare(envelope.prompt), receipts[-1] if receipts else None)

    def _compare(self, prompt: Prompt) -> Entry:
        """The least that can be said of a turn: what moved."""
        return Entry(prefix=make_prefix(self._before.last, prompt))

    def shrink_waiting(self, *, at: datetime | None = None) -> TurnView | None:
        """The turn that waits, made smaller than anything counted here asks for: the model says it does not fit.

        None if nothing in it may go.
        """
        if not self._state.waits:
            return None
        turn, rules = self._past.turns[-1], self._rules
        receipt = self._fitter.plan(
            self._settle(turn.terms),
            replace(turn, receipts=()),
            rules,
            goal=int(waiting(self._state).total * _AFTER_OVERFLOW),
            path=self._past.path[:-1],
            automatic=True,
        )
        if receipt is None:
            return None
        turn = replace(turn, receipts=(*turn.receipts, receipt))
        opened = advance(self._before, turn, rules.place, rules.measure)
        envelope = self._seal(opened, rules)
        entry, books = self._enter(envelope, at=at)
        if self._journal is not None:
            self._journal.write_receipt(receipt, before=opened.head, at=at)
        self._past.turns[-1] = turn
        self._state, self._books = opened, books
        return self._view(envelope, entry, receipt)

    def _settle(self, terms: Terms) -> State:
        """The state before the next turn, or before the one that waits, under the receipts that go before it."""
        state = self._before
        receipts = self._past.turns[-1].receipts if self._state.waits else self._past.receipts
        return apply_receipts(state, receipts, terms, self._rules.measure)

    def plan(self, *, to: float | None = None, at: datetime | None = None) -> Proposal:
        """What compacting now would take out, down to a share of what fits, by default to the target."""
        self._check_between_turns()
        proposal = propose(
            self._settle(self._terms),
            Turn(text="", terms=self._terms),
            self._rules,
            fitter=self._fitter,
            to=to,
            path=self._past.path,
            sent=self._books.last,
            tariff=self._world.tariff(self.model),
            at=at,
        )
        return replace(proposal, upon=tuple(one.id for one in self._past.committed()))

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; something said since makes the plan void."""
        if not isinstance(planned, Proposal):
            raise CallError(f"A {type(planned).__name__} is no plan.", hint="Give what plan() returned.")
        self._check_between_turns()
        receipt = planned.receipt
        if receipt is None:
            raise CallError("There is nothing to compact.", hint="Plan with a smaller share, for example to=0.3.")
        if receipt.parent != self._state.head or planned.upon != tuple(one.id for one in self._past.committed()):
            raise CallError("The conversation went on since this was planned.", hint="Plan again, then commit.")
        if self._journal is not None:
            self._journal.write_receipt(receipt, at=at)
        self._past.commit(receipt)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it: as if they had never been."""
        del at  # nothing is written down here, so it has no time
        voided = self.find_undone(receipt)
        self._past = self._past.without(voided)
        self._fold()
        self.mark_undone()
        return voided[0]

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force, oldest first."""
        return self._past.committed()

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST, past: Past | None = None) -> Sequence[Found]:
        """Originals of this branch that cannot be read off the request: the one that waits for its reply, or the next.

        ``past`` is the past where it is known better than here.
        """
        if self._state.waits:
            sent = waiting(self._state)
        else:
            turn = Turn(text="", terms=self._terms, receipts=self._past.receipts)
            sent = waiting(advance(self._state, turn, self._rules.place, self._rules.measure))
        return self._recaller.find(past or self._past, query, sent=sent, limit=limit)

    def find_undone(self, receipt: str | None = None) -> Sequence[Receipt]:
        """The compactions that an undo would void."""
        self._check_between_turns()
        return self._past.find_undone(receipt)

    def _check_between_turns(self) -> None:
        if self._state.waits:
            raise CallError("A turn waits for its reply.", hint="Reply first, then compact or undo.")

    def _enter(self, envelope: Envelope, *, at: datetime | None) -> tuple[Entry, Books]:
        prompt = envelope.prompt
        if self._ledger:
            return enter_turn(self._books, envelope, tariff=self._world.tariff(prompt.model), at=at)
        entry = Entry(prefix=make_prefix(self._books.prompt, prompt))
        return entry, replace(self._books, prompt=prompt, last=see_request(prompt, at=at))
