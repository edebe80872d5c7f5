"""Advancing: a state and a turn become the next state and its prompt. Live, replayed, resumed and undone alike."""

from collections.abc import Callable, Mapping, Sequence, Set

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.placement import Placement
from lamella.core.log.receipt import is_stage
from lamella.core.log.terms import Attachments
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.model import Message
from lamella.core.messages.rounds import ToolRound
from lamella.core.prompt.attached import (
    detach_known,
    drop_known,
    find_leaving,
    find_unseen,
    gather,
    hold_apart,
    learn,
    name_stubbed,
    tell_smaller,
)
from lamella.core.prompt.cutting import cut
from lamella.core.prompt.folding import fold
from lamella.core.prompt.layers.library import LibraryEntry, Standing
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.rounds import build_rounds, leave_rounds, stub_result
from lamella.core.prompt.layers.strip import Exchange, Said, make_said
from lamella.core.prompt.layers.turn import NOTHING_SHOWN, Shown, merge_standing, show_turn
from lamella.core.prompt.movement import find_triggers
from lamella.core.prompt.prompt import Prompt, ask_with, find_moved, has_system
from lamella.core.prompt.receipts import apply_receipts
from lamella.core.prompt.state import State
from lamella.core.prompt.stating import ask_stated, find_whole, list_attached
from lamella.core.prompt.trail import follow, go_further
from lamella.core.prompt.wishes import hold_rules
from lamella.core.values import replace

# Where things stand in a turn's prompt, given the state it is asked in. It looks at what holds there and at the turn.
# Of a past that is told once more it sees neither prompts nor the newest talk, and it may be asked more than once; what
# a turn says beside its terms is no matter to it where nothing else is done in it.
Planner = Callable[[State, Turn], Placement]
_USER, _REPLY = Voice.USER, Voice.REPLY
_STICKY = Attachments.STICKY


def find_tools(shown: Shown) -> tuple[Standing, ...]:
    """What tools gave, of what a turn shows."""
    tools = [one for one in shown[2] if one.artifact.kind is Kind.TOOL]
    # A line of a list stands only as long as the list.
    return tuple([one for one in tools if not one.listed]) if tools else ()


def advance(state: State, turn: Turn, place: Planner, *, measure: Measure) -> State:
    """The state once a turn is asked: its prompt is ``last`` and waits, and an answer that is known is given."""
    before = answer(state, "") if state.waits else state
    before = apply_receipts(before, turn.receipts, turn.terms, measure=measure) if turn.receipts else before
    now, attached, dropped, warnings = _take_in(with_settings(before, turn), turn)
    if turn.rules is not None:
        now = hold_rules(now, turn.rules, measure)
    placement = _place(before, turn, place, measure=measure)
    if placement.keep is not None:
        folds = cut if placement.priced else fold
        now = folds(now, turn.terms, measure, placement=placement, attached=attached, told=turn.strip)
    warnings += find_unseen(attached, now.model, standing=now.standing, measure=measure) if attached else ()
    first = int(has_system(now.system, now.shelf))
    asked_at = first + now.talk.length
    asked = turn_id(now.conversation, now.head, turn)
    user = make_said(asked, _USER, turn.text, place=message_place(asked_at), measure=measure)
    question, shown, opened = _ask(
        now, turn, attached, typed=user.message, placement=placement, at=asked_at, measure=measure
    )
    prompt = Prompt(
        conversation_id=now.conversation,
        epoch=now.epoch,
        terms=turn.terms,
        placement=placement,
        measure=measure,
        model=now.model,
        tools=now.tools,
        system=now.system,
        library=now.library,
        shelf=now.shelf,
        standing=now.standing,
        talk=now.talk,
        user=user,
        question=question,
        first=first,
        asked_at=asked_at,
        attached=attached,
        shown=shown,
        dropped=dropped,
        rewritten=turn.rewritten,
        compacted=before.compacted,
        pinned=now.pinned,
        triggers=find_triggers(before, turn),
        warnings=warnings,
        working_set=opened.trail.attached,
    )
    opened = replace(opened, head=asked, last=prompt, waits=True, compacted=None, kept=None)
    opened = add_rounds(opened, turn.rounds) if turn.rounds else opened
    return opened if turn.reply is None else answer(opened, turn.reply, reply_id=turn.reply_id)


