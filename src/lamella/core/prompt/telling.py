"""Telling a past: turns that were asked long ago lead to the state they led to, told together where they are alike."""

from collections.abc import Sequence

from lamella.core.budget.counting import Measure
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.placement import Placement
from lamella.core.log.terms import Attachments, History, Layout, Terms
from lamella.core.log.turn import Turn, TurnRun
from lamella.core.prompt.advance import Planner, advance, find_tools, learn_turn
from lamella.core.prompt.attached import gather
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.strip import Exchange, make_exchanges
from lamella.core.prompt.layers.turn import Shown, show_turn
from lamella.core.prompt.prompt import ask_with, has_system
from lamella.core.prompt.state import State
from lamella.core.values import replace

_REPLY = Voice.REPLY
_STICKY = Attachments.STICKY
_AUTO = Layout.AUTO


def advance_all(state: State, turns: Sequence[Turn | TurnRun], place: Planner, *, measure: Measure) -> State:
    """The state that turns lead to one after another.

    Most of a long past only says something, or brings something along: such turns are told together, without prompts
    that nobody sends again.
    """
    if not turns:
        return state
    *past, last = turns
    if isinstance(last, TurnRun):
        past += [before] if (before := last.before_last()) else []
        last = last.turns()[-1]
    waits = past[::-1]
    told = _ToldTalk(state, measure)
    # Under these terms turns that only talk are told alike, each with a fold or none of them.
    alike: Terms | None = None
    while waits:
        part = waits.pop()
        turn = part if isinstance(part, Turn) else part.turn(0)
        passes = _changes_nothing(told.state, turn)
        if passes and turn.terms is alike and not turn.attached:
            told.say(part)
            continue
        placement = place(told.state, turn) if passes else None
        if placement is not None and placement.keep is None and not told.folds:
            told.say(part)
            alike = None if turn.attached else turn.terms
            continue
        state, alike = told.end(), None
        folds = placement is not None and _folds_alike(state, turn, placement, measure=measure)
        if folds or (placement is not None and placement.keep is None):
            told = _ToldTalk(state, measure, folds=folds)
            told.say(part)
            alike = None if turn.attached else turn.terms
        else:
            told = _ToldTalk(advance(state, turn, place, measure=measure), measure)
            waits += [rest] if isinstance(part, TurnRun) and (rest := part.after_first()) else []
    return advance(told.end(), last, place, measure=measure)


def _folds_alike(state: State, turn: Turn, placement: Placement, *, measure: Measure) -> bool:
    """Whether a fold before a turn that only talks would change nothing but where the epoch begins."""
    talk, terms = state.talk, turn.terms
    stands = state.shelf_of is state.library and state.standing is state.shelf and not state.system.inlined
    shows_all = terms.history is History.FULL and not talk.hidden and talk.stand_in is None
    same = terms is state.terms and state.measured_by == measure.name and not turn.attached
    if placement.keep != 0 or placement.forms or not (stands and shows_all and same):
        return False
    return all(_only_said(exchange) for exchange in talk.exchanges[talk.epoch_start :])


def _only_said(exchange: Exchange) -> bool:
    return exchange.sent is exchange.user.message and not exchange.tools and not exchange.rounds


def _changes_nothing(state: State, turn: Turn) -> bool:
    """Whether a turn, asked in a state, changes nothing but the talk and what is known."""
    if turn.terms.layout is _AUTO:
        # What was sent when is told turn by turn.
        return False
    brings = turn.results or turn.rounds or turn.receipts or turn.drop or turn.detach or turn.fold
    sets = turn.system is not None or turn.tools is not None or turn.model not in (None, state.model)
    sets |= turn.pinned is not None or turn.rules is not None
    sets |= turn.terms.attachments is _STICKY and bool(turn.attached or state.apart)
    return not brings and not sets and turn.reply is not None and turn.rewritten is None and not state.waits


class _ToldTalk:
    """Turns that talk or bring something along, told one after another, each after a fold if it ``folds``.

    ``state`` knows what they brought, and has what they said in the ``end``.
    """

    def __init__(self, state: State, measure: Measure, *, folds: bool = False) -> None:
        self.state = state
        self.folds = folds
        self._measure = measure
        self._names: list[str] = []
        self._texts: list[str] = []
        # What turns brought, by their number in this talk.
        self._shown: dict[int, Shown] = {}
        self._number = state.turns
        self._at = int(has_system(state.system, state.shelf)) + state.talk.length

    def say(self, part: Turn | TurnRun) -> None:
        """One more turn, or several."""
        if isinstance(part, TurnRun):
            self._names += part.names
            self._texts += part.texts
            return
        if part.attached:
            self._bring(part)
        conversation, head = self.state.conversation, self._names[-1] if self._names else self.state.head
        asked, reply = part.id or turn_id(conversation, head, part), part.reply or ""
        self._names += asked, part.reply_id or message_id(conversation, parent=asked, role=_REPLY, text=reply)
        self._texts += part.text, reply

    def _bring(self, turn: Turn) -> None:
        said, turns = len(self._names), len(self._names) // 2
        attached, _ = gather(turn, self.state.library)
        place, standing = message_place(self._at + said), self.state.standing
        shown = self._shown[turns] = show_turn(attached, standing=standing, place=place, measure=self._measure)
        self.state = learn_turn(replace(self.state, turns=self._number + turns), turn, attached, shown=shown)

    def end(self) -> State:
        """The state after all of them; none of them left a prompt."""
        if not self._names:
            return self.state
        count, state, talk = self._measure.count, self.state, self.state.talk
        told = make_exchanges(self._names, self._texts, at=self._at, number=self._number, count=count)
        for at, shown in self._shown.items():
            sent = ask_with(shown, told[at].sent, count=count)
            told[at] = replace(told[at], sent=sent, tools=find_tools(shown), attached=True)
        exchanges = talk.exchanges.plus(*told)
        start = len(exchanges) - 1 if self.folds else talk.epoch_start
        talk = replace(talk, exchanges=exchanges, spoken=talk.spoken + len(self._names), epoch_start=start)
        turns, epoch = self._number + len(told), state.epoch + len(told) * self.folds
        return replace(state, head=self._names[-1], talk=talk, turns=turns, epoch=epoch, last=None, compacted=None)
