"""The planner of ``auto``: append while warm, fold when cold, cut where it pays. A handful of candidates, each priced.

Prices are factors of plain input, as values of a cache profile. What a candidate costs now is counted on the tokens it
sends; what it costs later is expected, from how often the cache lapsed and things came back in this conversation.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lamella.core.budget.counting import Measure, count_tools
from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.placement import Lapse, Placement
from lamella.core.log.terms import History, Layout
from lamella.core.log.turn import Turn
from lamella.core.planning.ground import HANDLE_TOKENS, Survey, survey, weigh, weigh_question
from lamella.core.planning.habits import expect_short_lapses, find_hazards
from lamella.core.planning.layouts import find_forced, find_wish, keep_kept
from lamella.core.prompt.layers.library import find_list_room
from lamella.core.prompt.prompt import Prompt, has_system
from lamella.core.prompt.state import State
from lamella.core.prompt.trail import Held, Trail, count_lapse, keep_warm
from lamella.core.values import replace

_HOUR = 3_600.0
_LAPSED = (Lapse.SHORT, Lapse.LONG)


class PricedCut(NamedTuple):
    """One way to go on: how many messages and pieces stay, marks, what is served, what it costs now and in the end."""

    keep: int | None
    within: int
    marks: tuple[int, ...]
    served: int | None
    total: int
    cost: float
    expected: float


def plan_by_price(
    state: State,
    turn: Turn,
    profile: CacheProfile,
    *,
    measure: Measure,
    room: float,
    at: datetime | None,
    aim: float | None = None,
    kept: datetime | None = None,
) -> Placement:
    """Where things stand in a turn that is asked in a state at this time; ``room`` is what a request may take.

    What has to be cut because it is over that comes down to the ``aim``, where a cut does. What was sent last was
    ``kept`` in the cache by being sent again at that time, if it was.
    """
    lapse = _find_lapse(state, profile, at, kept=kept)
    warm = state if kept is None else replace(state, trail=keep_warm(state.trail, kept))
    aim = room if aim is None else aim
    placement = _plan(warm, turn, profile, measure=measure, room=room, aim=aim, at=at, lapse=lapse)
    return replace(placement, at=at, lapse=lapse, kept=kept)


def _plan(
    state: State,
    turn: Turn,
    profile: CacheProfile,
    *,
    measure: Measure,
    room: float,
    aim: float,
    at: datetime | None,
    lapse: Lapse,
) -> Placement:
    forced = find_forced(state, turn)
    asked_at = int(has_system(turn.system or state.system, {})) + state.talk.length
    if forced is None and state.kept is not None and state.measured_by == measure.name:
        return keep_kept(state, Placement())
    if forced is not None or state.measured_by != measure.name:
        # Nothing that a cache holds can be served: what is marked is there for the next turn.
        first = asked_at - state.talk.length
        talk = asked_at > first and turn.terms.history is History.FULL
        marks = tuple(sorted({*((0,) if first else ()), *((asked_at - 1,) if talk else ())}))
        why = forced or "another model counts otherwise"
        why += ", after the cache lapsed" if lapse in _LAPSED else ""
        return Placement(keep=0, why=why, marks=marks if profile.marks else ())
    trail = count_lapse(state.trail, lapse)
    ground, forms = survey(state, turn, profile, hazards=find_hazards(trail), measure=measure, at=at)
    candidates = list_candidates(ground, asked_at)
    wish = find_wish(turn)
    if wish is not None:
        candidates = _find_wished(candidates, ground, asked_at)
    asks = weigh_question(state, turn, measure) if len(candidates) > 1 else 0
    chosen, other = _choose(candidates, ground, room=room - asks, aim=aim - asks)
    if chosen.keep is not None and turn.terms.history is not History.FULL and _is_cold(candidates[0], ground):
        # What is not shown of the talk is settled anew where that costs nothing.
        chosen = _price(
            ground, ground.first, asked_at=asked_at, total=chosen.total, worth=chosen.cost - chosen.expected
        )
        # How many messages that leaves is not known yet.
        chosen = chosen._replace(marks=tuple(mark for mark in chosen.marks if mark < ground.first))
    return Placement(
        keep=chosen.keep,
        within=chosen.within,
        order=_list_moved(ground, chosen),
        forms=forms if chosen.keep is None else {},
        why=wish or _explain(chosen, other, ground, lapse=lapse),
        marks=chosen.marks,
        lasting=_find_lasting(trail, chosen, asked_at, profile=profile),
        served=chosen.served,
        cost=round(chosen.expected, 1),
        other=round(other.expected, 1),
    )


def _list_moved(ground: Survey, chosen: PricedCut) -> tuple[str, ...]:
    """What a cut shows in the question: what is due to leave is the last, so that the next cut leaves the others."""
    keep = chosen.keep
    if keep is None or not ground.order:
        return ()
    behind = [one for one in ground.carriers if one.start >= keep]
    moved = {name for one in behind for name, _ in one.alive}
    moved -= {name for one in behind[:1] for name, _ in one.head[: chosen.within]}
    listed = [name for name in ground.order if name in moved or name not in ground.wholes]
    return tuple(listed) if len(listed) > 1 else ()


def lets_move(prompt: Prompt, profile: CacheProfile) -> bool:
    """Whether what stands before all that was said may change with a planned request, although it moves everything.

    It may where no cache would serve any of the talk, where the room forces a cut, and where one still pays if nothing
    before it is served.
    """
    planned = prompt.placement
    if planned.keep == 0:
        return True
    if planned.keep is None and planned.lapse not in _LAPSED:
        return False
    if planned.served is None or planned.served < prompt.first:
        return True
    if planned.keep is None or planned.cost is None or planned.other is None:
        return False
    served = sum(weigh(message, prompt.measure) for message in prompt.messages[: planned.served + 1])
    again = (profile.write - profile.read) * (served + count_tools(prompt.tools, prompt.measure.count))
    # Dearer than another one, it was chosen for its room.
    return planned.cost > planned.other or planned.cost + again <= planned.other


def _find_lapse(state: State, profile: CacheProfile, at: datetime | None, *, kept: datetime | None) -> Lapse:
    before = state.trail.at
    if at is None or before is None:
        return Lapse.UNKNOWN
    pause = (at - before).total_seconds()
    if profile.lifetime is None or pause <= profile.lifetime:
        return Lapse.NONE
    if kept is not None and (at - kept).total_seconds() <= profile.lifetime:
        return Lapse.KEPT
    return Lapse.SHORT if pause <= _HOUR else Lapse.LONG


def list_candidates(ground: Survey, asked_at: int) -> list[PricedCut]:
    """Appending, and a cut before each turn that carries something; that before the first folds everything."""
    stays = ground.ends[-1] if ground.ends else 0
    candidates = [_price(ground, None, asked_at=asked_at, total=stays + ground.updates, worth=0.0)]
    hazards, read, write = ground.hazards, ground.profile.read, ground.profile.write
    gone, copies, again, worth, going = 0, 0, 0, 0.0, 0.0
    # What changed stands as an update unless it is shown again whole.
    standing = ground.updates
    # A text that lives stands once behind the cut, however many pieces it was read from before.
    shown: set[str] = set()
    listed: set[str] = set()
    dead = {name for carrier in ground.carriers for name, _ in carrier.dead}
    for carrier in reversed(ground.carriers):
        gone += carrier.rest + sum([tokens for _, tokens in (*carrier.dead, *carrier.alive)])
        worth += carrier.rest * hazards.rest_worth(read, write)
        worth += sum([tokens * hazards.worth(name, read, write) for name, tokens in carrier.dead])
        listed.update(name for name, _ in carrier.dead)
        new = {name for name, _ in carrier.alive} - shown
        shown |= new
        moved = sum([ground.wholes[name] for name in new])
        copies += sum([tokens for _, tokens in carrier.alive]) - moved
        again += moved
        standing -= sum([ground.changed[name] for name in new if name in ground.changed])
        total = stays - gone + again + standing
        total += min(find_list_room(total), HANDLE_TOKENS * len(listed))
        # What stays readable above and is no longer attached has to be told again.
        told = HANDLE_TOKENS * (len(dead) - len(listed))
        total += told
        saved = worth + (copies - told) * hazards.rest_worth(read, write)
        going += sum([ground.wholes[name] * (1 - hazards.come_back(name)) for name in new & ground.leaving])
        if going:
            behind = total - (ground.ends[carrier.start - 1] if carrier.start else 0)
            saved = min(saved, hazards.wait_worth(read, write, behind=behind, going=going))
        head = ground.find_head(carrier)
        if head and carrier.start:
            # Behind what stays of the message stands the label that would have gone with all of it.
            stand = total + min(carrier.rest, ground.label)
            stand += sum([tokens - ground.wholes[name] + ground.changed.get(name, 0) for name, tokens in head])
            less = saved - min(carrier.rest, ground.label) * hazards.rest_worth(read, write)
            candidates.append(_price(ground, carrier.start, asked_at=asked_at, total=stand, worth=less, head=head))
        candidates.append(_price(ground, carrier.start, asked_at=asked_at, total=total, worth=saved))
    return candidates


def _price(
    ground: Survey,
    keep: int | None,
    *,
    asked_at: int,
    total: int,
    worth: float,
    head: Sequence[tuple[str, int]] = (),
) -> PricedCut:
    profile, kept = ground.profile, len(ground.ends) if keep is None else keep
    marks = _choose_marks(ground, keep, asked_at=asked_at)
    served, read = find_served(ground.entries, ground.ends, (*marks, asked_at), profile=profile, keep=kept)
    if head and any(one.position >= kept for one in ground.entries):
        read = ground.ends[kept - 1] + sum([tokens for _, tokens in head])
        read -= read % profile.granularity
        served, read = (kept - 1, read) if read >= max(profile.minimum, 1) else (None, 0)
    cost = profile.read * read + profile.write * (total - read)
    return PricedCut(
        keep=keep, within=len(head), marks=marks, served=served, total=total, cost=cost, expected=cost - worth
    )


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


def _choose(candidates: Sequence[PricedCut], ground: Survey, *, room: float, aim: float) -> tuple[PricedCut, PricedCut]:
    """The cheapest in expectation, and the next; of those that fit, where some do. Ties: append, then the later cut."""
    append, fold = candidates[0], candidates[-1]
    # One that only just fits would have to be made again in the next turn.
    most = room if append.total <= room else aim
    fitting = [one for one in candidates if one.total <= most] or [fold]
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
    if lapse in _LAPSED:
        return f"folded: the cache lapsed, and {gone:,} tokens need not be written again"
    if chosen.within:
        where = f"cut in message {chosen.keep}"
    elif ground.carriers and chosen.keep <= ground.carriers[0].start:
        where = "folded"
    else:
        where = f"cut before message {chosen.keep}"
    return f"{where}: {gone:,} tokens leave, {saved}"


# The layouts in which prices decide where things stand, once, when a turn is asked.
AHEAD = {Layout.AUTO: plan_by_price}
