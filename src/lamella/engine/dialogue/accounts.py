"""The accounts of a dialogue: its books between turns, and the page of the turn that is under way."""

from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime
from logging import INFO, WARNING

from lamella.core.budget.counting import weigh
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.fitting import Rules
from lamella.core.ledger.cache import NO_FORK, CacheModel, CacheRequest
from lamella.core.ledger.entry import Books, Entry, Tariff, enter_turn, judge_call, make_aside, make_prefix, see_request
from lamella.core.log.call import Call
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Effort, Rewrite
from lamella.core.log.turn import Turn
from lamella.core.messages.request import Request
from lamella.core.planning.prices import AHEAD, lets_move
from lamella.core.prompt.advance import Planner, advance, waiting
from lamella.core.prompt.envelope import Envelope, make_envelope, make_imprint
from lamella.core.prompt.movement import extends
from lamella.core.prompt.prompt import RENDERER, Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.reading.working_set import bring_back
from lamella.engine.dialogue.turn import LedgerPage, TurnView
from lamella.engine.dialogue.world import SentTurn, World
from lamella.engine.log_line import LOGGER, log_turn

# A request that was sent before, if there is one.
Earlier = Callable[[], Prompt | None]


class Accounts:
    """What was sent, when, and what each call to the model came to. Without a ledger only what moved is told."""

    def __init__(self, world: World, *, ledger: bool) -> None:
        self._world = world
        self._ledger = ledger
        self._books = Books()
        self._tariffs: dict[str | None, Tariff] = {}
        self._page: LedgerPage | None = None
        self._asked_at: datetime | None = None
        self._pause: float | None = None
        # How long ago the turn under way was asked, when it was sent once more.
        self._since: float | None = None
        self._answered_by: str | None = None
        self._uncompacted: Earlier = lambda: None
        # The calls to the model that were made for the turn under way.
        self._calls: tuple[Call, ...] = ()
        # When what was sent last was sent again since, only to keep it in the cache.
        self._kept: tuple[datetime, ...] = ()

    @property
    def sent(self) -> CacheRequest | None:
        """The request that was sent last, as a cache sees it."""
        return self._books.last

    @property
    def asked_at(self) -> datetime | None:
        """When the last turn was asked."""
        return self._asked_at

    @property
    def kept(self) -> Sequence[datetime]:
        """When what was sent last was sent again since, only to keep it in the cache."""
        return self._kept

    def keep_warm(self, at: datetime) -> None:
        """What was sent last was sent again: the cache has it from then on."""
        self._kept = (*self._kept, at)
        books, requests = self._books, self._books.cache.requests
        if books.last is not None:
            books = replace(books, last=replace(books.last, at=at))
        if requests:
            newest, fork = requests[-1]
            cache = replace(books.cache, requests=(*requests[:-1], (replace(newest, at=at), fork)))
            books = replace(books, cache=cache)
        self._books = books

    def mark_rewritten(self, turn: Turn, rewritten: Rewrite, *, state: State, place: Planner) -> Turn:
        """The turn as one whose history an edit or another branch rewrote; or did not, where that was sent last.

        The provider has those bytes then, and nothing has to fold for the turn. Whether it does cannot be found again
        once more was sent: it is written down with the turn. Compactions are passed over, in the state and in what was
        sent, so that it is the same once they are undone: a branch from before one goes on from what was sent then.
        """
        marked, sent = replace(turn, rewritten=rewritten), self._uncompacted() or self._books.prompt
        if sent is None or sent.tools != state.tools:
            return marked
        measure = self._world.counter.measure(turn.model or state.model)
        prompt = waiting(advance(state, turn, place, measure=measure))
        stays = prompt.placement.keep is None and extends(prompt.messages[: prompt.asked_at], sent.messages)
        return replace(marked, unmoved=True) if stays else marked

    def go_on(self, last: Prompt | None, sent: SentTurn, *, budget: Budget, uncompacted: Earlier) -> None:
        """Go on from what was sent last; where that was rendered otherwise, no cache has what it renders to now.

        ``uncompacted`` gives what it would have been without any compaction, none where there was none.
        """
        self._uncompacted = uncompacted
        self._asked_at, self._answered_by, self._pause = sent.asked_at, sent.answered_by, sent.pause
        if last is None:
            return
        kept = sent.imprint
        if kept is not None and kept.renderer != RENDERER and kept.hashes != _hash_again(last, budget):
            self._books = Books(prompt=replace(last, renderer=kept.renderer))
            return
        request = see_request(last, at=sent.asked_at)
        self._books = Books(last=request, prompt=last, cache=CacheModel(requests=((request, NO_FORK),)))
        for at in sent.kept:
            self.keep_warm(at)

    def enter(self, envelope: Envelope, *, at: datetime | None) -> tuple[Entry, Books]:
        """The entry for a request, and the books after it, which are kept once it is written down."""
        prompt = envelope.prompt
        if self._ledger:
            return enter_turn(self._books, envelope, tariff=self.find_tariff(prompt.model), at=at)
        entry = Entry(prefix=make_prefix(self._books.prompt, prompt))
        return entry, replace(self._books, prompt=prompt, last=see_request(prompt, at=at))

    def find_tariff(self, model: str | None) -> Tariff:
        """How a turn to a model is billed: looked up once."""
        tariff = self._tariffs.get(model)
        if tariff is None:
            tariff = self._tariffs[model] = self._world.tariff(model)
        return tariff

    def plan(self, state: State, turn: Turn, rules: Rules, *, at: datetime | None) -> Turn:
        """The turn with where things stand in it, where prices decide that; else as it is.

        What has to be readable again, although the cut of an earlier turn took it out, is attached to it.
        """
        plan_ahead = AHEAD.get(turn.terms.layout)
        if plan_ahead is None:
            return turn
        turn = bring_back(turn, state)
        budget, profile = rules.budget, self.find_tariff(turn.model or state.model).profile
        room, aim = budget.trigger * budget.limit, budget.target * budget.limit
        kept = self._kept[-1] if self._kept and at is not None else None
        placement = plan_ahead(state, turn, profile, measure=rules.measure, room=room, aim=aim, at=at, kept=kept)
        return replace(turn, placement=placement)

    def lets_move(self, prompt: Prompt) -> bool:
        """Whether a request moves what a cache holds anyway, so that L1 and the tools may change with it."""
        return prompt.placement.priced and lets_move(prompt, self.find_tariff(prompt.model).profile)

    def begin(self, books: Books, *, at: datetime | None) -> None:
        """A turn was asked."""
        before = self._kept[-1] if self._kept else self._asked_at
        self._pause = (at - before).total_seconds() if at and before else None
        self._books, self._asked_at, self._calls, self._since, self._kept = books, at, (), None, ()

    def enter_again(self, envelope: Envelope, *, at: datetime | None) -> Entry:
        """The entry for a turn that is sent once more.

        The books stay as they are: no event says when that was, and a chat that is opened anew must find the same.
        """
        if at is not None and self._asked_at is not None:
            self._since = (at - self._asked_at).total_seconds()
        return self.enter(envelope, at=at)[0]

    def go_further(self, books: Books) -> None:
        """The same turn is sent on, after what its tools gave, or smaller."""
        self._books = books
        self._answered_by = self._calls[-1].id if self._calls else self._answered_by

    def note(self, call: Call) -> tuple[Call, ...]:
        """One more call to the model; all that were made for the turn."""
        self._calls = (*self._calls, call)
        if self._page is not None:
            self._page.entry = replace(self._page.entry, calls=(*self._page.entry.calls, call))
        return self._calls

    def end(self, prompt: Prompt, imprint: Imprint | None, said: str) -> None:
        """The turn of a prompt was answered; whoever listens is told what it came to."""
        entry = None if self._page is None else self._page.entry
        level = INFO if entry is None or entry.prefix.triggered else WARNING
        if imprint is not None and LOGGER.isEnabledFor(level):
            shown = self._world.log_preview
            log_turn(prompt, imprint, entry=entry, calls=self._calls, level=level, said=said, shown=shown)
        self._answered_by = self._calls[-1].id if self._calls else None
        self._calls = ()

    def view(self, envelope: Envelope, entry: Entry, *, number: int, receipt: Receipt | None) -> TurnView:
        """A turn as people see it, on a new page."""
        turn = TurnView(
            number=number,
            envelope=envelope,
            page=LedgerPage(entry=entry, envelope=envelope),
            compaction=receipt,
            after=self._answered_by,
            pause=self._pause,
            speak=self._world.dialects.speak if self._world.dialects else None,
        )
        self._page = turn.page
        return turn

    def view_ahead(self, envelope: Envelope, *, number: int, receipt: Receipt | None, at: datetime | None) -> TurnView:
        """A turn that is not asked yet, as it will be seen then; nothing is noted."""
        ahead = copy(self)
        entry, books = ahead.enter(envelope, at=at)
        ahead.begin(books, at=at)
        return ahead.view(envelope, entry, number=number, receipt=receipt)

    def judge(
        self, prompt: Prompt, given: Answer, *, before: Prompt | None, budget: Budget, at: datetime | None
    ) -> Call:
        """The call that gave an answer; ``before`` is the request before its own."""
        page = self._page
        envelope = page.envelope if page is not None else make_envelope(prompt, budget)
        return judge_call(
            page.entry if page is not None else Entry(prefix=make_prefix(before, prompt)),
            prompt,
            given.reply,
            tariff=self.find_tariff(prompt.model),
            by_layer=envelope.tokens.by_layer,
            timing=given.timing,
            foreseen=given.foreseen,
            pause=self._pause if self._since is None else self._since,
            at=at,
            retries=given.retries,
            ended=given.ended,
        )

    def judge_aside(self, request: Request, given: Answer, *, purpose: str, at: datetime | None) -> Call:
        """A call on the way to an answer. The books stay as they are: turns are compared with turns alone."""
        measure, tariff = self._world.counter.measure(request.model), self.find_tariff(request.model)
        counted = [one if one.tokens else replace(one, tokens=measure.count(one.text)) for one in request.messages]
        seen = CacheRequest(
            model=request.model,
            tools=request.tools,
            messages=tuple(counted),
            total=weigh(counted, request.tools, measure),
            at=at,
            effort=request.effort or Effort.DEFAULT.value,
            has_images=any(one.images for one in counted),
        )
        served = None
        if self._ledger:
            served = given.foreseen or self._books.cache.answer(seen, profile=tariff.profile, measure=measure)[0]
        return make_aside(
            purpose,
            seen,
            given.reply,
            tariff=tariff,
            predicted=served,
            timing=given.timing,
            retries=given.retries,
            ended=given.ended,
        )


def _hash_again(prompt: Prompt, budget: Budget) -> tuple[str, ...]:
    """The hashes that the question of a prompt has if it is sent now, before any round of tools."""
    return make_imprint(make_envelope(replace(prompt, rounds=()), budget)).hashes
