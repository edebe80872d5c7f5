"""The planner of ``auto``: append while warm, fold when cold, cut where it pays. A handful of candidates, each priced.

Prices are factors of plain input, as values of a cache profile. What a candidate costs now is counted on the tokens it
sends; what it costs later is expected, from how often the cache lapsed and things came back in this conversation.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_update, shown_text
from lamella.core.artifacts.model import Artifact
from lamella.core.budget.counting import Measure, count_images, count_tools
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.placement import Form, Lapse, Placement
from lamella.core.log.terms import History
from lamella.core.log.turn import Turn
from lamella.core.messages.model import Message
from lamella.core.planning.habits import Hazards, expect_short_lapses, find_hazards
from lamella.core.planning.layouts import find_forced, find_wish, keep_kept
from lamella.core.prompt.advance import with_settings
from lamella.core.prompt.attached import detach_known, drop_known, gather
from lamella.core.prompt.cutting import LISTED, is_alive, is_closed, stub_in_line
from lamella.core.prompt.layers.strip import past_messages
from lamella.core.prompt.layers.system import build_system
from lamella.core.prompt.prompt import has_system
from lamella.core.prompt.state import State
from lamella.core.prompt.trail import Held, Trail, count_lapse
from lamella.core.text.changes import build_diff
from lamella.core.values import replace

# What a handle takes in the list of what left, and what all of that list may take.
_HANDLE, _HANDLES = 10, 100
_HOUR = 3_600.0


class Carrier(NamedTuple):
    """A turn whose question carries more than what was typed: where it begins, and what of that could go.

    ``dead`` are artifacts with their tokens, ``alive`` likewise; ``rest`` is what nobody needs any more: copies that
    newer text replaced, lines that referred to something, past results that rode as text.
    """

    start: int
    dead: tuple[tuple[str, int], ...]
    alive: tuple[tuple[str, int], ...]
    rest: int


class Survey(NamedTuple):
    """What a plan starts from: tokens up to each message, what carries, what the caches hold, and the odds.

    ``wholes`` are the tokens of everything alive, shown anew; ``changed`` those of what has another text now, shown as
    an update of the copy that stands.
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

    @property
    def updates(self) -> int:
        return sum(self.changed.values())


class PricedCut(NamedTuple):
    """One way to go on: how many messages stay, the marks, what is served, and what that costs, now and in the end."""

    keep: int | None
    marks: tuple[int, ...]
    served: int | None
    total: int
    cost: float
    expected: float


def plan_by_price(
    state: State, turn: Turn, profile: CacheProfile, *, measure: Measure, room: float, at: datetime | None
) -> Placement:
    """Where things stand in a turn that is asked in a state at this time; ``room`` is what a request may take."""
    lapse = _find_lapse(state, profile, at)
    forced = find_forced(state, turn)
    asked_at = int(has_system(turn.system or state.system, {})) + state.talk.length
    if forced is None and state.kept is not None and state.measured_by == measure.name:
        return replace(keep_kept(state, Placement()), at=at, lapse=lapse)
    if forced is not None or state.measured_by != measure.name:
        # Nothing that a cache holds can be served: what is marked is there for the next turn.
        first = asked_at - state.talk.length
        talk = asked_at > first and turn.terms.history is History.FULL
        marks = tuple(sorted({*((0,) if first else ()), *((asked_at - 1,) if talk else ())}))
        why = forced or "another model counts otherwise"
        return Placement(keep=0, why=why, marks=marks if profile.marks else (), at=at, lapse=lapse)
    trail = count_lapse(state.trail, lapse)
    ground, forms = _survey(state, turn, profile, hazards=find_hazards(trail), measure=measure, at=at)
    candidates = list_candidates(ground, asked_at)
    wish = find_wish(turn)
    if wish is not None:
        candidates = _find_wished(candidates, ground, asked_at)
    chosen, other = _choose(candidates, ground, room=room)
    if chosen.keep is not None and turn.terms.history is not History.FULL and _is_cold(candidates[0], ground):
        # What is not shown of the talk is settled anew where that costs nothing.
        chosen = _price(
            ground, ground.first, asked_at=asked_at, total=chosen.total, worth=chosen.cost - chosen.expected
        )
        # How many messages that leaves is not known yet.
        chosen = chosen._replace(marks=tuple(mark for mark in chosen.marks if mark < ground.first))
    kept_forms = forms if chosen.keep is None else {}
    return Placement(
        keep=chosen.keep,
        forms=kept_forms,
        why=wish or _explain(chosen, other, ground, lapse=lapse),
        marks=chosen.marks,
        lasting=_find_lasting(trail, chosen, asked_at, profile=profile),
        served=chosen.served,
        at=at,
        lapse=lapse,
        cost=round(chosen.expected, 1),
        other=round(other.expected, 1),
    )