def _ask(
    now: State,
    turn: Turn,
    attached: tuple[Artifact, ...],
    *,
    typed: Message,
    placement: Placement,
    at: int,
    measure: Measure,
) -> tuple[Message, Shown, State]:
    """The question of a turn, what it shows, and the state that knows what is attached."""
    missing = _find_missing(now, turn, attached) if now.apart else ()
    if placement.priced:
        return _state(now, turn, (*attached, *missing), typed=typed, placement=placement, at=at, measure=measure)
    if not attached and not placement.keep and not missing:
        return typed, NOTHING_SHOWN, now
    place = message_place(at)
    shown = show_turn((*attached, *missing), standing=now.standing, place=place, measure=measure)
    moved = find_moved(now.library, now.standing, place) if placement.keep else ()
    question = ask_with(shown, typed, count=measure.count, moved=moved)
    return question, shown, learn_turn(now, turn, attached, shown=shown)


def _state(
    now: State,
    turn: Turn,
    attached: tuple[Artifact, ...],
    *,
    typed: Message,
    placement: Placement,
    at: int,
    measure: Measure,
) -> tuple[Message, Shown, State]:
    """The same where prices decide; the state also knows what was sent."""
    in_set = list_attached(now.library, attached, turn.terms, turn=now.turns)
    question, shown = ask_stated(
        now, attached, typed, placement=placement, place=message_place(at), in_set=in_set, measure=measure
    )
    ages = {name: now.turns - now.library[name].at for name in now.trail.attached if name in now.library}
    trail = follow(now.trail, placement, asked_at=at, attached=in_set, known=now.library, ages=ages)
    whole = find_whole(placement) & {artifact.id for artifact in attached}
    return question, shown, replace(learn_turn(now, turn, attached, shown=shown, whole=whole), trail=trail)


def _place(state: State, turn: Turn, place: Planner, *, measure: Measure) -> Placement:
    """Where things stand; another family of models counts otherwise, and has nothing of what was sent in its cache."""
    placement = place(state, turn)
    if not placement.keep or state.measured_by == measure.name:
        return placement
    return replace(placement, keep=0, within=0, order=())


def learn_turn(
    state: State, turn: Turn, attached: tuple[Artifact, ...], *, shown: Shown, whole: Set[str] = frozenset()
) -> State:
    """The state that knows what is attached, for how long, and where it stands from now on."""
    sticks = turn.terms.attachments is _STICKY
    library = learn(
        state.library,
        attached,
        at=state.turns,
        image_notes=turn.terms.image_notes,
        held=True if sticks else None,
    )
    learnt = replace(state, library=library, standing=merge_standing(state.standing, shown[2], whole=whole))
    return replace(learnt, apart=hold_apart(state.apart, attached, turn)) if sticks and turn.attached else learnt


