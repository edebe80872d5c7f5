"""The ledger's entry: what moved, what three caches would have served, what that costs, and what became of a call."""

from datetime import UTC, datetime
from decimal import Decimal

from tests.unit.core.compaction.talking import LIBRARY, QUARTERS, ROOM, Story, attaching, note

from lamella.core.artifacts.blocks import render_block
from lamella.core.ledger.cache import CacheProfile, CacheRequest
from lamella.core.ledger.entry import (
    Books,
    Entry,
    Tariff,
    enter_turn,
    foresee,
    judge_call,
    make_aside,
    make_prefix,
    see_request,
)
from lamella.core.log.call import CacheUse, Cause, Cost, Outcome, Timing
from lamella.core.log.placement import Placement
from lamella.core.log.terms import Effort, Rewrite
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.messages.delta import Diagnosis, Reply, StopReason
from lamella.core.messages.usage import Usage
from lamella.core.prompt.advance import waiting
from lamella.core.prompt.envelope import Envelope, make_envelope
from lamella.core.prompt.layers.strip import Series
from lamella.core.values import replace

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def price(use: CacheUse, at: datetime | None, *, output: int = 0) -> Decimal:
    """A token read costs one, any other ten, and one that comes back a hundred."""
    del at
    return Decimal(use.read + 10 * (use.write + use.uncached) + 100 * output)


TARIFF = Tariff(profile=CacheProfile(name="p"), price=price)


def asked(story: Story, turn: Turn) -> Envelope:
    return make_envelope(waiting(story.open(turn)), ROOM)


def entries(story: Story, *turns: Turn) -> list[Entry]:
    books, made = Books(), []
    for turn in turns:
        entry, books = enter_turn(books, asked(story, turn), tariff=TARIFF, at=NOON)
        story.say(turn.text, "yes, indeed", turn)
        made.append(entry)
    return made


def test_the_first_turn_reads_nothing_and_costs_everybody_the_same() -> None:
    (entry,) = entries(Story(), attaching(note("a.md", "text " * 40)))
    assert entry.prefix.movement.cause is Cause.FIRST_TURN
    assert (entry.prefix.common_tokens, entry.verdict) == (0, None)
    assert entry.cache is not None
    assert entry.cost is not None
    assert entry.cache.read == 0
    assert entry.cost.amount == entry.cost.naive == entry.cost.limit == 10 * entry.cache.total


def test_a_turn_that_extends_the_one_before_reads_it_and_a_glued_one_pays_again() -> None:
    long = attaching(note("a.md", "text " * 40))
    first, second = entries(Story(), replace(long, text="one"), replace(long, text="two"))
    assert first.cache is not None
    assert second.cache is not None
    assert second.cost is not None
    assert second.cache.read == first.cache.total == second.prefix.common_tokens
    assert second.prefix.cause == "none"
    assert second.cost.amount < second.cost.naive
    assert second.cost.limit <= second.cost.amount
    assert sum(second.cached_by_layer.values()) <= second.cache.read


def test_what_is_cached_is_told_by_layer() -> None:
    system = replace(attaching(note("a.md", "text " * 40)), system=SystemParts(base="Be brief."))
    _, second = entries(Story(), replace(system, text="one"), Turn(text="two"))
    covered = {layer.value: tokens for layer, tokens in second.cached_by_layer.items() if tokens}
    assert set(covered) == {"L1_SYSTEM", "L2_PREVIOUS", "L4_STRIP"}
    assert covered["L1_SYSTEM"] == QUARTERS.count("Be brief.")


def test_where_no_price_is_known_there_is_no_cost() -> None:
    tariff = Tariff(profile=TARIFF.profile)
    entry, _ = enter_turn(Books(), asked(Story(), Turn(text="one")), tariff=tariff, at=None)
    assert entry.cost is None
    assert entry.cache is not None


def test_what_costs_nothing_has_a_cost_of_nothing() -> None:
    tariff = Tariff(profile=TARIFF.profile, price=lambda use, at, *, output=0: Decimal(0))
    entry, _ = enter_turn(Books(), asked(Story(), Turn(text="one")), tariff=tariff, at=None)
    assert entry.cost == Cost(amount=Decimal(0), naive=Decimal(0), limit=Decimal(0))


def test_a_perfect_cache_serves_what_was_ever_sent_wherever_it_stands_now() -> None:
    story, library = Story(terms=LIBRARY), attaching(note("a.md", "text " * 40))
    first, second = entries(story, replace(library, text="one"), Turn(text="two"))
    assert first.cost is not None
    assert second.cost is not None
    assert second.cache is not None
    # The note went into the system message, so nothing is a prefix of anything; but it was sent before.
    assert second.cache.read == 0
    known = QUARTERS.count(render_block(*library.attached)) + QUARTERS.count("one")
    assert second.cost.amount - second.cost.limit == 9 * known


def test_a_request_is_seen_as_its_model_tools_and_messages() -> None:
    prompt = waiting(Story().open(Turn(text="one", model="m")))
    request = see_request(prompt, at=NOON)
    assert (request.model, request.tools, request.total, request.at) == ("m", (), prompt.total, NOON)
    assert request.messages is prompt.messages


