"""A dialogue: one conversation walked turn by turn, from what was typed to what would be sent, with its books."""

from collections.abc import Sequence
from copy import copy
from datetime import datetime

from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import is_over
from lamella.core.compaction.fitting import Rules
from lamella.core.ledger.entry import Entry
from lamella.core.log.call import Call
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.advance import add_rounds, advance, answer, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope, make_imprint
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import UNDONE, apply_receipts
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.checks import check_zone
from lamella.engine.dialogue.accounts import Accounts, Earlier
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask, take_up
from lamella.engine.dialogue.fitting import Fitter, seal_request
from lamella.engine.dialogue.past import Past
from lamella.engine.dialogue.proposal import EVERYTHING_SAID, PlanRange, Proposal, propose
from lamella.engine.dialogue.reading.turns import read_turn
from lamella.engine.dialogue.recalling import Recaller, SearchedDialogue
from lamella.engine.dialogue.rounds import calls_wait, check_outputs, close_round, name_calls, skip_call
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.dialogue.world import Journal, LeftTurn, SentTurn, World
from lamella.errors import CallError

# How much of a request is kept that a provider called too long, although by our count it fits.
_AFTER_OVERFLOW = 0.7


class Dialogue(SearchedDialogue):
    """One conversation: ask, then reply, else the turn stays empty. What its journal cannot write did not happen."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        start: State,
        *,
        terms: Terms,
        past: Past | None = None,
        pending: Reply | None = None,
        ledger: bool = True,
        journal: Journal | None = None,
        recaller: Recaller | None = None,
    ) -> None:
        self._world, self._rules, self._terms, self._start = world, rules, terms, start
        self._past, self._journal = past or Past(), journal
        self._fitter = Fitter(world.find_fetcher(), secrets=world.secrets)
        self._recaller = recaller or Recaller()
        self.accounts = Accounts(world, ledger=ledger)
        # The answer whose calls wait; what they gave, in a state that was not looked at yet; the request as sent last.
        self._pending = pending
        self._taken: tuple[State, tuple[ToolOutput, ...]] | None = None
        self._sent: Prompt | None = None
        self._fold()

    def _fold(self) -> None:
        """The state that the past leads to, before the turn that waits for its reply, if one does, and with it."""
        past, place, measure = self._past, self._rules.place, self._rules.measure
        self._before = self._state = past.fold(self._start, place, measure=measure, but=len(past.waiting))
        for turn in past.waiting:
            self._state = advance(self._before, turn, place, measure=measure)

    def go_on(self, before: Prompt | None, *, sent: SentTurn, uncompacted: Earlier) -> None:
        """Go on from what was sent last: ``before``, or the last request of the past."""
        self.accounts.go_on(before or self._state.last, sent, budget=self._rules.budget, uncompacted=uncompacted)

    def mark_undone(self) -> None:
        """The next request differs from the one before it because a compaction was undone."""
        self._state = replace(self._state, compacted=UNDONE)

    def mark_waiting_undone(self) -> None:
        """So does the one that waits, unless it was compacted since."""
        self._before = replace(self._before, compacted=UNDONE)
        self._state = advance(self._before, self._past.turns[-1], self._rules.place, measure=self._rules.measure)

    @property
    def model(self) -> str | None:
        """The model that holds, if one was named."""
        return self._state.model

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of the last answer that wait for what they give."""
        return () if self._pending is None else self._pending.calls

    @property
    def is_in_round(self) -> bool:
        """Whether tools were called in the turn that waits."""
        return self._state.waits and bool(self._pending or self._past.turns[-1].rounds)

    def read_answer(self, given: object) -> Answer:
        """What a model answered, from the object that a provider's SDK gave."""
        return self._world.read_answer(given)

    @property
    def waits(self) -> bool:
        """Whether a turn waits for its reply."""
        return self._state.waits

    @property
    def before(self) -> tuple[State, Measure]:
        """The state before the turn that waits, else after the last one, and how it was counted."""
        return self._before, self._rules.measure

    @property
    def last(self) -> Prompt | None:
        """The last request of this branch."""
        return self._state.last

    @property
    def standing(self) -> tuple[State, Terms]:
        """Where the conversation stands, and the terms that it goes on under."""
        return self._state, self._terms

    def ask(self, asked: Ask | Turn, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """Build the next turn. If it cannot be built or written down, nothing has changed.

        A turn that was read before is asked again as it was, under the terms that hold here.
        """
        check_zone(at)
        unanswered = waiting(self._state).user.id if self._state.waits else None
        skipped = () if self._pending is None else tuple(skip_call(call) for call in self._pending.calls)
        state = self._leave()
        settled, turn, rules = self._prepare(asked, state, at=at, rewritten=rewritten)
        turn, opened = self._fitter.fit(settled, turn, rules, path=self._past.path)
        if isinstance(asked, Ask) and asked.upon and (turn.receipts or self.accounts.lets_move(waiting(opened))):
            return self.ask(take_up(asked), at=at, rewritten=rewritten)
        receipt = turn.receipts[-1] if turn.receipts else None
        envelope = seal_request(opened, rules, before=state.last or self._before.last)
        entry, books = self.accounts.enter(envelope, at=at)
        turn = replace(turn, imprint=make_imprint(envelope))
        if self._journal is not None:
            left = LeftTurn(id=unanswered, skipped=skipped) if unanswered is not None else None
            self._journal.write_turn(turn, message=opened.head, parent=state.head, left=left, receipt=receipt, at=at)
        if unanswered is not None:
            self._past.turns[-1] = self._with_round(skipped)
            self._past.answer("", message=state.head, at=at)
        self._past.ask(replace(turn, receipts=(*self._past.receipts, *turn.receipts)), message=opened.head, at=at)
        self._before, self._state, self._rules, self._pending = state, opened, rules, None
        self._sent = opened.last
        self.accounts.begin(books, at=at)
        return self._view(envelope, entry, receipt)

    def _prepare(
        self, asked: Ask | Turn, state: State, *, at: datetime | None, rewritten: Rewrite | None
    ) -> tuple[State, Turn, Rules]:
        """What is asked, as a planned turn; the state it is asked in, under what was compacted; and its rules."""
        turn = self._read(asked, state, rewritten)
        rules = replace(self._rules, measure=self._world.counter.measure(turn.model or state.model))
        committed = self._past.receipts
        settled = apply_receipts(state, committed, turn.terms, measure=rules.measure) if committed else state
        return settled, self.accounts.plan(settled, turn, rules, at=at), rules

    def _leave(self, state: State | None = None) -> State:
        """The state if the turn that waits is left as it is: its calls are not made, its reply is empty."""
        state = state or self._state
        if self._pending is not None:
            state = add_rounds(state, self._with_round([skip_call(call) for call in self._pending.calls]).rounds)
        return answer(state, "") if state.waits else state

    def _with_round(self, outputs: Sequence[ToolOutput]) -> Turn:
        """The turn that waits, with what its pending calls gave."""
        turn, pending = self._past.turns[-1], self._pending
        return turn if pending is None else replace(turn, rounds=(*turn.rounds, close_round(pending, outputs)))

    def _read(self, asked: Ask | Turn, state: State, rewritten: Rewrite | None) -> Turn:
        if isinstance(asked, Turn):
            return replace(asked, terms=self._terms, rewritten=rewritten, placement=None)
        asked = self._with_hint(asked) if self._world.recall_hints else asked
        terms = self._rules.run_by(self._terms, asked.runner)
        turn = read_turn(asked, state, self._world, terms=terms, rules=self._rules, receipts=self._past.receipts)
        if rewritten is None:
            return turn
        if self._past.committed():
            past = self._past.without(self._past.committed())
            state = self._leave(past.fold(self._start, self._rules.place, measure=self._rules.measure))
        return self.accounts.mark_rewritten(turn, rewritten, state=state, place=self._rules.place)

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> Reply:
        """Record what the model answered to the turn asked last: a text, or all that is known of the call.

        An answer that calls tools leaves the turn open: ``give`` what they gave back.
        """
        if not self._state.waits:
            raise CallError("There is no open turn to reply to.", hint="Ask first; each turn takes one reply.")
        prompt = waiting(self._state)
        if isinstance(given, str):
            self._close(said := Answer(reply=Reply(text=given, stop=StopReason.END)), None, at=at)
            return said.reply
        call = self.accounts.judge(prompt, given, before=self._before.last, budget=self._rules.budget, at=at)
        if not given.reply.calls:
            self._close(given, call, at=at)
            return given.reply
        self._open_round(reply := name_calls(given.reply), call, at=at)
        return reply

    def _open_round(self, reply: Reply, call: Call, *, at: datetime | None) -> None:
        """The model calls tools: the turn stays open until it knows what they gave."""
        self._skip_round(at=at)
        if self._journal is not None:
            self._journal.write_calls(reply, parent=self._state.head, at=at, call=call)
        self.accounts.note(call)
        self._pending = reply

    def _close(self, given: Answer, call: Call | None, *, at: datetime | None) -> None:
        self._skip_round(at=at)
        state, parent = answer(self._state, given.reply.text), self._state.head
        if self._journal is not None:
            # Those of the rounds were written down with them.
            self._journal.write_reply(given, message=state.head, parent=parent, at=at, calls=[call] if call else [])
        if call is not None:
            self.accounts.note(call)
        self.accounts.end(waiting(self._state), self._past.turns[-1].imprint, given.reply.text)
        self._past.answer(given.reply.text, message=state.head, at=at)
        self._before = self._state = state

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView:
        """Hand back what the tools gave for the calls of the last answer; the same turn, to be sent on.

        That is written down before it is looked at: whether it fits or not, they ran. Given again it is only looked at.
        """
        if self._pending is not None:
            check_outputs(self._pending.calls, outputs)
            self.take(outputs, at=at)
            self._taken = (self._state, tuple(outputs))
        elif self._taken != (self._state, tuple(outputs)):
            raise CallError("No tool was called.", hint="Give results for the calls of the reply before.")
        return self._fit_waiting(at=at)

    def _fit_waiting(self, *, at: datetime | None) -> TurnView:
        """The turn that waits, as it is sent from now on, made smaller where that is needed."""
        turn = self._past.turns[-1]
        before, asked = self._settle(turn.terms), replace(turn, receipts=())
        fitted, opened = self._fitter.fit(before, asked, self._rules, path=self._past.path[:-1])
        receipt = fitted.receipts[-1] if fitted.receipts else None
        return self._send_on(replace(fitted, receipts=(*turn.receipts, *fitted.receipts)), opened, receipt, at=at)

    def _send_on(self, turn: Turn, opened: State, receipt: Receipt | None, *, at: datetime | None) -> TurnView:
        """The turn that waits, as it is sent from now on, with what was compacted for that."""
        envelope = seal_request(opened, self._rules, before=self._sent or self._before.last)
        entry, books = self.accounts.enter(envelope, at=at)
        if receipt is not None and self._journal is not None:
            self._journal.write_receipt(receipt, before=opened.head, at=at)
        self._past.turns[-1], self._state, self._sent = turn, opened, opened.last
        self.accounts.go_further(books)
        return self._view(envelope, entry, receipt)

    def take(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> None:
        """What the calls of the last answer are said to have given, which is not sent on: the turn goes on or ends."""
        longer = self._with_round(outputs)
        if self._journal is not None:
            self._journal.write_results(longer.rounds[-1].outputs, parent=self._state.head, at=at)
        self._past.turns[-1] = longer
        self._state, self._pending = add_rounds(self._state, longer.rounds), None

    def _skip_round(self, *, at: datetime | None) -> None:
        """Calls that nobody answered are told so: what the model said is kept, and every call has its result."""
        if self._pending is not None:
            self.take([skip_call(call) for call in self._pending.calls], at=at)

    def _view(self, envelope: Envelope, entry: Entry, receipt: Receipt | None) -> TurnView:
        return self.accounts.view(envelope, entry, number=self._past.number, receipt=receipt)

    def preview(self, asked: Ask, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> TurnView:
        """The turn that asking this would give if no summary is asked for. Nothing changes."""
        check_zone(at)
        settled, turn, rules = self._prepare(asked, self._leave(), at=at, rewritten=rewritten)
        receipt, opened = self._fitter.look_ahead(settled, turn, rules, path=self._past.path)
        envelope = make_envelope(waiting(opened), rules.budget)
        if asked.upon and (receipt is not None or self.accounts.lets_move(envelope.prompt)):
            return self.preview(take_up(asked), at=at, rewritten=rewritten)
        return self.accounts.view_ahead(envelope, number=self._past.number + 1, receipt=receipt, at=at)

    def waiting(self, *, at: datetime | None = None) -> TurnView | None:
        """The turn that waits for its reply, to be sent again; made smaller, written down, where it no longer fits."""
        if not self._state.waits:
            return None
        if is_over(waiting(self._state).total, self._rules.budget.hard, self._rules.budget):
            return self._fit_waiting(at=at)
        envelope = seal_request(self._state, self._rules, before=self._before.last)
        self._sent = envelope.prompt
        entry = self.accounts.enter_again(envelope, at=at)
        return self._view(envelope, entry, next(reversed(self._past.turns[-1].receipts), None))

    def shrink_waiting(self, *, at: datetime | None = None) -> TurnView | None:
        """The turn that waits, made smaller since the model says it does not fit; none if nothing in it may go."""
        goal = _AFTER_OVERFLOW * waiting(self._state).total if self._state.waits else 0
        if not goal or (turn := self._cut_waiting(goal, self._fitter)) is None:
            return None
        opened = advance(self._before, turn, self._rules.place, measure=self._rules.measure)
        return self._send_on(turn, opened, turn.receipts[-1], at=at)

    def make_room(self, *, at: datetime | None = None) -> Receipt | None:
        """Compact down to the target; what is sent next of a turn that waits is smaller. None if nothing is gained."""
        if not self._state.waits:
            planned = self.plan(summaries=False, at=at)
            return None if planned.receipt is None else self.commit(planned, at=at)
        goal = self._rules.budget.target * self._rules.budget.limit
        if (turn := self._cut_waiting(goal, self._fitter.without_summaries())) is None:
            return None
        if self._journal is not None:
            self._journal.write_receipt(turn.receipts[-1], before=self._state.head, at=at)
        self._past.turns[-1] = turn
        self._state = advance(self._before, turn, self._rules.place, measure=self._rules.measure)
        return turn.receipts[-1]

    def _cut_waiting(self, goal: float, fitter: Fitter) -> Turn | None:
        """The turn that waits, under a compaction more; none where it needs none, or nothing in it may go."""
        turn, path = self._past.turns[-1], self._past.path[:-1]
        before, asked = self._settle(turn.terms), replace(turn, receipts=())
        if waiting(self._state).total <= goal:
            return None
        plan, _ = fitter.plan(before, asked, self._rules, goal=int(goal), path=path, automatic=True)
        return replace(turn, receipts=(*turn.receipts, plan.receipt)) if plan.receipt else None

    def _settle(self, terms: Terms) -> State:
        """The state before the next turn, or before the one that waits, under the receipts that go before it."""
        receipts = self._past.turns[-1].receipts if self._state.waits else self._past.receipts
        return apply_receipts(self._before, receipts, terms, measure=self._rules.measure)

    def plan(
        self,
        within: PlanRange = EVERYTHING_SAID,
        *,
        to: float | None = None,
        summaries: bool = True,
        at: datetime | None = None,
    ) -> Proposal:
        """What compacting now would take out; a turn that waits counts as stopped, with the empty reply."""
        if self._state.waits:
            return self._after_stopping().plan(within, to=to, summaries=summaries, at=at)
        proposal = propose(
            self._settle(self._terms),
            Turn(text="", terms=self._terms),
            self._rules,
            within=within,
            fitter=self._fitter if summaries else self._fitter.without_summaries(),
            to=to,
            path=self._past.path,
            sent=self.accounts.sent,
            tariff=self.accounts.find_tariff(self.model),
            at=at,
        )
        return replace(proposal, upon=tuple(one.id for one in self._past.committed()))

    def commit(self, planned: Proposal, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; something said since makes the plan void."""
        if not isinstance(planned, Proposal):
            raise CallError(f"A {type(planned).__name__} is no plan.", hint="Give what planning returned.")
        if (receipt := planned.receipt) is None:
            raise CallError("There is nothing to compact.", hint="Plan with a smaller share, for example 0.3.")
        if receipt.parent != self._leave().head or planned.upon != tuple(one.id for one in self._past.committed()):
            raise CallError("The conversation went on since this was planned.", hint="Plan again, then commit.")
        self.stop_waiting(at=at)
        if self._journal is not None:
            self._journal.write_receipt(receipt, at=at)
        self._past.commit(receipt)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it: as if they had never been."""
        voided = self.find_undone(receipt)
        self.stop_waiting(at=at)
        # Where nothing was sent under them, the next request is what it would have been without both.
        moves = self._state.compacted == UNDONE or any(one not in self._past.receipts for one in voided)
        self.go_back(voided)
        if moves:
            self.mark_undone()
        return voided[0]

    def go_back(self, voided: Sequence[Receipt]) -> None:
        """Go on as if these compactions had never been; what was sent under them stays in the books."""
        self._past = self._past.without(voided)
        self._fold()

    def stop_waiting(self, *, at: datetime | None = None) -> None:
        """A turn that waits is over with the empty reply; one whose calls wait is not given up like that."""
        if self._pending is not None:
            raise calls_wait("Calls of tools wait for what they give.", self._pending.calls)
        if self._state.waits:
            self.reply("", at=at)

    def _after_stopping(self) -> "Dialogue":
        """The same dialogue once it stopped waiting, for a look at it: nothing is written down or changed."""
        ahead = copy(self)
        ahead._journal, ahead.accounts, ahead._past = None, copy(self.accounts), self._past.without(())
        ahead.stop_waiting()
        return ahead