def _find_missing(state: State, turn: Turn, attached: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """What is still attached and stands nowhere in the request, since no library takes it in."""
    if turn.terms.attachments is not _STICKY:
        return ()
    there = {name for name in state.apart if name in state.standing and state.standing[name].in_full}
    there.update(artifact.id for artifact in attached)
    return tuple(artifact for name, artifact in state.apart.items() if name not in there)


def add_rounds(state: State, rounds: Sequence[ToolRound]) -> State:
    """The state whose waiting turn has had these rounds of tools, and no others."""
    prompt, stubbed = waiting(state), state.talk.stubbed
    said = build_rounds(prompt.user.id, rounds, prompt.measure, shown=prompt.terms.tool_output)
    if stubbed:
        said = tuple(stub_result(one, prompt.measure) if one.id in stubbed else one for one in said)
    sent, unsent = leave_rounds(said, stubbed, prompt.measure) if stubbed else (said, ())
    return replace(state, last=replace(prompt, rounds=sent, unsent=unsent))


def answer(state: State, reply: str, *, reply_id: str | None = None) -> State:
    """The state after the reply to the turn that waits; one that was never answered gets the empty reply."""
    prompt = waiting(state)
    rounds, shown = prompt.rounds, prompt.shown
    at = prompt.asked_at + len(rounds) + 1
    exchange = Exchange(
        user=prompt.user,
        sent=prompt.question,
        tools=find_tools(shown),
        rounds=rounds,
        reply=_reply(state, prompt.user.id, reply, name=reply_id, at=at, measure=prompt.measure),
        attached=bool(prompt.attached),
        number=state.turns,
    )
    talk = state.talk
    talk = replace(talk, exchanges=talk.exchanges.plus(exchange), spoken=talk.spoken + 2 + len(rounds))
    trail = go_further(state.trail, len(rounds)) if rounds and state.trail.entries else state.trail
    return replace(state, head=exchange.reply.id, talk=talk, turns=state.turns + 1, waits=False, trail=trail)


def _reply(state: State, asked: str, text: str, *, name: str | None, at: int, measure: Measure) -> Said:
    name = name or message_id(state.conversation, parent=asked, role=_REPLY, text=text)
    return make_said(name, _REPLY, text, place=message_place(at), measure=measure)


def waiting(state: State) -> Prompt:
    """The prompt that waits for its reply."""
    assert state.last is not None
    assert state.waits
    return state.last


def with_settings(state: State, turn: Turn) -> State:
    """The state with what the turn changes from now on."""
    if turn.system is None and turn.tools is None and turn.model in (None, state.model) and turn.pinned is None:
        return state
    return replace(
        state,
        system=_find_system(turn) or state.system,
        tools=turn.tools if turn.tools is not None else state.tools,
        model=turn.model if turn.model is not None else state.model,
        pinned=frozenset(turn.pinned) if turn.pinned is not None else state.pinned,
    )


def _find_system(turn: Turn) -> SystemParts | None:
    """The system prompt that a turn sets, as short as what was compacted before it leaves it."""
    if turn.system is None or not turn.system.workflow_detail:
        return turn.system
    names = [name for receipt in turn.receipts for step in receipt.steps for name in step.removed if is_stage(name)]
    return turn.system.shorten(names)


def _take_in(state: State, turn: Turn) -> tuple[State, tuple[Artifact, ...], tuple[str, ...], tuple[str, ...]]:
    """The state less what is dropped, what is attached, what was dropped, and what is to be said of all that."""
    warnings = turn.warnings
    dropped: tuple[str, ...] = ()
    attached: tuple[Artifact, ...] = ()
    if turn.drop:
        library, dropped, told = _drop(state, turn)
        state = replace(state, library=library)
        warnings += told
    if turn.detach:
        state = replace(state, library=detach_known(state.library, turn.detach))
    if state.apart and (gone := {*dropped, *turn.detach}):
        state = replace(state, apart={name: one for name, one in state.apart.items() if name not in gone})
    if turn.attached or turn.results:
        attached, told = gather(turn, state.library)
        warnings += told
    if turn.rounds and state.talk.stubbed:
        attached, told = name_stubbed(attached, turn_id(state.conversation, state.head, turn), state.talk.stubbed)
        warnings += told
    if turn.terms.attachments is _STICKY:
        warnings += tell_smaller(state.library, attached)
    elif attached:
        warnings += find_leaving(state.library, attached, image_notes=turn.terms.image_notes)
    return state, attached, dropped, warnings


def _drop(state: State, turn: Turn) -> tuple[Mapping[str, LibraryEntry], tuple[str, ...], tuple[str, ...]]:
    drawn_in = {artifact.id for artifact in state.system.inlined}
    standing = (state.standing.keys() | state.apart.keys()) - drawn_in
    return drop_known(state.library, turn.drop, standing=standing, drawn_in=drawn_in)
