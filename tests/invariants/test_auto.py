"""Plans by price: they predict what a cache serves, are the same after reloading, and keep every invariant."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.compaction.stories import QUARTERS, ROOM, attaching, note

from lamella.conversation.past_turns import BranchHistory
from lamella.core.artifacts.kinds import make_tool_result
from lamella.core.layout.costs import list_layout_options, plan_by_cost
from lamella.core.layout.layouts import (
    choose_layout,
    collect_layout_inputs,
    estimate_question_tokens,
    estimate_reuse_probabilities,
)
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.ledger.entry import predict_cache_usage
from lamella.core.log.turn import AttachmentMode, HistoryMode, LayoutMode, LayoutPlan, SystemParts, Turn, TurnSettings
from lamella.core.messages import Message, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.cache_history import record_pause
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.invariants import check_invariants
from lamella.core.prompt.prompt import Prompt, has_system_message
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

TRIED = settings.get_profile("invariants")
START = datetime(2026, 11, 17, tzinfo=UTC)
# What lines that say what is attached, and lists of what left, may come to.
SLACK = 160
NAMES = ("a.md", "b.md", "c.md", "d.md")
TEXTS = ("short", "a text of some length\n" * 9, "long lines of text\n" * 60, "long lines of text\n" * 59 + "other\n")
EMPTY = PromptState(conversation="story", tokenizer_name=QUARTERS.name)
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
    TurnSettings,
    layout=st.just(LayoutMode.AUTO),
    attachments=st.sampled_from(AttachmentMode),
    linger=st.integers(0, 2),
    history=st.sampled_from(HistoryMode),
    history_turns=st.none() | st.integers(1, 2),
)


class Asked(NamedTuple):
    """A turn as it was asked, and when."""

    turn: Turn
    at: datetime | None
    prompt: Prompt
    before: PromptState


class MessageCache:
    """A cache over whole messages, told in bytes and not in places: what it holds, and until when.

    One without marks also serves a message as far as it begins with the same pieces.
    """

    def __init__(self, profile: CacheProfile) -> None:
        self._profile = profile
        self._held: dict[tuple[str, ...], datetime | None] = {}

    def take(self, messages: Sequence[Message], placement: LayoutPlan, at: datetime | None) -> int:
        """The tokens that are served of a request."""
        profile, texts = self._profile, tuple(f"{one.role}{one.text}{one.calls}" for one in messages)
        ends = list(accumulate(one.tokens for one in messages))
        tail = len(texts) - 1
        alive = [one for one in range(tail + 1) if texts[: one + 1] in self._held and self._lives(texts[: one + 1], at)]
        if profile.marks:
            marks = (*placement.breakpoints, tail)
            lookback = profile.lookback or tail + 1
            alive = [one for one in alive if any(0 <= mark - one < lookback for mark in marks)]
            alive = [one for one in alive if ends[one] >= profile.minimum]
        found = max(alive, default=None)
        kept = {*placement.breakpoints, tail} if profile.marks else set(range(tail + 1))
        for one in kept | ({found} if found is not None else set()):
            lasts = profile.lifetime
            if placement.long_lifetime_until is not None and one <= placement.long_lifetime_until and profile.longer:
                lasts = int(profile.longer[0])
            until = None if at is None or lasts is None else at + timedelta(seconds=lasts)
            self._held[texts[: one + 1]] = until
        read = 0 if found is None else ends[found]
        if not profile.marks:
            read = max(read, self._take_parts(texts, messages, placement, at))
        read -= read % profile.granularity
        return read if read >= max(profile.minimum, 1) else 0

    def _take_parts(
        self, texts: tuple[str, ...], messages: Sequence[Message], placement: LayoutPlan, at: datetime | None
    ) -> int:
        """The tokens that are served with the first pieces of the message in which a plan cuts."""
        read, within, keep = 0, placement.within, placement.keep_messages
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
        tool_results=results,
        rounds=(made,) * draw(st.sampled_from((0, 0, 0, 1, 3))),
        detach=tuple(draw(st.sets(st.sampled_from(NAMES), max_size=1))),
        fold=draw(st.sampled_from((False, False, False, True))),
        system=draw(st.sampled_from((None, None, None, SystemParts(base="Be terse. " * 30)))),
        reply=draw(st.sampled_from(("Because.", "It is so, and at some length. " * 25))),
    )
    return turn, draw(st.sampled_from((5.0, 50.0, 250.0, 700.0, 5_000.0)))


def talk(
    steps: Sequence[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile, *, start: datetime | None
) -> list[Asked]:
    """Every turn planned, asked and answered."""
    state, when, asked = EMPTY, start, list[Asked]()
    for turn, pause in steps:
        when = None if when is None else when + timedelta(seconds=pause)
        bound = replace(turn, turn_settings=terms, reply=None, rounds=())
        layout_plan = plan_by_cost(state, bound, profile, tokenizer=QUARTERS, max_tokens=1e9, at=when)
        bound = replace(bound, layout_plan=layout_plan)
        opened = advance_by_turn(state, bound, choose_layout, tokenizer=QUARTERS)
        check_invariants(make_envelope(get_pending_prompt(opened), ROOM), before=state.last_prompt)
        whole = replace(bound, rounds=turn.rounds, reply=turn.reply)
        asked.append(Asked(whole, when, get_pending_prompt(opened), state))
        state = advance_by_turn(state, whole, choose_layout, tokenizer=QUARTERS)
    return asked


STEPS = st.lists(turns(), min_size=1, max_size=9)


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_planned_cache_read_matches_simulated_cache(
    steps: list[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile, start: datetime | None
) -> None:
    cache = MessageCache(profile)
    for turn, at, prompt, _ in talk(steps, terms, profile, start=start):
        assert turn.layout_plan is not None
        served = cache.take(prompt.messages, turn.layout_plan, at)
        foreseen = predict_cache_usage(prompt, profile).read if profile.marks else _predict_steps(prompt, profile)
        # A history mode may leave more as it was than a fold could promise.
        assert foreseen == served if terms.history is HistoryMode.FULL else foreseen <= served
        if turn.rounds:
            state = advance_by_turn(EMPTY, replace(turn, reply=None), choose_layout, tokenizer=QUARTERS)
            longer = (*prompt.messages, *[message.message for message in get_pending_prompt(state).rounds])
            cache.take(longer, turn.layout_plan, at)


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_predicted_turn_cost_matches_simulated_bill(
    steps: list[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile, start: datetime | None
) -> None:
    billing = replace(profile, marks=max(profile.marks, 2), lookback=profile.lookback, bills_writes=True, minimum=0)
    full = replace(terms, history=HistoryMode.FULL)
    cache = MessageCache(billing)
    for turn, at, prompt, _ in talk(steps, full, billing, start=start):
        assert turn.layout_plan is not None
        usage, total = predict_cache_usage(prompt, billing), sum(one.tokens for one in prompt.messages)
        read = cache.take(prompt.messages, turn.layout_plan, at)
        lasting = _count_kept_tokens(prompt, read) if billing.longer else 0
        dear = (billing.longer or (0.0, billing.write))[1]
        billed = billing.read * read + dear * lasting + billing.write * (total - read - lasting)
        told = (
            billing.read * usage.read + dear * usage.long_lifetime + billing.write * (usage.write - usage.long_lifetime)
        )
        assert told + usage.uncached == pytest.approx(billed)
        if turn.rounds:
            state = advance_by_turn(EMPTY, replace(turn, reply=None), choose_layout, tokenizer=QUARTERS)
            cache.take(
                (*prompt.messages, *[message.message for message in get_pending_prompt(state).rounds]),
                turn.layout_plan,
                at,
            )


def _count_kept_tokens(prompt: Prompt, read: int) -> int:
    lasting = prompt.layout_plan.long_lifetime_until
    return 0 if lasting is None else max(0, sum(one.tokens for one in prompt.messages[: lasting + 1]) - read)


@TRIED
@given(STEPS, TERMS, PROFILES)
def test_priced_options_have_the_priced_length(
    steps: list[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile
) -> None:
    full = replace(terms, history=HistoryMode.FULL)
    for turn, at, _, before in talk(steps, full, profile, start=START):
        bound = replace(turn, reply=None, rounds=(), layout_plan=None)
        if before.turn_settings is None or bound.system is not None or bound.fold:
            continue
        inputs, forms = collect_layout_inputs(
            before,
            bound,
            profile,
            probabilities=estimate_reuse_probabilities(before.cache_history),
            tokenizer=QUARTERS,
            at=at,
        )
        asked_at = int(has_system_message(before.system, {})) + before.history.shown_message_count
        for way in list_layout_options(inputs, asked_at):
            layout_plan = LayoutPlan(
                keep_messages=way.keep_messages,
                within=way.keep_pieces,
                forms=forms if way.keep_messages is None else {},
            )
            sent = get_pending_prompt(
                advance_by_turn(before, replace(bound, layout_plan=layout_plan), choose_layout, tokenizer=QUARTERS)
            )
            foreseen = way.earlier_tokens + estimate_question_tokens(before, bound, QUARTERS)
            assert sent.total <= foreseen + SLACK
            # The same result given once more is counted, although it may be above.
            assert bound.tool_results or foreseen <= sent.total + SLACK


def _predict_steps(prompt: Prompt, profile: CacheProfile) -> int:
    served, within, keep = (
        prompt.layout_plan.cached_message,
        prompt.layout_plan.within,
        prompt.layout_plan.keep_messages,
    )
    read = 0 if served is None else sum(one.tokens for one in prompt.messages[: served + 1])
    if within and keep and served is not None:
        read += sum(map(QUARTERS.count, prompt.messages[keep].pieces[:within]))
    return read - read % profile.granularity


@TRIED
@given(STEPS, TERMS, PROFILES, st.sampled_from((START, None)))
def test_reload_at_any_point_sends_and_plans_the_same(
    steps: list[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile, start: datetime | None
) -> None:
    asked = talk(steps, terms, profile, start=start)
    for number, (turn, at, prompt, _) in enumerate(asked):
        state = BranchHistory([one.turn for one in asked[:number]]).compute_state(
            EMPTY, choose_layout, tokenizer=QUARTERS
        )
        again = replace(turn, layout_plan=None, reply=None, rounds=())
        assert plan_by_cost(state, again, profile, tokenizer=QUARTERS, max_tokens=1e9, at=at) == turn.layout_plan
        opened = advance_by_turn(state, replace(turn, reply=None, rounds=()), choose_layout, tokenizer=QUARTERS)
        assert get_pending_prompt(opened).messages == prompt.messages


@TRIED
@given(STEPS, TERMS, PROFILES)
def test_chosen_plan_costs_no_more_than_others_and_keeps_messages(
    steps: list[tuple[Turn, float]], terms: TurnSettings, profile: CacheProfile
) -> None:
    full = replace(terms, history=HistoryMode.FULL)
    said: list[str] = []
    for turn, at, prompt, before in talk(steps, full, profile, start=START):
        plan = prompt.layout_plan
        assert plan.cost is None or plan.other is None or plan.cost <= plan.other
        if plan.cost is not None and not turn.fold:
            inputs, _ = collect_layout_inputs(
                before,
                turn,
                profile,
                probabilities=estimate_reuse_probabilities(record_pause(before.cache_history, plan.expiry)),
                tokenizer=QUARTERS,
                at=at,
            )
            append, *_, fold = [*list_layout_options(inputs, prompt.question_index)] * 2
            assert plan.cost <= min(append.expected_cost, fold.expected_cost) + 0.05
        assert plan.why
        text = "\n".join(message.text for message in prompt.messages)
        assert all(one in text for one in said)
        said += [turn.text, turn.reply or ""]
