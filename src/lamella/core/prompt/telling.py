"""Telling a past: turns that were asked long ago lead to the state they led to, told together where they are alike.

``advance`` is the way forward, and what it does not need for a state nobody asks in is left out here: prompts that were
sent long ago, folds that the next turn folds again, outlines that a later compaction takes out. Opening a conversation
of a thousand turns that way takes a third of walking it (2026-11-17, ``python -m bench stores``). Whatever else a turn
does, it is advanced. That both lead to the same state is held by properties, not by care: those of
``tests/unit/core/prompt/test_telling.py`` and of ``tests/invariants/test_rounds.py``.
"""

from collections.abc import Mapping, Sequence, Set

from lamella.core.artifacts.kinds import promotes
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import Measure
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.placement import Placement
from lamella.core.log.receipt import Receipt, Step, StepName
from lamella.core.log.terms import Attachments, History, Terms
from lamella.core.log.turn import Turn, TurnRun
from lamella.core.prompt.advance import Planner, advance, find_tools, learn_turn
from lamella.core.prompt.attached import gather, is_in_working_set, learn
from lamella.core.prompt.folding import fold_library
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.strip import Exchange, make_exchanges
from lamella.core.prompt.layers.turn import NOTHING_SHOWN, Shown, merge_standing, show_turn
from lamella.core.prompt.prompt import ask_with, has_system
from lamella.core.prompt.state import State
from lamella.core.prompt.stating import find_whole, list_attached, show_set
from lamella.core.prompt.trail import LongTrail
from lamella.core.values import replace

_REPLY = Voice.REPLY
_STICKY = Attachments.STICKY
# Steps after which a reply is one line, stands in a summary, or is gone.
_TAKE_OUT = (StepName.EXPENDABLE, StepName.CHITCHAT, StepName.SUMMARY, StepName.OLDEST_STAGES)


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
        last = last.last()
    waits = _spare_replies(past)[::-1]
    told = _ToldTalk(state, measure)
    # Under these terms turns that only talk are told alike, each with a fold or none of them.
    alike: Terms | None = None
    while waits:
        part = waits.pop()
        turn = part if isinstance(part, Turn) else part.turn(0)
        passes = _changes_nothing(told.state, turn)
        if passes and turn.terms is alike and not part.attached:
            told.say(part)
            continue
        placement = place(told.state, turn) if passes else None
        if placement is not None and not told.takes(part, placement):
            told = _begin(told.end(), turn, placement, measure=measure)
        if placement is not None and told.takes(part, placement):
            told.say(part)
            # What came along may matter to the next placement, and where prices decide each turn has its own.
            alike = None if part.attached or placement.priced else turn.terms
        elif isinstance(part, TurnRun) and (first := min(part.attached, default=0)):
            waits += [rest for rest in (part.part(first, None), part.part(0, first)) if rest is not None]
        else:
            told, alike = _ToldTalk(advance(told.end(), turn, place, measure=measure), measure), None
            waits += [rest] if isinstance(part, TurnRun) and (rest := part.after_first()) else []
    return advance(told.end(), last, place, measure=measure)


def _spare_replies(past: Sequence[Turn | TurnRun]) -> list[Turn | TurnRun]:
    """The same past without making replies shorter that a later step leaves nothing of but a line, or less."""
    spared = list(past)
    compacted = [at for at, part in enumerate(past) if isinstance(part, Turn) and part.receipts]
    if not compacted or any(isinstance(part, Turn) and part.pinned for part in past):
        # Whoever is pinned by then stays, whatever a receipt says.
        return spared
    questions = {name for part in past for name in _name_questions(part)}
    later: set[str] = set()
    for at in reversed(compacted):
        turn = past[at]
        assert isinstance(turn, Turn)
        receipts = [_spare_steps(receipt, later, questions) for receipt in reversed(turn.receipts)]
        spared[at] = replace(turn, receipts=tuple(receipts[::-1]))
    return spared


def _name_questions(part: Turn | TurnRun) -> Sequence[str | None]:
    return part.names[::2] if isinstance(part, TurnRun) else (part.id,)