def _find_lapse(state: State, profile: CacheProfile, at: datetime | None) -> Lapse:
    before = state.trail.at
    if at is None or before is None:
        return Lapse.UNKNOWN
    pause = (at - before).total_seconds()
    if profile.lifetime is None or pause <= profile.lifetime:
        return Lapse.NONE
    return Lapse.SHORT if pause <= _HOUR else Lapse.LONG


def _survey(
    state: State, turn: Turn, profile: CacheProfile, *, hazards: Hazards, measure: Measure, at: datetime | None
) -> tuple[Survey, Mapping[str, Form]]:
    """The ground of a plan, and what changed and is shown whole if everything stays."""
    now = with_settings(state, turn)
    first = int(has_system(now.system, {}))
    messages = past_messages(state.talk.shown)
    sizes = [_weigh(message, measure) for message in messages]
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
    # What stands in the list of what left moves along with a cut: it is no gain.
    alive |= {name for name, one in state.standing.items() if one.form is Form.HANDLE and name in library}
    entries = [one for one in state.trail.entries if _lives(one, profile, at)]
    ground = Survey(
        first=first,
        ends=ends,
        carriers=_find_carriers(state, alive, first=first, measure=measure),
        entries=entries,
        stable=state.trail.stable,
        hazards=hazards,
        profile=profile,
        wholes={
            name: measure.count(one.pieces[0]) for name, one in state.standing.items() if name in alive and one.pieces
        },
        changed={},
    )
    return _weigh_updates(ground, state, attached, measure=measure)


def _weigh(message: Message, measure: Measure) -> int:
    images = count_images(message.images, measure) if message.images else 0
    return message.tokens + images + measure.per_message


def _lives(held: Held, profile: CacheProfile, at: datetime | None) -> bool:
    if at is None or held.at is None or profile.lifetime is None:
        return True
    lasts = profile.longer[0] if held.lasting and profile.longer else profile.lifetime
    return (at - held.at).total_seconds() <= lasts


def _find_carriers(state: State, alive: set[str], *, first: int, measure: Measure) -> list[Carrier]:
    """The turns that carry something, and what of it is still wanted."""
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
                    sizes[name] = sizes.get(name, 0) + measure.count(piece)
            known = sum(sum(sizes.values()) for sizes in tokens.values())
            known += sum([stub_in_line(tool, measure).tokens for tool in exchange.tools])
            known += measure.count(LISTED) if LISTED in exchange.sent.pieces else 0
            rest = max(0, exchange.sent.tokens - exchange.user.message.tokens - known)
            carriers.append(Carrier(at, tuple(tokens[False].items()), tuple(tokens[True].items()), rest))
        at += 2 + len(exchange.rounds)
    return carriers


def _weigh_updates(
    ground: Survey, state: State, attached: Mapping[str, Artifact], *, measure: Measure
) -> tuple[Survey, Mapping[str, Form]]:
    """Of what is attached with another text than stands: what is shown whole, and what all of it takes if nothing goes.

    A difference is read again and again with the copy it changes; a whole text leaves that copy dead, to be read until
    the next fold, or cut away at the price of what stands behind it.
    """
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


def list_candidates(ground: Survey, asked_at: int) -> list[PricedCut]:
    """Appending, and a cut before each turn that carries something; that before the first folds everything."""
    stays = ground.ends[-1] if ground.ends else 0
    candidates = [_price(ground, None, asked_at=asked_at, total=stays + ground.updates, worth=0.0)]
    hazards, read, write = ground.hazards, ground.profile.read, ground.profile.write
    gone, copies, worth = 0, 0, 0.0
    # A text that lives stands once behind the cut, however many pieces it was read from before.
    shown: set[str] = set()
    listed: set[str] = set()
    for carrier in reversed(ground.carriers):
        gone += carrier.rest + sum([tokens for _, tokens in (*carrier.dead, *carrier.alive)])
        worth += carrier.rest * hazards.rest_worth(read)
        worth += sum([tokens * hazards.worth(name, read, write) for name, tokens in carrier.dead])
        listed.update(name for name, _ in carrier.dead)
        new = {name for name, _ in carrier.alive} - shown
        copies += sum([tokens for _, tokens in carrier.alive]) - sum([ground.wholes[name] for name in new])
        shown |= new
        again = sum([ground.wholes[name] for name in shown]) + min(_HANDLES, _HANDLE * len(listed))
        standing = sum([tokens for name, tokens in ground.changed.items() if name not in shown])
        total = stays - gone + again + standing
        saved = worth + copies * hazards.rest_worth(read)
        candidates.append(_price(ground, carrier.start, asked_at=asked_at, total=total, worth=saved))
    return candidates


