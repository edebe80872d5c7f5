"""The turn runner: walks one turn at a time from what was typed to what would be sent, and keeps the books."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from lamella.core.artifacts.kinds import later_kind
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.thresholds import check_share
from lamella.core.compaction.fitting import check_fits
from lamella.core.ledger.answered import Answered, judge_call
from lamella.core.ledger.cache import CacheModel
from lamella.core.ledger.entry import Books, Entry, Terms, enter_turn, make_prefix, make_request
from lamella.core.ledger.outlook import compare_outlook
from lamella.core.log.call import CacheUse, Call
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Rewrite
from lamella.core.log.turn import SystemParts, TurnInput
from lamella.core.prompt.applying import UNDONE, apply_receipt
from lamella.core.prompt.asked import Asked
from lamella.core.prompt.envelope import Envelope, Sent
from lamella.core.prompt.resume import Resumed, resume
from lamella.core.prompt.state import OpenTurn, Rules, State
from lamella.core.prompt.templates import Expanded, expand_instructions, expand_typed
from lamella.core.prompt.turns import close_turn, open_turn, turn_rules
from lamella.core.search.index import Found
from lamella.core.values import replace
from lamella.engine.fitting import Fitter
from lamella.engine.past import Past
from lamella.engine.reading import TurnReader
from lamella.engine.recalling import FOUND_AT_MOST, Recaller
from lamella.engine.turn import Page, Turn
from lamella.engine.world import NOTHING_SENT, Asking, Journal, LastSent, Planned, World
from lamella.errors import CallError

# How much of a request is kept that a provider called too long, although by our count it fits.
_AFTER_OVERFLOW = 0.7


class TurnRunner:
    """One conversation. Ask, then reply; asking again leaves the turn before with the empty reply.

    With a journal, what cannot be written down did not happen.
    """

    def __init__(
        self,
        world: World,
        rules: Rules,
        resumed: Resumed,
        *,
        ledger: bool = True,
        journal: Journal | None = None,
        before: Sent | None = None,
        past: Past | None = None,
        last: LastSent = NOTHING_SENT,
        fitter: Fitter | None = None,
    ) -> None:
        self._world = world
        self._rules = rules
        self._ledger = ledger
        self._journal = journal
        self._state = resumed.state
        self._opened = resumed.opened
        self._books = _books(before or _last_sent(resumed), at=last.asked_at)
        self._past = past or Past()
        self._recaller = Recaller()
        self._page: Page | None = None
        self._asked_at = last.asked_at
        self._pause: float | None = None
        self._answered_by = last.answered_by
        self._fitter = fitter or Fitter(world.summarizer, timeout=world.summary_timeout)

    def ask(self, asked: Asked, *, at: datetime | None = None, rewritten: Rewrite | None = None) -> Turn:
        """Build the next turn. If it cannot be built or written down, nothing has changed."""
        if at is not None and at.tzinfo is None:
            raise CallError(
                f"The time {at.isoformat()} has no time zone.",
                hint="Give an aware datetime, for example with tzinfo=UTC.",
            )
        state = close_turn(self._opened, "", self._rules) if self._opened else self._state
        turn = replace(self._read(asked, state), rewritten=rewritten)
        rules = replace(self._rules, measure=self._world.counter.measure(turn.model or state.model))
        fitted = self._fitter.fit(state, turn, rules, path=self._past.path)
        turn, opened, receipt = fitted.turn, fitted.opened, fitted.receipt
        entry, books = self._enter(opened, at=at)
        pause = (at - self._asked_at).total_seconds() if at and self._asked_at else None
        if self._journal is not None:
            asking = Asking(parent=state.head, unanswered=self._opened, receipt=receipt, at=at)
            self._journal.write_asked(turn, asking)
        if self._opened is not None:
            self._past.answered("", message=state.head)
        self._past.asked(turn, message=opened.user.id, receipt=receipt)
        self._state, self._rules = fitted.state, rules
        self._opened, self._books = opened, books
        self._asked_at, self._pause = at, pause
        return self._turn(opened, entry, receipt)

    def reply(self, answer: str | Answered, *, at: datetime | None = None) -> None:
        """Record what the model answered to the turn asked last: a text, or all that is known of the call."""
        if self._opened is None:
            raise CallError("There is no open turn to reply to.", hint="Call ask() first; each turn takes one reply.")
        if isinstance(answer, Answered) and answer.message not in (None, self._opened.user.id):
            raise CallError(
                "Another question was asked before this answer came; it is not recorded.",
                hint="Send one turn at a time, or open the conversation once for each.",
            )
        text = answer if isinstance(answer, str) else answer.reply.text
        calls = () if isinstance(answer, str) else (self._judge(self._opened, answer, at=at),)
        state = close_turn(self._opened, text, self._rules)
        if self._journal is not None:
            self._journal.write_reply(text, parent=self._opened.user.id, at=at, calls=calls)
        if self._page is not None:
            self._page.entry = replace(self._page.entry, calls=(*self._page.entry.calls, *calls))
        self._past.answered(text, message=state.head)
        self._state, self._opened = state, None
        self._answered_by = calls[-1].id if calls else None

    def _judge(self, opened: OpenTurn, answer: Answered, *, at: datetime | None) -> Call:
        entry = self._page.entry if self._page is not None else self._compare(opened)
        return judge_call(entry, opened.envelope, answer, terms=self._terms(opened), pause=self._pause, at=at)

    def _turn(self, opened: OpenTurn, entry: Entry, receipt: Receipt | None) -> Turn:
        self._page = Page(entry)
        return Turn(
            number=len(self._past.turns),
            envelope=opened.envelope,
            page=self._page,
            compaction=receipt,
            after=self._answered_by,
            pause=self._pause,
            speak=self._world.dialects.build if self._world.dialects else None,
        )

    @property
    def model(self) -> str | None:
        """The model that holds, if one was named."""
        return self._opened.state.model if self._opened else self._state.model

    def preview(self, asked: Asked) -> Envelope:
        """The request that asking this would give if nothing has to go for it. Nothing changes."""
        state = close_turn(self._opened, "", self._rules) if self._opened else self._state
        return open_turn(state, self._read(asked, state), self._rules).envelope

    def waiting(self) -> Turn | None:
        """The turn that waits for its reply, to be sent again; raises if it no longer fits."""
        if self._opened is None:
            return None
        check_fits(self._opened, self._rules.budget)
        receipts = self._past.turns[-1].receipts
        return self._turn(self._opened, self._compare(self._opened), receipts[-1] if receipts else None)

    def _compare(self, opened: OpenTurn) -> Entry:
        """The least that can be said of a turn: what moved."""
        return Entry(prefix=make_prefix(self._state.last, opened.envelope))

    def shrink_waiting(self, *, at: datetime | None = None) -> Turn | None:
        """The turn that waits, made smaller than anything counted here asks for: the model says it does not fit.

        None if nothing in it may go.
        """
        if self._opened is None:
            return None
        told, rules = self._past.turns[-1], self._rules
        goal = int(self._opened.envelope.tokens.total * _AFTER_OVERFLOW)
        plan = self._fitter.plan(self._state, told.turn, rules, goal=goal, path=self._past.path[:-1], automatic=True)
        if plan.receipt is None:
            return None
        receipt = plan.receipt
        state = apply_receipt(self._state, receipt, turn_rules(rules, told.turn))
        opened = open_turn(state, told.turn, rules)
        entry, books = self._enter(opened, at=at)
        if self._journal is not None:
            self._journal.write_receipt(receipt, before=opened.user.id, at=at)
        self._past.turns[-1] = replace(told, receipts=(*told.receipts, receipt))
        self._state, self._opened, self._books = state, opened, books
        return self._turn(opened, entry, receipt)

    def plan(self, *, to: float | None = None, at: datetime | None = None) -> Planned:
        """What compacting now would take out, down to a share of what fits, by default to the target."""
        state, turn, budget = self._between_turns(), TurnInput(text=""), self._rules.budget
        goal = int((budget.target if to is None else check_share(to)) * budget.limit)
        as_is = open_turn(state, turn, self._rules)
        before = as_is.envelope.tokens
        # Folding alone may free a little; where there is room enough, that is no reason to move the prefix.
        if before.total <= goal:
            return Planned(receipt=None, goal=goal, before=before)
        receipt = self._fitter.plan(state, turn, self._rules, goal=goal, path=self._past.path).receipt
        if receipt is None:
            return Planned(receipt=None, goal=goal, before=before)
        compacted = open_turn(apply_receipt(state, receipt, self._rules), turn, self._rules)
        outlook = compare_outlook(
            self._books.last,
            as_is=make_request(as_is.envelope, at=at),
            compacted=make_request(compacted.envelope, at=at),
            terms=self._terms(compacted),
            at=at,
        )
        return Planned(
            receipt=receipt,
            goal=goal,
            outlook=outlook,
            before=before,
            after=compacted.envelope.tokens,
            upon=tuple(one.id for one in self._past.committed()),
        )

    def commit(self, planned: Planned, *, at: datetime | None = None) -> Receipt:
        """Do what was planned; something said since makes the plan void."""
        if not isinstance(planned, Planned):
            raise CallError(f"A {type(planned).__name__} is no plan.", hint="Give what plan() returned.")
        state, receipt = self._between_turns(), planned.receipt
        if receipt is None:
            raise CallError("There is nothing to compact.", hint="Plan with a smaller share, for example to=0.3.")
        if receipt.parent != state.head or planned.upon != tuple(one.id for one in self._past.committed()):
            raise CallError("The conversation went on since this was planned.", hint="Plan again, then commit.")
        if self._journal is not None:
            self._journal.write_receipt(receipt, at=at)
        self._state = apply_receipt(state, receipt, self._rules)
        self._past.compacted(receipt)
        return receipt

    def undo(self, receipt: str | None = None, *, at: datetime | None = None) -> Receipt:
        """Void a compaction, by default the last, and all after it: as if they had never been."""
        del at  # nothing is written down here, so it has no time
        state = self._between_turns()
        voided = self._past.find_undone(receipt)
        past = self._past.without(voided)
        again = resume(past.turns, self._rules, conversation=state.conversation, model=None, receipts=past.receipts)
        self._past, self._state = past, replace(again.state, compacted=UNDONE)
        return voided[0]

    def receipts(self) -> Sequence[Receipt]:
        """The compactions in force, oldest first."""
        return self._past.committed()

    def recall(self, query: str, *, limit: int = FOUND_AT_MOST, past: Past | None = None) -> Sequence[Found]:
        """Originals of this branch that cannot be read off the request: the one that waits for its reply, or the next.

        ``past`` is the past where it is known better than here.
        """
        if self._opened is not None:
            sent = self._opened.envelope
        else:
            sent = open_turn(self._state, TurnInput(text=""), self._rules, checked=False).envelope
        return self._recaller.find(past or self._past, query, sent=sent, limit=limit)

    def find_undone(self, receipt: str | None = None) -> Sequence[Receipt]:
        """The compactions that an undo would void."""
        self._between_turns()
        return self._past.find_undone(receipt)

    def _between_turns(self) -> State:
        if self._opened is not None:
            raise CallError("A turn waits for its reply.", hint="Reply first, then compact or undo.")
        return self._state

    def _enter(self, opened: OpenTurn, *, at: datetime | None) -> tuple[Entry, Books]:
        if self._ledger:
            return enter_turn(self._books, opened, terms=self._terms(opened), at=at)
        entry = Entry(prefix=make_prefix(self._books.envelope, opened.envelope))
        return entry, replace(self._books, envelope=opened.envelope, last=make_request(opened.envelope, at=at))

    def _read(self, asked: Asked, state: State) -> TurnInput:
        reading = TurnReader(self._world.sources(), known=_newest(state))
        attached = reading.read_wanted(asked.attach)
        typed = expand_typed(asked.text, reading.resolve)
        system, drawn = _system_parts({**state.system.as_typed(), **asked.system}, reading)
        return TurnInput(
            text=typed.text,
            typed=asked.text,
            attached=(*attached, *typed.artifacts),
            results=asked.results,
            system=None if system == state.system else system,
            tools=asked.tools,
            model=asked.model or (state.model if state.layout is None else None),
            drop=asked.drop,
            fold=asked.fold,
            layout=self._rules.layout,
            carry_forward=self._rules.carry_forward,
            history=self._rules.history,
            history_turns=self._rules.history_turns,
            image_notes=self._rules.image_notes,
            warnings=(*reading.warnings, *typed.warnings, *drawn.warnings),
        )

    def _terms(self, opened: OpenTurn) -> Terms:
        model = opened.envelope.model

        def price(use: CacheUse, at: datetime | None) -> Decimal | None:
            return self._world.prices.price(model, use, at) if model else None

        def price_all(use: CacheUse, output: int, at: datetime | None) -> Decimal | None:
            return self._world.prices.price(model, use, at, output=output) if model else None

        return Terms(
            profile=self._world.profiles.profile(model),
            price=price,
            measure=self._world.counter.measure(model),
            price_all=price_all,
        )


def _last_sent(resumed: Resumed) -> Sent | None:
    return resumed.opened.envelope if resumed.opened else resumed.state.last


def _books(sent: Sent | None, *, at: datetime | None) -> Books:
    """Books for a conversation that goes on: the request sent last is what the next is compared with."""
    if sent is None:
        return Books()
    request = make_request(sent, at=at)
    return Books(last=request, envelope=sent, cache=CacheModel(requests=(request,)))


def _system_parts(parts: Mapping[str, str], reading: TurnReader) -> tuple[SystemParts, Expanded]:
    typed = parts.get("instructions", "")
    drawn = expand_instructions(typed, reading.resolve)
    named = {**parts, "instructions": drawn.text}
    return SystemParts(**named, inlined=drawn.artifacts, typed_instructions=typed), drawn


def _newest(state: State) -> list[Artifact]:
    """What a link can mean without reading: what is known, as it is in a later turn."""
    return [
        artifact if artifact.kind is later_kind(artifact.kind) else replace(artifact, kind=later_kind(artifact.kind))
        for artifact in state.known.values()
    ]
