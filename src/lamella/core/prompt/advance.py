"""Advancing: a state and a turn become the next state and its prompt. Live, replayed, resumed and undone alike."""

from collections.abc import Callable, Mapping, Sequence

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.placement import Placement
from lamella.core.log.turn import Turn
from lamella.core.messages.rounds import ToolRound
from lamella.core.prompt.attached import drop_known, find_leaving, gather, learn
from lamella.core.prompt.folding import fold
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.rounds import build_rounds, stub_result
from lamella.core.prompt.layers.strip import Exchange, make_said
from lamella.core.prompt.layers.turn import NOTHING_SHOWN, merge_standing, show_turn
from lamella.core.prompt.prompt import Prompt, has_system
from lamella.core.prompt.receipts import apply_receipts
from lamella.core.prompt.state import State
from lamella.core.values import replace

# Where things stand in a turn's prompt, given the state it is asked in.
Planner = Callable[[State, Turn], Placement]
_USER, _REPLY = Voice.USER, Voice.REPLY


def advance(state: State, turn: Turn, place: Planner, *, measure: Measure) -> State:
    """The state once a turn is asked: its prompt is ``last`` and waits, and an answer that is known is given."""
    state = answer(state, "") if state.waits else state
    if turn.receipts:
        state = apply_receipts(state, turn.receipts, turn.terms, measure=measure)
    before, now = state, with_settings(state, turn)
    library, attached, dropped, warnings = _take_in(now, turn)
    placement = place(before, turn)
    now = now if library is now.library else replace(now, library=library)
    if placement.keep is not None:
        now = fold(now, turn.terms, measure, placement=placement, attached=attached, told=turn.strip)
    first = int(has_system(now.system, now.shelf))
    asked_at = first + now.talk.length
    at = message_place(asked_at)
    shown = show_turn(attached, standing=now.standing, place=at, measure=measure) if attached else NOTHING_SHOWN
    asked = turn_id(now.conversation, now.head, turn)
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
        user=make_said(asked, _USER, turn.text, place=at, measure=measure),
        first=first,
        asked_at=asked_at,
        attached=attached,
        shown=shown,
        dropped=dropped,
        rewritten=turn.rewritten,
        compacted=before.compacted,
        warnings=warnings,
    )
    opened = replace(
        now,
        head=asked,
        library=learn(now.library, attached, at=now.turns, image_notes=turn.terms.image_notes),
        standing=merge_standing(now.standing, shown[2]),
        last=prompt,
        waits=True,
        compacted=None,
    )
    opened = add_rounds(opened, turn.rounds) if turn.rounds else opened
    return opened if turn.reply is None else answer(opened, turn.reply, reply_id=turn.reply_id)


def add_rounds(state: State, rounds: Sequence[ToolRound]) -> State:
    """The state whose waiting turn has had these rounds of tools, and no others."""
    prompt, stubbed = waiting(state), state.talk.stubbed
    said = build_rounds(prompt.user.id, rounds, prompt.measure)
    if stubbed:
        said = tuple(stub_result(one, prompt.measure) if one.id in stubbed else one for one in said)
    return replace(state, last=replace(prompt, rounds=said))


def answer(state: State, reply: str, *, reply_id: str | None = None) -> State:
    """The state after the reply to the turn that waits; one that was never answered gets the empty reply."""
    prompt = waiting(state)
    name = reply_id or message_id(state.conversation, parent=prompt.user.id, role=_REPLY, text=reply)
    at = message_place(prompt.asked_at + len(prompt.rounds) + 1)
    exchange = Exchange(
        user=prompt.user,
        sent=prompt.question,
        tools=tuple([one for one in prompt.shown[2] if one.artifact.kind is Kind.TOOL]),
        rounds=prompt.rounds,
        reply=make_said(name, _REPLY, reply, place=at, measure=prompt.measure),
        attached=bool(prompt.attached),
        number=state.turns,
    )
    spoken = state.talk.spoken + 2 + len(prompt.rounds)
    talk = replace(state.talk, exchanges=(*state.talk.exchanges, exchange), spoken=spoken)
    return replace(state, head=name, talk=talk, turns=state.turns + 1, waits=False)


def waiting(state: State) -> Prompt:
    """The prompt that waits for its reply."""
    assert state.last is not None
    assert state.waits
    return state.last


def with_settings(state: State, turn: Turn) -> State:
    """The state with what the turn changes from now on."""
    if turn.system is None and turn.tools is None and turn.model in (None, state.model):
        return state
    return replace(
        state,
        system=turn.system if turn.system is not None else state.system,
        tools=turn.tools if turn.tools is not None else state.tools,
        model=turn.model if turn.model is not None else state.model,
    )


def _take_in(
    state: State, turn: Turn
) -> tuple[Mapping[str, LibraryEntry], tuple[Artifact, ...], tuple[str, ...], tuple[str, ...]]:
    """The library less what is dropped, what is attached, what was dropped, and what is to be said of all that."""
    library, warnings = state.library, turn.warnings
    dropped: tuple[str, ...] = ()
    attached: tuple[Artifact, ...] = ()
    if turn.drop:
        library, dropped, told = _drop(state, turn)
        warnings += told
    if turn.attached or turn.results:
        attached, told = gather(turn, library)
        warnings += (*told, *find_leaving(library, attached, image_notes=turn.terms.image_notes))
    return library, attached, dropped, warnings


def _drop(state: State, turn: Turn) -> tuple[Mapping[str, LibraryEntry], tuple[str, ...], tuple[str, ...]]:
    drawn_in = {artifact.id for artifact in state.system.inlined}
    return drop_known(state.library, turn.drop, standing=state.standing.keys() - drawn_in, drawn_in=drawn_in)