def test_a_move_that_nothing_on_record_explains_was_not_triggered() -> None:
    story = Story().say("one", "yes")
    before = story.state.last
    assert before is not None
    now = waiting(story.open())
    (exchange,) = now.talk.exchanges
    other = replace(exchange, sent=replace(exchange.sent, pieces=("edited",)))
    edited = replace(now, talk=replace(now.talk, exchanges=Series([other])))
    assert make_prefix(before, now).triggered
    assert not make_prefix(before, edited).triggered
    assert make_prefix(before, replace(edited, rewritten=Rewrite.HISTORY_EDITED)).triggered


def test_what_cools_a_cache_and_moves_no_byte_is_told_unless_something_moved() -> None:
    tariff = Tariff(profile=CacheProfile(name="p", invalidates=(("effort", "messages"),)))
    for system, cause in ((None, Cause.NONE), (SystemParts(base="Be kind."), Cause.SYSTEM_CHANGED)):
        story = Story()
        _, books = enter_turn(Books(), asked(story, Turn(text="one")), tariff=tariff, at=NOON)
        story.say("one", "yes, indeed", Turn(text="one"))
        story.terms = replace(story.terms, reasoning_effort=Effort.LOW)
        entry, _ = enter_turn(books, asked(story, Turn(text="two", system=system)), tariff=tariff, at=NOON)
        assert entry.prefix.movement.cause is cause
        assert (entry.prefix.movement.segment == "effort") is (cause is Cause.NONE)


def test_a_call_is_kept_with_what_was_predicted_reported_judged_and_billed() -> None:
    story = Story()
    (entry,) = entries(story, Turn(text="one", model="m"))
    prompt = story.state.last
    assert prompt is not None
    usage = Usage(plain=5, read=2, write=0, output=3)
    said = Diagnosis(verdict="missed", missed=3)
    reply = Reply(text="yes", stop=StopReason.END, usage=usage, id="r", diagnosis=said)
    call = judge_call(
        entry,
        prompt,
        reply,
        tariff=TARIFF,
        by_layer={"L5_USER": 1},
        timing=Timing(total=2.0),
        foreseen=None,
        pause=None,
        at=NOON,
        retries=1,
    )
    assert (call.model, call.verdict.outcome, call.predicted) == ("m", Outcome.FIRST, entry.cache)
    assert (call.usage, call.billed) == (usage, Decimal(2 + 50 + 300))
    assert (call.stop, call.id, call.retries, call.timing.total) == ("end", "r", 1, 2.0)
    assert (call.diagnosis, call.cost, call.by_layer) == (said, entry.cost, {"L5_USER": 1})
    foreseen = CacheUse(read=1, write=0, uncached=0)
    stopped = judge_call(
        entry,
        prompt,
        replace(reply, usage=Usage()),
        tariff=TARIFF,
        by_layer={},
        timing=Timing(),
        foreseen=foreseen,
        pause=None,
        at=NOON,
        ended="stopped",
    )
    assert (stopped.predicted, stopped.billed, stopped.stop) == (foreseen, None, "stopped")
    # What the turn moved is what its first call found; later calls extend it.
    assert (
        replace(entry, calls=(call, replace(stopped, verdict=replace(stopped.verdict, outcome=Outcome.HIT)))).verdict
        is call.verdict
    )


def test_a_call_on_the_way_is_kept_with_what_it_was_for() -> None:
    request = CacheRequest(model="m", tools=(), messages=(), total=7, at=NOON, effort="", has_images=False)
    usage = Usage(plain=5, read=2, write=0, output=3)
    reply = Reply(text="yes", stop=StopReason.END, usage=usage, id="r", diagnosis=Diagnosis(verdict="missed", missed=3))
    call = make_aside("summary", request, reply, tariff=TARIFF, predicted=None, timing=Timing(total=2.0), retries=1)
    assert (call.model, call.purpose, call.usage, call.billed) == ("m", "summary", usage, Decimal(2 + 50 + 300))
    assert (call.stop, call.id, call.retries, call.diagnosis) == ("end", "r", 1, reply.diagnosis)
    assert (call.verdict.outcome, call.predicted, call.timing.total) == (Outcome.HIT, None, 2.0)
    silent = replace(reply, usage=Usage())
    ended = make_aside("plan", request, silent, tariff=TARIFF, predicted=None, timing=Timing(), ended="stopped")
    assert (ended.billed, ended.stop, ended.verdict.outcome) == (None, "stopped", Outcome.UNKNOWN)


def test_what_a_plan_writes_for_longer_is_foreseen_beside_what_it_writes() -> None:
    story = Story()
    story.say("one", "yes, indeed")
    prompt = asked(story, Turn(text="two")).prompt
    profile = CacheProfile(name="p", bills_writes=True, marks=4)
    short, long, held, partly = (
        foresee(replace(prompt, placement=Placement(served=served, lasting=lasting)), profile)
        for served, lasting in ((None, None), (None, 1), (1, 1), (0, 1))
    )
    assert (short.lasting, held.lasting) == (0, 0)
    assert 0 < long.lasting == held.read < long.write == short.write == prompt.total
    assert 0 < partly.lasting == long.lasting - partly.read < partly.write