def _price(ground: Survey, keep: int | None, *, asked_at: int, total: int, worth: float) -> PricedCut:
    profile, kept = ground.profile, len(ground.ends) if keep is None else keep
    marks = _choose_marks(ground, keep, asked_at=asked_at)
    served, read = find_served(ground.entries, ground.ends, (*marks, asked_at), profile=profile, keep=kept)
    cost = profile.read * read + profile.write * (total - read)
    return PricedCut(keep=keep, marks=marks, served=served, total=total, cost=cost, expected=cost - worth)


def find_served(
    entries: Iterable[Held], ends: Sequence[int], marks: Sequence[int], *, profile: CacheProfile, keep: int
) -> tuple[int | None, int]:
    """The last message that a cache serves of a request that keeps so many, and the tokens up to it."""
    if profile.marks:
        lookback = profile.lookback or len(ends) + 1
        places = [one.position for one in entries if one.position < keep]
        places = [one for one in places if any(0 <= mark - one < lookback for mark in marks)]
    else:
        places = [min(one.position, keep - 1) for one in entries]
    last = max(places, default=-1)
    read = ends[last] if last >= 0 else 0
    read -= read % profile.granularity
    return (last, read) if read >= max(profile.minimum, 1) else (None, 0)


def _choose_marks(ground: Survey, keep: int | None, *, asked_at: int) -> tuple[int, ...]:
    """Messages after which a cache is to keep what it has, beside the question.

    Of a cut that is the last one before the question, which stays from now on, and the last that the cache still holds;
    else what stayed since the last cut, and what was sent last where no mark of this request would find it. And L1.
    """
    profile, kept = ground.profile, len(ground.ends) if keep is None else keep
    if not profile.marks:
        return ()
    held = max((one.position for one in ground.entries if one.position < kept), default=None)
    if keep is not None:
        wanted = [asked_at - 1, held]
    else:
        far = held is not None and profile.lookback is not None and asked_at - held >= profile.lookback
        wanted = [held if far else None, ground.stable]
    wanted.append(0 if ground.first else None)
    chosen = dict.fromkeys(one for one in wanted if one is not None and 0 <= one < asked_at)
    return tuple(sorted(list(chosen)[: profile.marks - 1]))


def _choose(candidates: Sequence[PricedCut], ground: Survey, *, room: float) -> tuple[PricedCut, PricedCut]:
    """The cheapest in expectation, and the next; of those that fit, where some do. Ties: append, then the later cut."""
    fitting = [one for one in candidates if one.total <= room] or [candidates[-1]]
    append, fold = candidates[0], candidates[-1]
    cold = _is_cold(append, ground)
    # Where nothing is served whichever way, what lives goes behind the talk: the next cut finds it there.
    best = fold if cold and fold.expected <= append.expected else min(fitting, key=_expected_of)
    others = [one for one in candidates if one is not best]
    return best, min(others, key=_expected_of, default=best)


def _is_cold(append: PricedCut, ground: Survey) -> bool:
    """Whether nothing but L1 would be served of a request that keeps everything."""
    return append.served is None or append.served < ground.first


def _find_wished(candidates: Sequence[PricedCut], ground: Survey, asked_at: int) -> list[PricedCut]:
    """What a wish to fold leaves: to fold everything, or to begin an epoch where nothing carries anything."""
    if len(candidates) > 1:
        return [candidates[-1]]
    append = candidates[0]
    return [_price(ground, asked_at, asked_at=asked_at, total=append.total, worth=0.0)]


def _expected_of(candidate: PricedCut) -> float:
    return candidate.expected


def _find_lasting(trail: Trail, chosen: PricedCut, asked_at: int, *, profile: CacheProfile) -> int | None:
    """Up to where marks are worth the longer lifetime: the talk before the question of a fold, as long as it stands."""
    longer = profile.longer
    if longer is None:
        return None
    held = {one.position for one in trail.entries if one.lasting}
    lasting = max((mark for mark in chosen.marks if mark in held and mark <= (chosen.served or -1)), default=None)
    cold = chosen.served is None or (lasting is not None and chosen.served == lasting)
    stable = asked_at - 1
    if chosen.keep is None or not cold or stable not in chosen.marks:
        return lasting
    saved = expect_short_lapses(trail) * (profile.write - profile.read)
    return stable if saved > longer[1] - profile.write else lasting


def _explain(chosen: PricedCut, other: PricedCut, ground: Survey, *, lapse: Lapse) -> str:
    """The choice in a sentence."""
    saved = f"about {max(0.0, other.expected - chosen.expected):,.0f} tokens of plain input less than the next best"
    if chosen.keep is None:
        return f"appended: {saved}" if ground.carriers else "appended: nothing carries what could go"
    gone = max(0, ground.ends[-1] - chosen.total)
    if lapse in (Lapse.SHORT, Lapse.LONG):
        return f"folded: the cache lapsed, and {gone:,} tokens need not be written again"
    where = (
        "folded" if ground.carriers and chosen.keep <= ground.carriers[0].start else f"cut before message {chosen.keep}"
    )
    return f"{where}: {gone:,} tokens leave, {saved}"
