"""Asides of a stored conversation: model calls on the way to an answer, written down; and the ledger of all calls."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from threading import RLock

from lamella.core.compaction.asking import SummaryNeed, SummaryText
from lamella.core.log.branch import read_all_calls, read_time
from lamella.core.log.call import KEPT_PURPOSE, Call
from lamella.core.log.events.codec import write_aside
from lamella.core.log.log import Log
from lamella.core.log.records import Written
from lamella.core.messages.request import Request
from lamella.core.prompt.envelope import make_envelope, make_request
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.cold import ColdCache, KeepAlive, find_cold, find_keep_alive
from lamella.engine.dialogue.accounts import Accounts
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.dialogue import Dialogue
from lamella.engine.dialogue.fitting import Fitter
from lamella.engine.dialogue.summaries import SummaryFetcher
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.backend import Backend, ChatRules
from lamella.engine.keeping.commands.facts import ModelDoubt, find_doubts
from lamella.engine.keeping.journal import StoredLog
from lamella.engine.keeping.titles import tell_title
from lamella.engine.locking import one_at_a_time
from lamella.engine.log_line import log_aside
from lamella.engine.memory import TalkLine, need_line, tell_talk
from lamella.errors import ConflictError

# How many tokens of an answer nobody reads.
_LEAST = 1


@one_at_a_time(except_for=("ledger", "check_summarizer"))
class AccountedChat(ABC):
    """What a conversation in a store came to: every call to a model that was made for it."""

    lock: RLock
    _log: Log
    _kept: StoredLog
    _backend: Backend
    _configured: ChatRules
    # Whether somebody is keeping the cache while nobody asks: one is enough.
    is_kept_alive: bool = False

    @property
    @abstractmethod
    def id(self) -> str: ...

    @abstractmethod
    def _running(self) -> Dialogue: ...

    @abstractmethod
    def preview(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    @abstractmethod
    def _moment(self, at: datetime | None) -> str: ...

    @abstractmethod
    def _append(self, written: Written, *, title: str | None = None) -> None: ...

    def note_aside(
        self, request: Request, given: Answer, *, purpose: str, after: str | None = None, at: datetime | None = None
    ) -> None:
        """Write down a model call that is no answer, made when ``after`` was the last message, by default what is now.

        If others went on with the conversation meanwhile it is written down all the same: it was paid for. What is
        being done here still finds that they did.
        """
        parent = after if after is not None and (not after or after in self._log.nodes) else self._log.head
        call = self._running().accounts.judge_aside(request, given, purpose=purpose, at=at)
        written = write_aside(call, parent=parent, at=self._moment(at))
        try:
            self._append(written)
        except ConflictError:
            self._kept.append_beside(written)
        log_aside(self.id, call)

    def check_summarizer(self) -> None:
        """Refuse a summariser that only somebody else's words name, before anything is sent."""
        fetcher = self._find_fetcher()
        if fetcher is not None:
            fetcher.check()

    def _find_fetcher(self) -> SummaryFetcher | None:
        """Who fetches summaries, where the world has no summariser of its own."""
        find = None if self._backend.world.summarizer is not None else self._backend.find_fetcher
        return None if find is None else find(self, self._configured.summarizer)

    def ledger(self) -> Sequence[Sequence[Call]]:
        """For each turn of the active branch the model calls that were made for it, answers left behind included."""
        return read_all_calls(self._log.path(), tuple(self._log.nodes.values()), self._log.asides)

    def doubts(self) -> Sequence[ModelDoubt]:
        """What providers reported on the active branch against the profiles of their models."""
        tariff = self._running().accounts.find_tariff
        return find_doubts(self._log.path(), self.ledger(), lambda model: tariff(model).profile)

    @property
    def accounts(self) -> Accounts:
        """The books between turns."""
        return self._running().accounts

    def cold(self, *, at: datetime | None = None) -> ColdCache | None:
        """What the next message costs where the cache is about to lapse or has, by now; none while it is warm."""
        moment = at or self._backend.clock.now()
        return find_cold(self, at=moment, keep=self.find_keep_alive(at=moment))

    @property
    def keep_alives(self) -> int:
        """How often the cache is kept while nobody asks, as settings say."""
        return self._configured.keep_alive

    def find_keep_alive(self, *, at: datetime | None = None) -> KeepAlive | None:
        """When the last request is to be sent again so that the cache keeps it, and what that takes."""
        dialogue = self._running()
        return find_keep_alive(dialogue.accounts, dialogue.standing[0], at=at or self._backend.clock.now())

    def repeat_last(self) -> Request | None:
        """The last request again, to be answered in as little as there is; none where there was none."""
        last = self._running().last
        if last is None or last.model is None or self._running().waits:
            return None
        return make_request(make_envelope(last, self._configured.rules.budget), model=last.model, answer=_LEAST)

    def note_keep_alive(self, request: Request, given: Answer, *, after: str, at: datetime) -> None:
        """Write down that the last request was sent again at this time; the cache has it from then on."""
        self.note_aside(request, given, purpose=KEPT_PURPOSE, after=after, at=at)
        if after == self._log.head:
            self._running().accounts.keep_warm(at)

    def tell_talk(self) -> TalkLine:
        """What was talked about, on one line, in words of who writes summaries, or of nobody."""
        state, told, rules = self._running().standing[0], self._log.path(), self._configured.rules
        exchanges = state.talk.exchanges
        given = self._summarize(need_line(exchanges, measure=rules.measure), state) if exchanges else None
        day = read_time(told[-1].message) if told else None
        return tell_talk(tell_title(self._log), exchanges, day=day, measure=rules.measure, given=given)

    def _summarize(self, need: SummaryNeed, state: State) -> SummaryText | None:
        """What who writes summaries says, as it does for a compaction; none where nobody does."""
        world = replace(self._backend.world, fetcher=self._find_fetcher())
        return Fitter(world.find_fetcher(), secrets=world.secrets).summarize(
            need, state=state, rules=self._configured.rules
        )