def _spare_steps(receipt: Receipt, later: set[str], questions: Set[str | None]) -> Receipt:
    """A receipt without what ``later`` steps do once more; what its own steps take out is known to those before it."""
    steps: list[Step] = []
    for step in reversed(receipt.steps):
        takes_out = step.name in _TAKE_OUT and receipt.chain > 1
        # Where a question goes, or may go unknown, it matters which of the replies behind it go as well.
        keeps_questions = None not in questions and questions.isdisjoint(step.removed)
        shortens = step.name is StepName.REPLIES or (takes_out and keeps_questions)
        steps.append(_without_gone(step, later) if later and shortens else step)
        if takes_out:
            later.update(step.removed)
    return replace(receipt, steps=tuple(steps[::-1]))


def _without_gone(step: Step, gone: Set[str]) -> Step:
    if gone.isdisjoint(step.removed):
        return step
    left = [at for at, name in enumerate(step.removed) if name not in gone]
    gists = tuple([step.gists[at] for at in left]) if step.gists else ()
    return replace(step, removed=tuple([step.removed[at] for at in left]), gists=gists)


def _begin(state: State, turn: Turn, placement: Placement, *, measure: Measure) -> "_ToldTalk":
    """What tells a turn and those like it, as far as it takes them."""
    if placement.priced:
        return _StatedTalk(state, measure, terms=turn.terms)
    if placement.keep == 0 and _folds_alike(state, turn, measure=measure):
        return _FoldedTalk(state, measure, terms=turn.terms)
    return _ToldTalk(state, measure)


def _folds_alike(state: State, turn: Turn, *, measure: Measure) -> bool:
    """Whether a fold before a turn would change nothing but where the epoch begins."""
    talk, terms = state.talk, turn.terms
    stands = state.shelf_of is state.library and state.standing is state.shelf and not state.system.inlined
    shows_all = terms.history is History.FULL and not talk.hidden and talk.stand_in is None
    same = terms is state.terms and state.measured_by == measure.name
    if not (stands and shows_all and same):
        return False
    return all(_only_said(exchange) for exchange in talk.exchanges[talk.epoch_start :])


def _only_said(exchange: Exchange) -> bool:
    return exchange.sent is exchange.user.message and not exchange.tools and not exchange.rounds


def _brings_known(part: Turn | TurnRun) -> bool:
    """Whether everything that turns bring is known from then on, and nothing comes with it. Of runs that is true."""
    return isinstance(part, TurnRun) or all(promotes(one) and not one.images for one in part.attached)


def _changes_nothing(state: State, turn: Turn) -> bool:
    """Whether a turn, asked in a state, changes nothing but the talk and what is known."""
    brings = turn.results or turn.rounds or turn.receipts or turn.drop or turn.detach or turn.fold
    sets = turn.system is not None or turn.tools is not None or turn.model not in (None, state.model)
    sets |= turn.pinned is not None or turn.rules is not None
    sets |= turn.terms.attachments is _STICKY and bool(turn.attached or state.apart)
    return not brings and not sets and turn.reply is not None and turn.rewritten is None and not state.waits


