"""Plans by price: what they foresee is what a cache serves, reloading plans and sends the same, and every law holds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.compaction.talking import QUARTERS, ROOM, attaching, note

from lamella.core.artifacts.make import make_tool_result
from lamella.core.ledger.cache import CacheProfile
from lamella.core.ledger.entry import foresee
from lamella.core.log.placement import Placement
from lamella.core.log.terms import Attachments, History, Layout, Terms
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.model import Message
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.planning.ground import survey, weigh_question
from lamella.core.planning.habits import find_hazards
from lamella.core.planning.layouts import place
from lamella.core.planning.prices import list_candidates, plan_by_price
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.laws import check_laws
from lamella.core.prompt.prompt import Prompt, has_system
from lamella.core.prompt.state import State
from lamella.core.prompt.trail import count_lapse
from lamella.core.values import replace
from lamella.engine.dialogue.past import Past

TRIED = settings.get_profile("invariants")
START = datetime(2026, 11, 17, tzinfo=UTC)
# What lines that say what is attached, and lists of what left, may come to.
SLACK = 160
NAMES = ("a.md", "b.md", "c.md", "d.md")
TEXTS = ("short", "a text of some length\n" * 9, "long lines of text\n" * 60, "long lines of text\n" * 59 + "other\n")
EMPTY = State(conversation="story", measured_by=QUARTERS.name)
PROFILES = st.builds(
    CacheProfile,
    name=st.just("drawn"),
    minimum=st.sampled_from((0, 40, 400)),
    granularity=st.sampled_from((1, 16)),
    lifetime=st.sampled_from((None, 60, 300)),
    bills_writes=st.booleans(),
    read=st.sampled_from((0.0, 0.1, 0.5, 1.0)),
    write=st.sampled_from((1.0, 1.25)),
    marks=st.sampled_from((0, 2, 4)),
    lookback=st.sampled_from((None, 3, 20)),
    longer=st.none() | st.just((3_600.0, 2.0)),
)
TERMS = st.builds(
    Terms,
    layout=st.just(Layout.AUTO),
    attachments=st.sampled_from(Attachments),
    linger=st.integers(0, 2),
    history=st.sampled_from(History),
    history_turns=st.none() | st.integers(1, 2),
)


class Asked(NamedTuple):
    """A turn as it was asked, and when."""

    turn: Turn
    at: datetime | None
    prompt: Prompt
    before: State


class MessageCache:
    """A cache over whole messages, told in bytes and not in places: what it holds, and until when.

    One without marks also serves a message as far as it begins with the same pieces.
    """

    def __init__(self, profile: CacheProfile) -> None:
        self._profile = profile
        self._held: dict[tuple[str, ...], datetime | None] = {}

    def take(self, messages: Sequence[Message], placement: Placement, at: datetime | None) -> int:
        """The tokens that are served of a request."""
        profile, texts = self._profile, tuple(f"{one.role}{one.text}{one.calls}" for one in messages)
        ends = list(accumulate(one.tokens for one in messages))
        tail = len(texts) - 1
        alive = [one for one in range(tail + 1) if texts[: one + 1] in self._held and self._lives(texts[: one + 1], at)]
        if profile.marks:
            marks = (*placement.marks, tail)
            lookback = profile.lookback or tail + 1
            alive = [one for one in alive if any(0 <= mark - one < lookback for mark in marks)]
            alive = [one for one in alive if ends[one] >= profile.minimum]
        found = max(alive, default=None)
        kept = {*placement.marks, tail} if profile.marks else set(range(tail + 1))
        for one in kept | ({found} if found is not None else set()):
            lasts = profile.lifetime
            if placement.lasting is not None and one <= placement.lasting and profile.longer:
                lasts = int(profile.longer[0])
            until = None if at is None or lasts is None else at + timedelta(seconds=lasts)
            self._held[texts[: one + 1]] = until
        read = 0 if found is None else ends[found]
        if not profile.marks:
            read = max(read, self._take_parts(texts, messages, placement, at))
        read -= read % profile.granularity
        return read if read >= max(profile.minimum, 1) else 0

    def _take_parts(
        self, texts: tuple[str, ...], messages: Sequence[Message], placement: Placement, at: datetime | None
    ) -> int:
        """The tokens that are served with the first pieces of the message in which a plan cuts."""
        read, within, keep = 0, placement.within, placement.keep
        if within and keep:
            begins = messages[keep].pieces[:within]
            key = (*texts[:keep], *begins)
            if key in self._held and self._lives(key, at):
                read = sum(one.tokens for one in messages[:keep]) + sum(map(QUARTERS.count, begins))
        lasts = self._profile.lifetime
        until = None if at is None or lasts is None else at + timedelta(seconds=lasts)
        for number, message in enumerate(messages):
            for end in range(1, len(message.pieces)):
                self._held[(*texts[:number], *message.pieces[:end])] = until
        return read

    def _lives(self, texts: tuple[str, ...], at: datetime | None) -> bool:
        until = self._held[texts]
        return until is None or at is None or at <= until


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, float]:
    """A turn that brings notes, results and rounds, and the pause before it."""
    versions = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS), max_size=3))
    attached = attaching(*[note(name, f"{text} of {name}") for name, text in versions.items()]).attached
    output = draw(st.sampled_from((None, "given", "much that was given " * 40)))
    results = () if output is None else (make_tool_result(name="look", arguments={"q": "x"}, output=output),)
    call = ToolCall(id="c1", name="look", arguments='{"q": "y"}')
    made = ToolRound(text="", calls=(call,), outputs=(ToolOutput(call="c1", output="rounds " * 20),))
    turn = Turn(
        text=draw(st.sampled_from(("Why?", "And what then? " * 30))),
        attached=attached,
        results=results,
        rounds=(made,) * draw(st.sampled_from((0, 0, 0, 1, 3))),
        detach=tuple(draw(st.sets(st.sampled_from(NAMES), max_size=1))),
        fold=draw(st.sampled_from((False, False, False, True))),
        system=draw(st.sampled_from((None, None, None, SystemParts(base="Be terse. " * 30)))),
        reply=draw(st.sampled_from(("Because.", "It is so, and at some length. " * 25))),
    )
    return turn, draw(st.sampled_from((5.0, 50.0, 250.0, 700.0, 5_000.0)))


def talk(
    steps: Sequence[tuple[Turn, float]], terms: Terms, profile: CacheProfile, *, start: datetime | None
) -> list[Asked]:
    """Every turn planned, asked and answered."""
    state, when, asked = EMPTY, start, list[Asked]()
    for turn, pause in steps:
        when = None if when is None else when + timedelta(seconds=pause)
        bound = replace(turn, terms=terms, reply=None, rounds=())
        placement = plan_by_price(state, bound, profile, measure=QUARTERS, room=1e9, at=when)
        bound = replace(bound, placement=placement)
        opened = advance(state, bound, place, measure=QUARTERS)
        check_laws(make_envelope(waiting(opened), ROOM), before=state.last)
        whole = replace(bound, rounds=turn.rounds, reply=turn.reply)
        asked.append(Asked(whole, when, waiting(opened), state))
        state = advance(state, whole, place, measure=QUARTERS)
    return asked


STEPS = st.lists(turns(), min_size=1, max_size=9)


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_what_a_plan_foresees_is_what_a_cache_serves(
    steps: list[tuple[Turn, float]], terms: Terms, profile: CacheProfile, start: datetime | None
) -> None:
    cache = MessageCache(profile)
    for turn, at, prompt, _ in talk(steps, terms, profile, start=start):
        assert turn.placement is not None
        served = cache.take(prompt.messages, turn.placement, at)
        foreseen = foresee(prompt, profile).read if profile.marks else _foresee_steps(prompt, profile)
        # A history mode may leave more as it was than a fold could promise.
        assert foreseen == served if terms.history is History.FULL else foreseen <= served
        if turn.rounds:
            state = advance(EMPTY, replace(turn, reply=None), place, measure=QUARTERS)
            longer = (*prompt.messages, *[said.message for said in waiting(state).rounds])
            cache.take(longer, turn.placement, at)


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_what_a_turn_is_predicted_to_cost_is_what_the_cache_bills(
    steps: list[tuple[Turn, float]], terms: Terms, profile: CacheProfile, start: datetime | None
) -> None:
    billing = replace(profile, marks=max(profile.marks, 2), lookback=profile.lookback, bills_writes=True, minimum=0)
    full = replace(terms, history=History.FULL)
    cache = MessageCache(billing)
    for turn, at, prompt, _ in talk(steps, full, billing, start=start):
        assert turn.placement is not None
        use, total = foresee(prompt, billing), sum(one.tokens for one in prompt.messages)
        read = cache.take(prompt.messages, turn.placement, at)
        lasting = _weigh_lasting(prompt, read) if billing.longer else 0
        dear = (billing.longer or (0.0, billing.write))[1]
        billed = billing.read * read + dear * lasting + billing.write * (total - read - lasting)
        told = billing.read * use.read + dear * use.lasting + billing.write * (use.write - use.lasting)
        assert told + use.uncached == pytest.approx(billed)
        if turn.rounds:
            state = advance(EMPTY, replace(turn, reply=None), place, measure=QUARTERS)
            cache.take((*prompt.messages, *[said.message for said in waiting(state).rounds]), turn.placement, at)


def _weigh_lasting(prompt: Prompt, read: int) -> int:
    lasting = prompt.placement.lasting
    return 0 if lasting is None else max(0, sum(one.tokens for one in prompt.messages[: lasting + 1]) - read)


@TRIED
@given(STEPS, TERMS, PROFILES)
def test_every_way_that_was_priced_is_as_long_as_it_was_priced_to_be(
    steps: list[tuple[Turn, float]], terms: Terms, profile: CacheProfile
) -> None:
    full = replace(terms, history=History.FULL)
    for turn, at, _, before in talk(steps, full, profile, start=START):
        bound = replace(turn, reply=None, rounds=(), placement=None)
        if before.terms is None or bound.system is not None or bound.fold:
            continue
        ground, forms = survey(before, bound, profile, hazards=find_hazards(before.trail), measure=QUARTERS, at=at)
        asked_at = int(has_system(before.system, {})) + before.talk.length
        for way in list_candidates(ground, asked_at):
            planned = Placement(keep=way.keep, within=way.within, forms=forms if way.keep is None else {})
            sent = waiting(advance(before, replace(bound, placement=planned), place, measure=QUARTERS))
            foreseen = way.total + weigh_question(before, bound, QUARTERS)
            assert sent.total <= foreseen + SLACK
            # The same result given once more is weighed, although it may stand above.
            assert bound.results or foreseen <= sent.total + SLACK


def _foresee_steps(prompt: Prompt, profile: CacheProfile) -> int:
    served, within, keep = prompt.placement.served, prompt.placement.within, prompt.placement.keep
    read = 0 if served is None else sum(one.tokens for one in prompt.messages[: served + 1])
    if within and keep and served is not None:
        read += sum(map(QUARTERS.count, prompt.messages[keep].pieces[:within]))
    return read - read % profile.granularity


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_reloaded_at_any_point_the_same_is_sent_and_the_next_turn_is_planned_alike(
    steps: list[tuple[Turn, float]], terms: Terms, profile: CacheProfile, start: datetime | None
) -> None:
    asked = talk(steps, terms, profile, start=start)
    for number, (turn, at, prompt, _) in enumerate(asked):
        state = Past([one.turn for one in asked[:number]]).fold(EMPTY, place, measure=QUARTERS)
        again = replace(turn, placement=None, reply=None, rounds=())
        assert plan_by_price(state, again, profile, measure=QUARTERS, room=1e9, at=at) == turn.placement
        opened = advance(state, replace(turn, reply=None, rounds=()), place, measure=QUARTERS)
        assert waiting(opened).messages == prompt.messages


@TRIED
@given(STEPS, TERMS, PROFILES)
def test_a_plan_is_expected_to_cost_no_more_than_the_next_best_and_keeps_all_talk(
    steps: list[tuple[Turn, float]], terms: Terms, profile: CacheProfile
) -> None:
    full = replace(terms, history=History.FULL)
    said: list[str] = []
    for turn, at, prompt, before in talk(steps, full, profile, start=START):
        plan = prompt.placement
        assert plan.cost is None or plan.other is None or plan.cost <= plan.other
        if plan.cost is not None and not turn.fold:
            ground, _ = survey(
                before,
                turn,
                profile,
                hazards=find_hazards(count_lapse(before.trail, plan.lapse)),
                measure=QUARTERS,
                at=at,
            )
            append, *_, fold = [*list_candidates(ground, prompt.asked_at)] * 2
            assert plan.cost <= min(append.expected, fold.expected) + 0.05
        assert plan.why
        text = "\n".join(message.text for message in prompt.messages)
        assert all(one in text for one in said)
        said += [turn.text, turn.reply or ""]
