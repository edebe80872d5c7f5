"""Cutting: a fold from some message on. Talk stays, what is dead behind the cut leaves, what lives is shown again.

The system message is L1 alone: what is known stands in messages, never on a shelf.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from lamella.core.artifacts.blocks import render_call_line, render_update
from lamella.core.artifacts.kinds import LATER_KIND, promotes
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import Measure
from lamella.core.log.placement import Form, Placement
from lamella.core.log.terms import Attachments, Terms
from lamella.core.prompt.attached import is_in_working_set
from lamella.core.prompt.folding import hide_earlier, is_in_line, keep_in_line, keep_tools, measure_again, stand_inlined
from lamella.core.prompt.layers.library import (
    LibraryEntry,
    Standing,
    carried_form,
    find_list_room,
    is_framing,
    list_handles,
    make_standing,
    may_list,
    may_shrink,
    shelve,
)
from lamella.core.prompt.layers.model import SYSTEM_PLACE, message_place
from lamella.core.prompt.layers.strip import Exchange, Series, Talk, past_messages
from lamella.core.prompt.prompt import has_system, render_user
from lamella.core.prompt.state import State
from lamella.core.values import replace


def cut(
    state: State,
    terms: Terms,
    measure: Measure,
    *,
    placement: Placement,
    attached: Sequence[Artifact],
    told: str | None = None,
) -> State:
    """An epoch begins behind the messages that a placement keeps, or with the first where it keeps none.

    What is attached now is shown by its own turn.
    """
    keep = placement.keep or 0
    if state.measured_by != measure.name:
        state = measure_again(state, measure)
    first = int(has_system(state.system, {}))
    at, end = find_cut(state.talk, keep, first=first)
    within = placement.within if at < len(state.talk.exchanges) else 0
    talk = _close_behind(state.talk, at, measure, within=within)
    # Of the first message behind the cut as well, if what it carries stays up to some piece.
    head = talk.exchanges[at].sent.pieces[:within] if within else ()
    held = set(head).union(chain.from_iterable([exchange.sent.pieces for exchange in talk.exchanges[talk.hidden : at]]))
    standing: dict[str, Standing] = {one.id: stand_inlined(one) for one in state.system.inlined}
    standing |= {name: one for name, one in state.standing.items() if keep and _stays(one, end, head)}
    now = replace(state, talk=talk, shelf={}, shelf_of=None, terms=terms)
    if at <= talk.hidden:
        # Where no turn that was shown stays as it is, it can be settled anew which are shown: before anything is given
        # its place in the question, which comes after them.
        now = hide_earlier(_forget_stand_in(now), terms, measure, told=told)
    shown = {artifact.id for artifact in attached}
    left = {
        name: entry
        for name, entry in state.library.items()
        if name not in standing or (name not in shown and _is_covered(entry, standing[name], terms, turn=state.turns))
    }
    place = message_place(first + now.talk.length)
    # The list of what left that stays above takes of the room that all of it has.
    above = sum([one.tokens for one in standing.values() if one.listed])
    standing |= _stand_again(now, left, attached, held=held, place=place, above=above, measure=measure)
    return replace(now, standing=standing, epoch=state.epoch if state.terms is None else state.epoch + 1)


def find_cut(talk: Talk, keep: int, *, first: int) -> tuple[int, int]:
    """The first exchange behind the messages that are kept, and the message that it begins with."""
    at, end = len(talk.exchanges), first + talk.length
    # Nearly always all but the newest is kept.
    while at > talk.hidden and (begins := end - 2 - len(talk.exchanges[at - 1].rounds)) >= keep:
        at, end = at - 1, begins
    return at, end


def _forget_stand_in(state: State) -> State:
    # What stood for hidden turns in the epoch before may tell what is not told now.
    return state if state.talk.stand_in is None else replace(state, talk=replace(state.talk, stand_in=None))


def _close_behind(talk: Talk, at: int, measure: Measure, *, within: int) -> Talk:
    """Of turns behind the cut what was said stays, the rounds of tools, and the calls whose results rode as text.

    In the first of them so many pieces stay before that.
    """
    behind = talk.exchanges[at:]
    closed = [_close(exchange, measure) for exchange in behind]
    if within:
        closed[0] = _close_within(behind[0], closed[0], measure, within=within)
    if all(new is old for new, old in zip(closed, behind, strict=True)):
        return talk
    return replace(talk, exchanges=Series((*talk.exchanges[:at], *closed)))


def _close(exchange: Exchange, measure: Measure) -> Exchange:
    if is_closed(exchange):
        return exchange
    stubs = [stub_in_line(tool, measure) for tool in exchange.tools]
    return keep_in_line(exchange, stubs, measure) if stubs else keep_tools(exchange, (), measure)


def _close_within(exchange: Exchange, closed: Exchange, measure: Measure, *, within: int) -> Exchange:
    """An exchange of which so many pieces stay before what is left of it once it is closed."""
    stubs = [piece for tool in closed.tools for piece in tool.pieces]
    pieces = (*exchange.sent.pieces[:within], *stubs)
    sent = render_user(pieces, exchange.user.message.pieces, (), count=measure.count)
    return exchange if sent == exchange.sent else replace(closed, sent=sent)


def is_closed(exchange: Exchange) -> bool:
    """Whether a question holds nothing that a cut takes out: what was typed, and calls whose results are gone."""
    typed, sent = exchange.user.message, exchange.sent
    if sent is typed or not exchange.tools:
        return sent == typed
    return is_in_line(exchange)


def stub_in_line(tool: Standing, measure: Measure) -> Standing:
    """A tool result as the call that gets it back."""
    if tool.form is Form.HANDLE:
        return tool
    text = render_call_line(tool.artifact)
    return make_standing(tool.artifact, form=Form.HANDLE, place=tool.place, pieces=(text,), tokens=measure.count(text))


def _stays(standing: Standing, end: int, head: Sequence[str]) -> bool:
    """Whether the newest piece of something stands in one of the first so many messages, or heads the next."""
    place = standing.place
    if place is None or place == SYSTEM_PLACE:
        return False
    at = int(place.partition(":")[2])
    return at < end or (at == end and bool(standing.pieces) and standing.pieces[-1] in head)


def _is_covered(entry: LibraryEntry, standing: Standing, terms: Terms, *, turn: int) -> bool:
    """Whether something is attached in another text than instructions draw in: that is no copy of it."""
    drawn_in = standing.place == SYSTEM_PLACE and standing.artifact.hash != entry.artifact.hash
    return drawn_in and is_in_working_set(entry, terms, turn=turn)


def _stand_again(
    state: State,
    left: Mapping[str, LibraryEntry],
    attached: Sequence[Artifact],
    *,
    held: Collection[str],
    place: str,
    above: int,
    measure: Measure,
) -> dict[str, Standing]:
    """How what stood behind the cut stands from now on; lists of what left that stay take so many tokens ``above``."""
    terms = state.terms or Terms()
    now: dict[str, Artifact] = {artifact.id: artifact for artifact in attached if promotes(artifact)}
    standing: dict[str, Standing] = {}
    dead: list[LibraryEntry] = []
    for name, entry in left.items():
        old = state.standing.get(name)
        copied = old is not None and any(piece in held for piece in old.pieces if not is_framing(piece))
        artifact = now.get(name)
        if artifact is not None and not _is_plain(artifact):
            # It is shown by its turn: as new text for a copy that is still above, else as if for the first time.
            standing[name] = _stand_nowhere(entry.artifact if copied else artifact)
        elif artifact is not None:
            standing[name] = _show_again(artifact, Form.FULL, above=copied, place=place, measure=measure)
        elif is_alive(entry, terms, turn=state.turns) and not (entry.listed and may_list(entry.artifact)):
            form = _find_form(entry, terms)
            standing[name] = _show_again(entry.artifact, form, above=copied, place=place, measure=measure)
        else:
            dead.append(entry)
    if not dead:
        return standing
    stands = sum([one.tokens for one in standing.values()])
    stands += sum([message.tokens for message in past_messages(state.talk.shown)])
    room = find_list_room(stands) - above
    return standing | list_handles(dead, count=measure.count, place=place, room=room, again=above > 0)


def is_alive(entry: LibraryEntry, terms: Terms, *, turn: int) -> bool:
    """Whether something has to be readable in a turn that does not attach it, or may never stand as less."""
    return is_in_working_set(entry, terms, turn=turn) or not may_shrink(entry.artifact)


def _is_plain(artifact: Artifact) -> bool:
    """Whether an attachment stands as anything of an earlier turn does: not as the active note, and not as less."""
    return LATER_KIND[artifact.kind] is artifact.kind and not artifact.outlined and artifact.condensed is None


def _find_form(entry: LibraryEntry, terms: Terms) -> Form:
    """The form of what lives: whole, unless a compaction or its pictures left it less."""
    readable = terms.attachments is Attachments.TURN and entry.form is None and entry.artifact.condensed is None
    return Form.FULL if readable else carried_form(entry, terms)


def _show_again(artifact: Artifact, form: Form, *, above: bool, place: str, measure: Measure) -> Standing:
    if above and form is Form.FULL:
        text = render_update(artifact, diff=None)
        return make_standing(artifact, form=Form.UPDATE, place=place, pieces=(text,), tokens=measure.count(text))
    shown = shelve(artifact, form=form, count=measure.count)
    return replace(shown, segment=replace(shown.segment, place=place))


def _stand_nowhere(artifact: Artifact) -> Standing:
    return make_standing(artifact, form=Form.HANDLE, place=None, pieces=(), tokens=0)


def find_moved_in(library: Mapping[str, LibraryEntry], standing: Mapping[str, Standing], place: str) -> list[str]:
    """What a cut moved into the question: what lives in the order it was first seen, then the list of what left."""
    moved = [standing[name] for name in library if standing[name].place == place and standing[name].pieces]
    listed = [one for one in standing.values() if one.listed and one.place == place]
    alive = [one.pieces[-1] for one in moved if not one.listed]
    return [*alive, *(piece for one in listed for piece in one.pieces)]
