"""Stating: how a question carries its attachments where prices decide. What is attached is said when that changes."""

from collections.abc import Mapping, Sequence, Set

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.log.placement import Form, Placement
from lamella.core.log.terms import Terms
from lamella.core.messages.model import Message
from lamella.core.prompt.attached import is_in_working_set
from lamella.core.prompt.cutting import find_moved_in
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.prompt.layers.turn import Shown, show_stated, stands
from lamella.core.prompt.prompt import ask_with
from lamella.core.prompt.state import State
from lamella.core.text.content import escape_line

_GONE, _BACK = "No longer attached", "Attached again"
_UNNAMED = (Kind.TOOL, Kind.IMAGE)


def list_attached(
    library: Mapping[str, LibraryEntry], attached: Sequence[Artifact], terms: Terms, *, turn: int
) -> tuple[str, ...]:
    """The ids of the working set in the turn of this number, in the order in which they were first seen."""
    now = {artifact.id: None for artifact in attached if artifact.kind not in _UNNAMED}
    known = [name for name, one in library.items() if name in now or is_in_working_set(one, terms, turn=turn)]
    return tuple(dict.fromkeys((*known, *now)))


def ask_stated(
    state: State,
    attached: Sequence[Artifact],
    typed: Message,
    *,
    placement: Placement,
    place: str,
    in_set: Sequence[str],
    measure: Measure,
) -> tuple[Message, Shown]:
    """The user's message of a turn and what it shows: what a cut moved there, what is new, a line if that says more."""
    moved = find_moved_in(state.library, state.standing, place) if placement.keep is not None else []
    shown = show_set(state, attached, placement=placement, place=place, in_set=in_set, measure=measure)
    if not placement.order:
        return ask_with(shown, typed, count=measure.count, moved=moved), shown
    segments, pieces, added, images = shown
    names = {one.pieces[-1]: name for name, one in state.standing.items() if one.place == place and one.pieces}
    names |= {segment.text: segment.id for segment in segments if segment.text}
    arranged = _arrange((*moved, *pieces), names, placement.order)
    return ask_with((segments, arranged, added, images), typed, count=measure.count), shown


def _arrange(pieces: Sequence[str], names: Mapping[str, str], order: Sequence[str]) -> tuple[str, ...]:
    """The pieces of a question, with those of texts that are ordered before all others."""
    ranks = {name: rank for rank, name in enumerate(order)}
    first = [piece for piece in pieces if names.get(piece) in ranks]
    rest = [piece for piece in pieces if names.get(piece) not in ranks]
    return (*sorted(first, key=lambda piece: ranks[names[piece]]), *rest)


def show_set(
    state: State,
    attached: Sequence[Artifact],
    *,
    placement: Placement,
    place: str,
    in_set: Sequence[str],
    measure: Measure,
) -> Shown:
    """What a turn shows: what is new, and a line if the working set changed otherwise."""
    new = {artifact.id for artifact in attached if not stands(artifact, state.standing.get(artifact.id))}
    return show_stated(
        attached,
        standing=state.standing,
        place=place,
        measure=measure,
        state_line=_state(state, in_set, new, cuts=placement.keep is not None, place=place),
        whole=find_whole(placement),
    )


def find_whole(placement: Placement) -> Set[str]:
    """What changed and is shown whole, although a difference would be short."""
    return {name for name, form in placement.forms.items() if form is Form.FULL}


def _state(state: State, now: Sequence[str], new: Set[str], *, cuts: bool, place: str) -> str:
    """A line that says what is attached where nobody could tell: something went, or is back without its text."""
    before, standing = state.trail.attached, state.standing
    held, known = frozenset(now), frozenset(before)
    here = {name for name in now if name in new or (name in standing and standing[name].place == place)}
    # A cut takes earlier lines along: what it leaves readable and is no longer attached has to be told again.
    candidates = standing if cuts else before
    gone = [name for name in candidates if name not in held and name in state.library and _is_readable(state, name)]
    back = [name for name in now if name not in known and name not in here]
    lines = ((_GONE, gone), (_BACK, back))
    return "".join(f"{told}: {', '.join(map(escape_line, names))}.\n" for told, names in lines if names)


def _is_readable(state: State, name: str) -> bool:
    return name in state.standing and state.standing[name].in_full
