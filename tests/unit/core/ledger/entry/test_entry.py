"""The ledger's entry: what moved, what three caches would have served, what that costs, and what became of a call."""

from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.core.compaction.stories import LIBRARY, QUARTERS, ROOM, Story, attaching, note

from lamella.core.artifacts.blocks import render_block
from lamella.core.ledger.cache_profile import CacheProfile, CacheRequest
from lamella.core.ledger.entry import (
    CacheLedger,
    LedgerEntry,
    Pricing,
    add_predicted_turn,
    make_answer_call,
    make_auxiliary_call,
    make_prefix_report,
    predict_cache_usage,
    to_cache_request,
)
from lamella.core.log.call import CacheOutcome, CacheUsage, CallTiming, PrefixChangeCause, TurnInputCost
from lamella.core.log.turn import HistoryChangeReason, LayoutPlan, ReasoningEffort, SystemParts, Turn
from lamella.core.messages import CacheDiagnosis, ModelReply, StopReason, Usage
from lamella.core.prompt.advance import get_pending_prompt
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.layers.history import SharedSequence
from lamella.core.values import replace

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def price(usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal:
    """A token read costs one, any other ten, and one that comes back a hundred."""
    del at
    return Decimal(usage.read + 10 * (usage.write + usage.uncached) + 100 * output)


TARIFF = Pricing(profile=CacheProfile(name="p"), price=price)


def asked(story: Story, turn: Turn) -> Envelope:
    return make_envelope(get_pending_prompt(story.open(turn)), ROOM)


def entries(story: Story, *turns: Turn) -> list[LedgerEntry]:
    ledger, made = CacheLedger(), []
    for turn in turns:
        entry, ledger = add_predicted_turn(ledger, asked(story, turn), pricing=TARIFF, at=NOON)
        story.say(turn.text, "yes, indeed", turn)
        made.append(entry)
    return made


def test_first_turn_reads_nothing_and_costs_like_naive() -> None:
    (entry,) = entries(Story(), attaching(note("a.md", "text " * 40)))
    assert entry.prefix.prefix_change.cause is PrefixChangeCause.FIRST_TURN
    assert (entry.prefix.common_tokens, entry.verdict) == (0, None)
    assert entry.predicted_usage is not None
    assert entry.cost is not None
    assert entry.predicted_usage.read == 0
    assert entry.cost.amount == entry.cost.naive == entry.cost.limit == 10 * entry.predicted_usage.total


def test_extended_turn_reads_and_naive_pays_again() -> None:
    long = attaching(note("a.md", "text " * 40))
    first, second = entries(Story(), replace(long, text="one"), replace(long, text="two"))
    assert first.predicted_usage is not None
    assert second.predicted_usage is not None
    assert second.cost is not None
    assert second.predicted_usage.read == first.predicted_usage.total == second.prefix.common_tokens
    assert second.prefix.cause == "none"
    assert second.cost.amount < second.cost.naive
    assert second.cost.limit <= second.cost.amount
    assert sum(second.cached_by_layer.values()) <= second.predicted_usage.read


def test_cached_tokens_are_reported_by_layer() -> None:
    system = replace(attaching(note("a.md", "text " * 40)), system=SystemParts(base="Be brief."))
    _, second = entries(Story(), replace(system, text="one"), Turn(text="two"))
    covered = {layer.value: tokens for layer, tokens in second.cached_by_layer.items() if tokens}
    assert set(covered) == {"L1_SYSTEM", "L2_PREVIOUS", "L4_STRIP"}
    assert covered["L1_SYSTEM"] == QUARTERS.count("Be brief.")


def test_unknown_price_gives_no_cost() -> None:
    pricing = Pricing(profile=TARIFF.profile)
    entry, _ = add_predicted_turn(CacheLedger(), asked(Story(), Turn(text="one")), pricing=pricing, at=None)
    assert entry.cost is None
    assert entry.predicted_usage is not None


def test_zero_price_gives_zero_cost() -> None:
    pricing = Pricing(profile=TARIFF.profile, price=lambda use, at, *, output=0: Decimal(0))
    entry, _ = add_predicted_turn(CacheLedger(), asked(Story(), Turn(text="one")), pricing=pricing, at=None)
    assert entry.cost == TurnInputCost(amount=Decimal(0), naive=Decimal(0), limit=Decimal(0))


def test_perfect_cache_serves_everything_sent_before() -> None:
    story, library = Story(terms=LIBRARY), attaching(note("a.md", "text " * 40))
    first, second = entries(story, replace(library, text="one"), Turn(text="two"))
    assert first.cost is not None
    assert second.cost is not None
    assert second.predicted_usage is not None
    # The note went into the system message, so nothing is a prefix of anything; but it was sent before.
    assert second.predicted_usage.read == 0
    known = QUARTERS.count(render_block(*library.attached)) + QUARTERS.count("one")
    assert second.cost.amount - second.cost.limit == 9 * known


def test_perfect_cache_serves_every_copy_of_a_repeated_question() -> None:
    question = "Why is it so? " * 20
    first, second, third = entries(Story(), *[Turn(text=question)] * 3)
    known = QUARTERS.count(question)
    assert first.cost is not None
    assert second.cost is not None
    assert third.cost is not None
    # All copies in the second and third request were sent before: with the first one.
    assert first.cost.limit == 10 * known
    assert 2 * known <= second.cost.limit < 3 * known
    assert 3 * known <= third.cost.limit < 5 * known


def test_cache_request_has_model_tools_and_messages() -> None:
    prompt = get_pending_prompt(Story().open(Turn(text="one", model="m")))
    request = to_cache_request(prompt, at=NOON)
    assert (request.model, request.tools, request.total, request.at) == ("m", (), prompt.total, NOON)
    assert request.messages is prompt.messages


def test_unexplained_prefix_change_has_no_trigger() -> None:
    story = Story().say("one", "yes")
    before = story.state.last_prompt
    assert before is not None
    now = get_pending_prompt(story.open())
    (turn,) = now.history.turns
    other = replace(turn, question_message=replace(turn.question_message, pieces=("edited",)))
    edited = replace(now, history=replace(now.history, turns=SharedSequence([other])))
    assert make_prefix_report(before, now).triggered
    assert not make_prefix_report(before, edited).triggered
    assert make_prefix_report(before, replace(edited, history_rewrite=HistoryChangeReason.HISTORY_EDITED)).triggered


def test_cache_invalidation_without_moved_bytes_is_reported() -> None:
    pricing = Pricing(profile=CacheProfile(name="p", invalidates=(("effort", "messages"),)))
    for system, cause in (
        (None, PrefixChangeCause.NONE),
        (SystemParts(base="Be kind."), PrefixChangeCause.SYSTEM_CHANGED),
    ):
        story = Story()
        _, ledger = add_predicted_turn(CacheLedger(), asked(story, Turn(text="one")), pricing=pricing, at=NOON)
        story.say("one", "yes, indeed", Turn(text="one"))
        story.terms = replace(story.terms, reasoning_effort=ReasoningEffort.LOW)
        entry, _ = add_predicted_turn(ledger, asked(story, Turn(text="two", system=system)), pricing=pricing, at=NOON)
        assert entry.prefix.prefix_change.cause is cause
        assert (entry.prefix.prefix_change.segment == "effort") is (cause is PrefixChangeCause.NONE)


def test_model_call_has_prediction_report_verdict_and_cost() -> None:
    story = Story()
    (entry,) = entries(story, Turn(text="one", model="m"))
    prompt = story.state.last_prompt
    assert prompt is not None
    usage = Usage(plain=5, read=2, write=0, output=3)
    said = CacheDiagnosis(verdict="missed", missed=3)
    reply = ModelReply(text="yes", stop=StopReason.END, usage=usage, id="r", diagnosis=said)
    call = make_answer_call(
        entry,
        prompt,
        reply,
        pricing=TARIFF,
        by_layer={"L5_USER": 1},
        timing=CallTiming(total=2.0),
        predicted_usage=None,
        pause=None,
        at=NOON,
        retries=1,
    )
    assert (call.model, call.verdict.outcome, call.predicted) == ("m", CacheOutcome.FIRST, entry.predicted_usage)
    assert (call.usage, call.billed) == (usage, Decimal(2 + 50 + 300))
    assert (call.stop, call.id, call.retries, call.timing.total) == ("end", "r", 1, 2.0)
    assert (call.diagnosis, call.cost, call.by_layer) == (said, entry.cost, {"L5_USER": 1})
    foreseen = CacheUsage(read=1, write=0, uncached=0)
    stopped = make_answer_call(
        entry,
        prompt,
        replace(reply, usage=Usage()),
        pricing=TARIFF,
        by_layer={},
        timing=CallTiming(),
        predicted_usage=foreseen,
        pause=None,
        at=NOON,
        stop_reason="stopped",
    )
    assert (stopped.predicted, stopped.billed, stopped.stop) == (foreseen, None, "stopped")
    # What the turn moved is what its first call found; later calls extend it.
    assert (
        replace(
            entry, calls=(call, replace(stopped, verdict=replace(stopped.verdict, outcome=CacheOutcome.HIT)))
        ).verdict
        is call.verdict
    )


def test_auxiliary_call_has_purpose() -> None:
    request = CacheRequest(model="m", tools=(), messages=(), total=7, at=NOON, effort="", has_images=False)
    usage = Usage(plain=5, read=2, write=0, output=3)
    reply = ModelReply(
        text="yes", stop=StopReason.END, usage=usage, id="r", diagnosis=CacheDiagnosis(verdict="missed", missed=3)
    )
    call = make_auxiliary_call(
        "summary", request, reply, pricing=TARIFF, predicted=None, timing=CallTiming(total=2.0), retries=1
    )
    assert (call.model, call.purpose, call.usage, call.billed) == ("m", "summary", usage, Decimal(2 + 50 + 300))
    assert (call.stop, call.id, call.retries, call.diagnosis) == ("end", "r", 1, reply.diagnosis)
    assert (call.verdict.outcome, call.predicted, call.timing.total) == (CacheOutcome.HIT, None, 2.0)
    silent = replace(reply, usage=Usage())
    ended = make_auxiliary_call(
        "plan", request, silent, pricing=TARIFF, predicted=None, timing=CallTiming(), stop_reason="stopped"
    )
    assert (ended.billed, ended.stop, ended.verdict.outcome) == (None, "stopped", CacheOutcome.UNKNOWN)


def test_planned_long_lifetime_writes_are_predicted() -> None:
    story = Story()
    story.say("one", "yes, indeed")
    prompt = asked(story, Turn(text="two")).prompt
    profile = CacheProfile(name="p", bills_writes=True, marks=4)
    short, long, held, partly = (
        predict_cache_usage(
            replace(prompt, layout_plan=LayoutPlan(cached_message=served, long_lifetime_until=lasting)), profile
        )
        for served, lasting in ((None, None), (None, 1), (1, 1), (0, 1))
    )
    assert (short.long_lifetime, held.long_lifetime) == (0, 0)
    assert 0 < long.long_lifetime == held.read < long.write == short.write == prompt.total
    assert 0 < partly.long_lifetime == long.long_lifetime - partly.read < partly.write
