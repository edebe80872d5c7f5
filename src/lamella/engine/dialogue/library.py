"""The library for people: everything that is known, how it stands in the next request, and what it takes there."""

from collections.abc import Callable, Collection

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS, LATER_KIND, BlockForm
from lamella.core.artifacts.make import LISTED
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import count_images, count_tools
from lamella.core.log.placement import Form
from lamella.core.log.terms import Terms
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.working_set import list_working_set, name_artifact
from lamella.engine.dialogue.turn import TurnView

_NOWHERE = (Form.FULL.value, 0)


class LibraryRow(Struct, frozen=True, kw_only=True):
    """One artifact as it stands in the next request, if that asks nothing else.

    ``cached`` says whether the ledger expects a cache to have all of it, none where nothing is predicted.
    ``age_turns`` is how many turns ago it was attached last, 0 where it ``waits`` for the next one. ``saves`` is how
    many tokens detaching it would take out of the next request; dropping it takes out all of them. ``left_out`` are the
    notes of a folder or a tag that are not sent.
    """

    id: str
    kind: str
    title: str
    name: str
    form: str
    tokens: int
    in_working_set: bool
    cached: bool | None
    age_turns: int
    saves: int
    waits: bool = False
    policy: str | None = None
    via: str | None = None
    left_out: tuple[str, ...] = ()


def list_library(
    preview: Callable[[Ask], TurnView], standing: tuple[State, Terms], *, leaving: Collection[str] = ()
) -> tuple[LibraryRow, ...]:
    """Everything that is known, first seen first, then pictures, then what waits for the next turn.

    ``preview`` gives the turn that asking something would give, ``leaving`` is what is detached or dropped with it.
    """
    state, terms = standing
    held = {str(one.id) for one in list_working_set(state, terms)}
    turn = preview(Ask(text=""))
    prompt = turn.envelope.prompt
    comes = {str(one.id): one for one in prompt.attached}
    bare = preview(Ask(text="", detach=tuple({**dict.fromkeys(held), **comes}))) if held or comes else turn
    now, then, cached = _weigh(prompt), _weigh(bare.envelope.prompt), _find_cached(turn)
    known = {name: entry.artifact for name, entry in prompt.library.items()}
    known |= {str(one.artifact.id): one.artifact for one in prompt.carried}
    # What stays attached without going into the library, such as pictures, is sent again with each turn.
    known |= {str(one.id): one for one in state.apart.values() if one.id in now}
    asked = state.turns + int(state.waits)
    ages = {name: asked - at for name, at in _find_turns(prompt, state).items()}
    return tuple(
        LibraryRow(
            id=name,
            kind=LATER_KIND[artifact.kind].value,
            title=artifact.title,
            name=name_artifact(artifact),
            form=now[name][0] if name in now else Form.FULL.value,
            tokens=now[name][1] if name in now else 0,
            in_working_set=name in comes or (name in held and name not in leaving),
            cached=None if turn.cache is None else name in cached,
            age_turns=0 if name in comes else ages.get(name, 0),
            saves=max(0, now.get(name, _NOWHERE)[1] - then.get(name, _NOWHERE)[1]),
            waits=name in comes,
            policy=None if artifact.policy is None else artifact.policy.value,
            via=artifact.source.via,
            left_out=_list_left_out(artifact),
        )
        for name, artifact in {**known, **comes}.items()
    )


def _find_turns(prompt: Prompt, state: State) -> dict[str, int]:
    """The number of the turn that attached each artifact last; of what is in no library, that of its message."""
    found = {name: entry.at for name, entry in prompt.library.items()}
    for one in prompt.carried:
        place = (one.place or "").partition(":")[2]
        message = prompt.messages[int(place)] if place.isdecimal() else None
        told = (past.number for past in state.talk.shown if past.sent == message)
        found[one.artifact.id] = next(told, state.turns)
    return found


def _weigh(prompt: Prompt) -> dict[str, tuple[str, int]]:
    """How each artifact stands in a request, and what that takes; a line that refers to it counts with it."""
    weights = {
        str(one.artifact.id): (one.form.value, one.tokens) for one in (*prompt.carried, *prompt.standing_library)
    }
    for segment in prompt.segments(LayerId.L3):
        form, tokens = weights.get(segment.id, (segment.form.value, 0))
        shown = form if segment.form is Form.REFERENCE else segment.form.value
        weights[segment.id] = (shown, tokens + segment.tokens)
    return weights


def _find_cached(turn: TurnView) -> frozenset[str]:
    """The artifacts of which a cache is expected to have everything: those that end before what it would serve does."""
    prompt, left = turn.envelope.prompt, 0 if turn.cache is None else turn.cache.read
    measure = prompt.measure
    left -= count_tools(prompt.tools, measure.count) if prompt.tools else 0
    known = {one.pieces[0]: one.tokens for one in prompt.standing.values() if len(one.pieces) == 1}
    held: set[str] = set()
    for message in prompt.messages if left > 0 else ():
        left -= measure.per_message
        for piece in message.pieces:
            left -= known[piece] if piece in known else measure.count(piece)
            if left < 0:
                break
            held.add(piece)
        left -= count_images(message.images, measure) if message.images else 0
        if left < 0:
            break
    return frozenset(one.artifact.id for one in prompt.standing.values() if one.pieces and held.issuperset(one.pieces))


def _list_left_out(artifact: Artifact) -> tuple[str, ...]:
    if KINDS[artifact.kind].block is not BlockForm.EXPANDS:
        return ()
    return tuple(line.removeprefix(LISTED) for line in artifact.text.split("\n")[1:])