class _ToldTalk:
    """Turns that talk or bring something along, told one after another; nothing that was sent before moves for them.

    ``state`` knows what they brought, and has what they said in the ``end``.
    """

    def __init__(self, state: State, measure: Measure) -> None:
        self.state = state
        self._measure = measure
        self._names: list[str] = []
        self._texts: list[str] = []
        # What turns show beside what was typed, by their number in this talk, and whether it came with them.
        self._shown: dict[int, tuple[Shown, bool]] = {}
        self._number = state.turns
        self._at = int(has_system(state.system, state.shelf)) + state.talk.length

    def takes(self, part: Turn | TurnRun, placement: Placement) -> bool:
        """Whether more can be told so, given where things stand in it, or in the first of several turns."""
        return placement.keep is None and not placement.priced

    def say(self, part: Turn | TurnRun) -> None:
        """One more turn, or several."""
        if isinstance(part, TurnRun):
            start = 0
            for at in part.attached:
                self._add(part, start, at)
                self.say(part.turn(at))
                start = at + 1
            self._add(part, start, len(part.names) // 2)
            return
        if part.attached:
            self._bring(part)
        conversation, head = self.state.conversation, self._names[-1] if self._names else self.state.head
        asked, reply = part.id or turn_id(conversation, head, part), part.reply or ""
        self._names += asked, part.reply_id or message_id(conversation, parent=asked, role=_REPLY, text=reply)
        self._texts += part.text, reply

    def _add(self, run: TurnRun, first: int, end: int) -> None:
        """Turns of a run that only talk."""
        if first < end:
            self._names += run.names[2 * first : 2 * end]
            self._texts += run.texts[2 * first : 2 * end]

    @property
    def _told(self) -> int:
        """How many turns were told so far."""
        return len(self._names) // 2

    def _bring(self, turn: Turn) -> None:
        state, told = self.state, self._told
        attached, _ = gather(turn, state.library)
        place = message_place(self._at + len(self._names))
        shown = show_turn(attached, standing=state.standing, place=place, measure=self._measure)
        self._shown[told] = shown, True
        library = learn(state.library, attached, at=self._number + told, image_notes=turn.terms.image_notes)
        self.state = replace(state, library=library, standing=merge_standing(state.standing, shown[2]))

    def end(self) -> State:
        """The state after all of them; none of them left a prompt."""
        if not self._names:
            return self.state
        exchanges = self.state.talk.exchanges.plus(*self._make_exchanges())
        talk = replace(self.state.talk, exchanges=exchanges, spoken=self.state.talk.spoken + len(self._names))
        turns = self._number + self._told
        return replace(self.state, head=self._names[-1], talk=talk, turns=turns, last=None, compacted=None)

    def _make_exchanges(self) -> list[Exchange]:
        count = self._measure.count
        places, numbers = range(self._at, self._at + len(self._names)), range(self._number, self._number + self._told)
        tokens = [count(text) for text in self._texts]
        told = make_exchanges(self._names, self._texts, places=places, numbers=numbers, tokens=tokens)
        for at, (shown, attached) in self._shown.items():
            sent = ask_with(shown, told[at].sent, count=count)
            told[at] = replace(told[at], sent=sent, tools=find_tools(shown), attached=attached)
        return told


class _FoldedTalk(_ToldTalk):
    """The same where each turn folds: what one brought stands on the shelf in the next, and no longer in its question.

    So the shelf is made once, for the last of them.
    """

    def __init__(self, state: State, measure: Measure, *, terms: Terms) -> None:
        super().__init__(state, measure)
        self._terms = terms
        # Where a system message came with the first that stands on a shelf, all others would stand one further on.
        self._has_shelf = bool(state.shelf) or has_system(state.system, {})
        # The last turn where it brought something, with what was known before it.
        self._last: tuple[Turn, Mapping[str, LibraryEntry]] | None = None

    def takes(self, part: Turn | TurnRun, placement: Placement) -> bool:
        """Only under the same terms, and nothing that a fold would have to look at."""
        plain = not part.attached or (self._has_shelf and _brings_known(part))
        return placement.keep == 0 and not placement.forms and part.terms is self._terms and plain

    def say(self, part: Turn | TurnRun) -> None:
        """One more turn, after a fold that takes in what those before it brought."""
        self._last = None
        super().say(part)

    def _add(self, run: TurnRun, first: int, end: int) -> None:
        """Those that only talk fold what came before them as well."""
        if first < end:
            self._last = None
            super()._add(run, first, end)

    def _bring(self, turn: Turn) -> None:
        library, at = self.state.library, self._number + self._told
        self._last = turn, library
        self._shown[self._told] = NOTHING_SHOWN, True
        learnt = learn(library, gather(turn, library)[0], at=at, image_notes=turn.terms.image_notes)
        self.state = replace(self.state, library=learnt)

    def end(self) -> State:
        """The state after all of them, folded before the last."""
        if not self._names:
            return self.state
        told, epoch = self._told, self.state.epoch
        state = self.state if self._last is None else replace(self.state, library=self._last[1])
        if state.shelf_of is not state.library:
            state = fold_library(state, self._terms, self._measure)
        if self._last is not None:
            turn = self._last[0]
            attached, _ = gather(turn, state.library)
            place = message_place(self._at + len(self._names) - 2)
            shown = show_turn(attached, standing=state.standing, place=place, measure=self._measure)
            self._shown[told - 1] = shown, True
            state = learn_turn(replace(state, turns=self._number + told - 1), turn, attached, shown=shown)
        self.state = replace(state, epoch=epoch + told)
        ended = super().end()
        return replace(ended, talk=replace(ended.talk, epoch_start=len(ended.talk.exchanges) - 1))


class _StatedTalk(_ToldTalk):
    """The same where prices decide: what is attached is said when that changes, and the trail knows what was sent."""

    def __init__(self, state: State, measure: Measure, *, terms: Terms) -> None:
        super().__init__(state, measure)
        self._terms = terms
        self._trail = LongTrail(state.trail, {name: state.turns - one.at for name, one in state.library.items()})
        # The working set of a state was found under the terms of its last turn, which may have been others.
        self._knows_set = False

    def takes(self, part: Turn | TurnRun, placement: Placement) -> bool:
        """Only where all of it stays, and what was planned for the turn is what holds in it."""
        begins = self.state.compacted is None and self.state.kept is None
        planned = part.placement if isinstance(part, Turn) else next(iter(part.placements), None)
        follows = placement.keep is None and part.terms is self._terms
        follows = follows and planned is not None and placement == replace(planned, priced=True)
        # What keeps a cache moves the times of all that went before it.
        follows = follows and placement.kept is None
        return follows and begins and _brings_known(part)

    def say(self, part: Turn | TurnRun) -> None:
        """One more turn, or several."""
        if isinstance(part, Turn):
            self._state_set(part)
        super().say(part)

    def _add(self, run: TurnRun, first: int, end: int) -> None:
        """Turns of a run that only talk; a working set may still lose something with them."""
        while first < end and not (self._knows_set and not self._trail.attached):
            self.say(run.turn(first))
            first += 1
        if first < end:
            # Nothing is attached, and nothing has to be said of it: so it stays until something is.
            asked_at = self._at + len(self._names)
            self._trail.follow(run.placements[first:end], asked_at=asked_at, attached=())
            super()._add(run, first, end)

    def _bring(self, turn: Turn) -> None:
        """Nothing: it was looked at with the set."""

    def _state_set(self, turn: Turn) -> None:
        """A turn with what it brings, or with the line that says what left."""
        state, number, asked_at = self.state, self._number + self._told, self._at + len(self._names)
        attached = gather(turn, state.library)[0] if turn.attached else ()
        placement = turn.placement or Placement()
        in_set = self._find_set(attached, number)
        if attached or in_set != self._trail.attached:
            state = replace(state, turns=number, trail=state.trail._replace(attached=self._trail.attached))
            place, measure = message_place(asked_at), self._measure
            shown = show_set(state, attached, placement=placement, place=place, in_set=in_set, measure=measure)
            self._shown[self._told] = shown, bool(attached)
            whole = find_whole(placement) & {artifact.id for artifact in attached}
            self.state = learn_turn(state, turn, attached, shown=shown, whole=whole)
        self._trail.follow((placement,), asked_at=asked_at, attached=in_set)
        if attached:
            self._trail.learn(artifact.id for artifact in attached)

    def _find_set(self, attached: Sequence[Artifact], number: int) -> tuple[str, ...]:
        """The working set: of what was in it what still is, unless something comes back."""
        library, before = self.state.library, self._trail.attached
        if not self._knows_set or any(one.id in library and one.id not in before for one in attached):
            self._knows_set = True
            return list_attached(library, attached, self._terms, turn=number)
        now = {one.id: None for one in attached}
        stays = [name for name in before if name in now or is_in_working_set(library[name], self._terms, turn=number)]
        return tuple(dict.fromkeys((*stays, *now)))

    def end(self) -> State:
        """The state after all of them, with the trail."""
        if self._names:
            self.state = replace(self.state, trail=self._trail.end(), kept=None)
        return super().end()
