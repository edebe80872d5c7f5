"""The ground of a plan: what was sent and stands where, what of it lives, what is new, and what caches still hold."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from itertools import accumulate, takewhile
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_block, render_update, shown_text
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure, count_images, count_tools
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.placement import Form
from lamella.core.log.terms import History, Terms
from lamella.core.log.turn import Turn
from lamella.core.messages.headings import QUERY_LABEL
from lamella.core.messages.model import Message
from lamella.core.planning.habits import Hazards
from lamella.core.prompt.advance import with_settings
from lamella.core.prompt.attached import detach_known, drop_known, gather, is_in_working_set
from lamella.core.prompt.cutting import is_alive, is_closed, stub_in_line
from lamella.core.prompt.layers.library import LibraryEntry, Standing, may_shrink
from lamella.core.prompt.layers.model import message_place
from lamella.core.prompt.layers.strip import past_messages
from lamella.core.prompt.layers.system import build_system
from lamella.core.prompt.prompt import has_system
from lamella.core.prompt.state import State
from lamella.core.prompt.trail import Held
from lamella.core.text.changes import build_diff

# What a handle takes in the list of what left, and what the lines may that say what is attached.
HANDLE_TOKENS = 12
_LINES = 50


class Carrier(NamedTuple):
    """A turn whose question carries more than what was typed: where it begins, and what of that could go.

    ``dead`` are artifacts with their tokens, ``alive`` likewise; ``rest`` is what nobody needs any more: copies that
    newer text replaced, lines that referred to something, past results that rode as text. With its ``head`` the message
    begins: texts that live, and can stay there although what follows goes.
    """

    start: int
    dead: tuple[tuple[str, int], ...]
    alive: tuple[tuple[str, int], ...]
    rest: int
    head: tuple[tuple[str, int], ...] = ()


class Survey(NamedTuple):
    """What a plan starts from: tokens up to each message, what carries, what the caches hold, and the odds.

    ``wholes`` are the tokens of everything alive, shown anew; ``changed`` those of what has another text now, shown as
    an update of the copy that stands. What is ``leaving`` lingers for the last time. ``order`` has what lives, what is
    due to leave last, where a cache serves a part of a message; it is empty elsewhere. The ``label`` that tells a
    question from what heads it takes so many tokens of the rest of each carrier; it is 0 where nothing can head one.
    """

    first: int
    ends: Sequence[int]
    carriers: Sequence[Carrier]
    entries: Sequence[Held]
    stable: int | None
    hazards: Hazards
    profile: CacheProfile
    wholes: Mapping[str, int]
    changed: Mapping[str, int]
    leaving: Set[str]
    order: Sequence[str]
    label: int

    def find_head(self, carrier: Carrier) -> Sequence[tuple[str, int]]:
        """What can stay of the head of a message: up to what changed and is shown whole, which leaves its copy dead."""
        return [*takewhile(lambda one: self.changed.get(one[0], 0) < self.wholes[one[0]], carrier.head)]

    @property
    def updates(self) -> int:
        return sum(self.changed.values())


def survey(
    state: State, turn: Turn, profile: CacheProfile, *, hazards: Hazards, measure: Measure, at: datetime | None
) -> tuple[Survey, Mapping[str, Form]]:
    """The ground of a plan, and what changed and is shown whole if everything stays."""
    now = with_settings(state, turn)
    first = int(has_system(now.system, {}))
    messages = past_messages(state.talk.shown)
    sizes = [weigh(message, measure) for message in messages]
    head = build_system(now.system, count=measure.count).tokens + measure.per_message if first else 0
    base = head + (count_tools(now.tools, measure.count) if now.tools else 0)
    ends = list(accumulate(sizes, initial=base))
    ends = ends if first else ends[1:]
    library = drop_known(state.library, turn.drop)[0] if turn.drop else state.library
    library = detach_known(library, turn.detach) if turn.detach else library
    attached: dict[str, Artifact] = {artifact.id: artifact for artifact in gather(turn, library)[0]}
    alive = {
        name for name, entry in library.items() if name in attached or is_alive(entry, turn.terms, turn=state.turns)
    }
    # A cache that keeps what was marked serves a message whole or not at all.
    heads = not profile.marks and turn.terms.history is History.FULL
    order = _find_order(library, alive, attached, hazards=hazards, turn=state.turns) if heads else []
    # What stands in the list of what left moves along with a cut: it is no gain.
    alive |= {name for name, one in state.standing.items() if one.form is Form.HANDLE and name in library}
    entries = [one for one in state.trail.entries if _lives(one, profile, at)]
    lasting = {name: one for name, one in state.standing.items() if name in alive and one.in_full} if heads else {}
    ground = Survey(
        first=first,
        ends=ends,
        carriers=_find_carriers(state, alive, lasting, first=first, measure=measure),
        entries=entries,
        stable=state.trail.stable,
        hazards=hazards,
        profile=profile,
        wholes={
            name: _weigh_whole(one, measure) for name, one in state.standing.items() if name in alive and one.pieces
        },
        changed={},
        leaving={name for name in alive - attached.keys() if _is_leaving(library[name], turn.terms, turn=state.turns)},
        order=order,
        label=measure.count(QUERY_LABEL) if lasting else 0,
    )
    return _weigh_updates(ground, state, attached, measure=measure)


def _find_order(
    library: Mapping[str, LibraryEntry],
    alive: Set[str],
    attached: Mapping[str, Artifact],
    *,
    hazards: Hazards,
    turn: int,
) -> list[str]:
    """What lives, in the order it was first seen, and last of all what is due to leave."""
    texts = [name for name, one in attached.items() if one.kind not in (Kind.TOOL, Kind.IMAGE)]
    names = dict.fromkeys([*(name for name in library if name in alive), *texts])
    ages = {name: 1 if name in attached else turn + 1 - library[name].at for name in names}
    due = {age: hazards.is_due(age) for age in set(ages.values())}
    return sorted(names, key=lambda name: due[ages[name]])


def _is_leaving(entry: LibraryEntry, terms: Terms, *, turn: int) -> bool:
    stays = is_in_working_set(entry, terms, turn=turn + 1)
    return is_in_working_set(entry, terms, turn=turn) and not stays and may_shrink(entry.artifact)


def _weigh_whole(standing: Standing, measure: Measure) -> int:
    """What something takes that is shown anew: what stands of it, or all of it where that stands in several pieces."""
    stands = standing.listed or len(standing.pieces) == 1
    return standing.tokens if stands else measure.count(render_block(standing.artifact))


def weigh(message: Message, measure: Measure) -> int:
    """The tokens of a message, with its pictures."""
    images = count_images(message.images, measure) if message.images else 0
    return message.tokens + images + measure.per_message


def weigh_question(state: State, turn: Turn, measure: Measure) -> int:
    """What is typed, and attached and stands nowhere in its text, whatever becomes of what was sent before."""
    said = measure.count(turn.text) + measure.per_message + _LINES
    for artifact in gather(turn, state.library)[0]:
        old = state.standing.get(artifact.id)
        # What a tool gave once more, or a picture, stands above until a cut takes it: then it is shown again.
        if old is None or not old.in_full or artifact.kind in (Kind.TOOL, Kind.IMAGE):
            said += count_images(artifact.images, measure) if artifact.kind is Kind.IMAGE else 0
            said += measure.count(render_block(artifact)) if artifact.text else 0
    return said


def _lives(held: Held, profile: CacheProfile, at: datetime | None) -> bool:
    if at is None or held.at is None or profile.lifetime is None:
        return True
    lasts = profile.longer[0] if held.lasting and profile.longer else profile.lifetime
    return (at - held.at).total_seconds() <= lasts


def _find_carriers(
    state: State, alive: set[str], lasting: Mapping[str, Standing], *, first: int, measure: Measure
) -> list[Carrier]:
    """Turns that carry something, and what of it is still wanted; what is ``lasting`` may stay where it heads one."""
    owners = {piece: name for name, one in state.standing.items() for piece in one.pieces if name in state.library}
    carriers: list[Carrier] = []
    at = first
    for exchange in state.talk.shown:
        if exchange.sent is not exchange.user.message and not is_closed(exchange):
            tokens = {True: dict[str, int](), False: dict[str, int]()}
            for piece in exchange.sent.pieces:
                name = owners.get(piece)
                if name is not None:
                    sizes = tokens[name in alive]
                    one = state.standing[name]
                    weight = one.tokens if len(one.pieces) == 1 else measure.count(piece)
                    sizes[name] = sizes.get(name, 0) + weight
            known = sum(sum(sizes.values()) for sizes in tokens.values())
            known += sum([stub_in_line(tool, measure).tokens for tool in exchange.tools])
            rest = max(0, exchange.sent.tokens - exchange.user.message.tokens - known)
            head = _find_head(exchange.sent, owners, lasting, at=at) if lasting else ()
            carriers.append(Carrier(at, tuple(tokens[False].items()), tuple(tokens[True].items()), rest, head))
        at += 2 + len(exchange.rounds)
    return carriers


def _find_head(
    sent: Message, owners: Mapping[str, str], lasting: Mapping[str, Standing], *, at: int
) -> tuple[tuple[str, int], ...]:
    """With what a message begins that stands there and nowhere else."""
    known = takewhile(bool, (lasting.get(owners.get(piece, "")) for piece in sent.pieces))
    place = message_place(at)
    texts = takewhile(lambda one: len(one.pieces) == 1 and one.place == place, filter(None, known))
    return () if sent.images else tuple([(one.artifact.id, one.tokens) for one in texts])


def _weigh_updates(
    ground: Survey, state: State, attached: Mapping[str, Artifact], *, measure: Measure
) -> tuple[Survey, Mapping[str, Form]]:
    """Of what is attached with another text than stands: what is shown whole, and what all of it takes if nothing goes.

    A difference is read again and again with the copy it changes; a whole text leaves that copy dead, to be read until
    the next fold, or cut away at the price of what stands behind it.
    """
    if not attached:
        return ground, {}
    profile, hazards, forms = ground.profile, ground.hazards, dict[str, Form]()
    wholes, changed = dict(ground.wholes), dict[str, int]()
    for name, artifact in attached.items():
        old = state.standing.get(name)
        if old is None or not old.in_full or old.artifact.hash == artifact.hash or not old.pieces:
            continue
        diff = build_diff(shown_text(old.artifact), shown_text(artifact))
        full = wholes[name] = measure.count(render_update(artifact, diff=None))
        if diff is None:
            changed[name] = full
            continue
        short = measure.count(render_update(artifact, diff=diff))
        start = next((one.start for one in ground.carriers if any(name == held for held, _ in one.alive)), None)
        behind = 0 if start is None else ground.ends[-1] - ground.ends[min(start, len(ground.ends) - 1)]
        stays = hazards.drop(name) + hazards.lapse
        differs = short * (profile.write + profile.read / stays)
        anew = profile.write * full + min(profile.read * full / hazards.lapse, (profile.write - profile.read) * behind)
        if anew < differs:
            forms[name] = Form.FULL
        changed[name] = full if anew < differs else short
    return ground._replace(wholes=wholes, changed=changed), forms
