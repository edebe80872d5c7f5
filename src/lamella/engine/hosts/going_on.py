"""Going on: a conversation brought to where a host's history stands, and its last question sent."""

from collections.abc import AsyncGenerator, Callable, Sequence

from lamella.core.log.nodes import Told, name_attached
from lamella.core.messages.delta import Reply, StopReason
from lamella.engine.chat import Chat
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.hosts.history import HostRequest, HostRound, HostTurn
from lamella.engine.hosts.places import HostChange, HostPlace, find_place
from lamella.engine.runs.run import announce
from lamella.engine.sending.events import Event

# Sends what was made ready, on the loop that it is called from.
SendHosted = Callable[[], AsyncGenerator[Event, None]]


def fits_history(chat: Chat, request: HostRequest) -> bool:
    """Whether a conversation that nobody named can be what a history tells."""
    if not chat.head:
        return True
    if request.past:
        return find_place(chat, request.past) is not None
    if request.asked.rounds:
        return _waits_for(chat, request, HostPlace("", 0))
    first = chat.turns()[0]
    return first.message.typed.strip() == request.asked.typed.strip() and _is_attached_alike(first, request.asked)


def make_ready(chat: Chat, request: HostRequest, *, named: bool) -> tuple[SendHosted, HostChange]:
    """Bring a conversation to where a history stands; what sends its last question, and what the host changed.

    What is not known of the history is written down as the host tells it. One that the host ``named`` goes on where it
    stands if nothing but the new question is told. All this may read and write the store.
    """
    if request.settings:
        chat.set(**request.settings)
    place = _find_start(chat, request, named=named)
    if _waits_for(chat, request, place):
        return _give_results(chat, request), place.change
    if not place.head and chat.head:
        return _ask_first_again(chat, request), place.change
    if place.head != chat.head:
        chat.fork(place.head)
    for turn in request.past[place.told :]:
        _adopt(chat, turn, request)
    if request.asked.rounds:
        waits = _adopt_rounds(chat, request.asked, request)
        return _send_on(chat, waits, request), place.change
    return lambda: _ask(chat, request), place.change


def _find_start(chat: Chat, request: HostRequest, *, named: bool) -> HostPlace:
    if request.after is not None and chat.has_message(request.after):
        return HostPlace(request.after, 0)
    if named and not request.past:
        open_one = chat.turns()[-1:] if chat.head and request.asked.rounds else ()
        return HostPlace(open_one[0].message.parent if open_one else chat.head, 0)
    # A host that named the conversation and tells of another history: what was said here stays, and it goes on.
    return find_place(chat, request.past) or HostPlace(
        chat.head, len(request.past) if chat.head else 0, HostChange.REWRITTEN if chat.head else HostChange.NONE
    )


def _waits_for(chat: Chat, request: HostRequest, place: HostPlace) -> bool:
    """Whether the last question stands open, and waits for just the results that the host brings."""
    last = chat.turns()[-1:] if chat.head else ()
    pending = last[0].pending if last else None
    if pending is None or not request.asked.rounds:
        return False
    brought = {output.call for output in request.asked.rounds[-1].outputs}
    stands = place.head in (last[0].message.parent, last[0].message.id)
    return stands and {call.id for call in pending.calls} == brought


def _give_results(chat: Chat, request: HostRequest) -> SendHosted:
    return _send_on(chat, chat.give(request.asked.rounds[-1].outputs), request)


def _ask_first_again(chat: Chat, request: HostRequest) -> SendHosted:
    """The first question once more: a branch of its own beside what was answered before."""
    first = chat.turns()[0].message.id
    return _send_on(chat, chat.regenerate(first, model=request.model), request)


def _send_on(chat: Chat, turn: TurnView, request: HostRequest) -> SendHosted:
    """Sends a turn that is written down already; calls of its tools are the host's to run."""
    tools = request.tools if request.tools is not None else chat.told_tools(turn)
    return lambda: announce(turn, chat.send(turn, tools=tools, max_tokens=request.max_tokens))


def _ask(chat: Chat, request: HostRequest) -> AsyncGenerator[Event, None]:
    return chat.send(
        request.asked.typed,
        attach=request.asked.attach,
        tools=request.tools,
        system=request.system,
        model=request.model,
        runner=request.runner,
        max_tokens=request.max_tokens,
    )


def _adopt(chat: Chat, turn: HostTurn, request: HostRequest) -> None:
    """Write a turn down as the host tells it; no model is asked for it."""
    if turn.rounds:
        _adopt_rounds(chat, turn, request)
    else:
        _ask_quietly(chat, turn, request)
    chat.reply(turn.reply or "")


def _adopt_rounds(chat: Chat, turn: HostTurn, request: HostRequest) -> TurnView:
    waits = _ask_quietly(chat, turn, request)
    for one in turn.rounds:
        chat.reply(_say_calls(one))
        waits = chat.give(one.outputs)
    return waits


def _ask_quietly(chat: Chat, turn: HostTurn, request: HostRequest) -> TurnView:
    return chat.ask(turn.typed, attach=turn.attach, tools=request.tools, system=request.system, model=request.model)


def _say_calls(one: HostRound) -> Reply:
    return Reply(text=one.text, stop=StopReason.TOOLS, calls=one.calls)


def _is_attached_alike(first: Told, turn: HostTurn) -> bool:
    named: Sequence[str] = [str(getattr(one, "path", None) or getattr(one, "url", None) or "") for one in turn.attach]
    return set(filter(None, named)) <= set(name_attached(first.message))
