"""The cache model: longest common prefix, minimum, granularity, lifetime, and what writing costs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.artifacts.kinds import make_tool_definition
from lamella.core.artifacts.model import ImageData, ToolDefinition
from lamella.core.budget import count_tools_tokens
from lamella.core.ledger.cache_profile import (
    NO_COMMON_PREFIX,
    CacheProfile,
    CacheRequest,
    CacheSimulation,
    common_prefix_end,
    count_common_message_tokens,
    count_shared_prefix_tokens,
    split_by_price_class,
)
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Message, Role
from lamella.core.values import replace
from lamella.tokenizers.counter import OfflineTokenCounter

MEASURE = OfflineTokenCounter().get_tokenizer("openai:gpt-5")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
OPEN = CacheProfile(name="open")
SEARCH = make_tool_definition("search", description="", parameters={})


def message(text: str, role: Role = Role.USER) -> Message:
    return Message(role=role, pieces=(text,), tokens=MEASURE.count(text))


def request(
    *texts: str,
    after: int | None = None,
    model: str = "m",
    tools: tuple[ToolDefinition, ...] = (),
    effort: str = "",
) -> CacheRequest:
    messages = tuple(message(text) for text in texts)
    total = sum(one.tokens for one in messages) + 3 * len(messages) + 3
    at = None if after is None else NOON + timedelta(seconds=after)
    return CacheRequest(
        model=model, tools=tools, messages=messages, total=total, at=at, effort=effort, has_images=False
    )


def reads(profile: CacheProfile, *requests: CacheRequest) -> list[int]:
    cache = CacheSimulation()
    found = []
    for one in requests:
        usage, cache = cache.simulate_request(one, profile=profile, tokenizer=MEASURE)
        assert usage.total == one.total
        found.append(usage.read)
    return found


def test_first_request_reads_nothing() -> None:
    assert reads(OPEN, request("hello")) == [0]


def test_extended_request_reads_all_of_previous() -> None:
    first, second = request("one two three"), request("one two three", "more")
    assert reads(OPEN, first, second) == [0, first.total - 3]


def test_request_reads_tokens_shared_with_nearest_earlier_one() -> None:
    a, b = request("alpha beta gamma delta"), request("one two three four")
    again = request("alpha beta other")
    assert reads(OPEN, a, b, again) == [0, 0, 2]


def test_other_model_or_tools_share_nothing() -> None:
    one = request("the same text")
    assert reads(OPEN, one, request("the same text", model="n")) == [0, 0]
    assert reads(OPEN, one, request("the same text", tools=(SEARCH,))) == [0, 0]


def test_tool_definitions_are_part_of_the_shared_prefix() -> None:
    bare, armed = request("the same text"), request("the same text", tools=(SEARCH,))
    longer = replace(armed, total=armed.total + 100)
    tools = count_shared_prefix_tokens(armed, longer, MEASURE) - count_shared_prefix_tokens(bare, bare, MEASURE)
    assert tools == count_tools_tokens([SEARCH], MEASURE.count)


def test_request_below_minimum_is_not_read_or_written() -> None:
    profile = CacheProfile(name="p", minimum=1_024, bills_writes=True)
    assert split_by_price_class(1_000, 1_023, profile) == CacheUsage(read=0, write=0, uncached=1_023)
    assert split_by_price_class(1_000, 2_000, profile) == CacheUsage(read=0, write=2_000, uncached=0)
    assert split_by_price_class(1_024, 2_000, profile) == CacheUsage(read=1_024, write=976, uncached=0)


def test_reads_are_whole_steps() -> None:
    profile = CacheProfile(name="p", granularity=128)
    assert split_by_price_class(300, 400, profile) == CacheUsage(read=256, write=0, uncached=144)
    assert split_by_price_class(127, 400, profile).read == 0


def test_steps_are_applied_before_minimum() -> None:
    profile = CacheProfile(name="p", minimum=1_024, granularity=2_048)
    assert split_by_price_class(2_047, 3_000, profile).read == 0
    assert split_by_price_class(2_048, 3_000, profile).read == 2_048


def test_unread_tokens_are_plain_without_write_billing() -> None:
    assert split_by_price_class(10, 100, OPEN) == CacheUsage(read=10, write=0, uncached=90)


@pytest.mark.parametrize(("pause", "shared"), [(299, 5), (300, 5), (301, 0)])
def test_entry_expires_after_lifetime(pause: int, shared: int) -> None:
    profile = CacheProfile(name="p", lifetime=300)
    found = reads(profile, request("one two", after=0), request("one two", "more", after=pause))
    assert found == [0, shared]


def test_each_use_renews_prefix() -> None:
    profile = CacheProfile(name="p", lifetime=300)
    texts = ["one", "two", "three", "four"]
    requests = [request(*texts[: n + 1], after=200 * n) for n in range(4)]
    assert all(read > 0 for read in reads(profile, *requests)[1:])


def test_entry_without_time_never_expires() -> None:
    profile = CacheProfile(name="p", lifetime=300)
    assert reads(profile, request("one two"), request("one two", "more"))[1] > 0
    assert reads(profile, request("one two", after=0), request("one two", "more"))[1] > 0


def test_older_request_can_hit_without_expiry() -> None:
    long, short = request("a b c d", "e f"), request("x")
    assert reads(OPEN, long, short, request("a b c d", "e f", "g"))[2] == long.total - 3


def test_cache_forgets_requests_extended_by_newer_one() -> None:
    cache = CacheSimulation()
    for number in range(5):
        texts = [f"text {n}" for n in range(number + 1)]
        _, cache = cache.simulate_request(request(*texts), profile=OPEN, tokenizer=MEASURE)
    assert len(cache.requests) == 1


def test_cache_remembers_a_bounded_number_of_requests() -> None:
    cache = CacheSimulation()
    for number in range(200):
        _, cache = cache.simulate_request(request(f"different {number}"), profile=OPEN, tokenizer=MEASURE)
    assert len(cache.requests) == 64


def test_request_of_exactly_minimum_is_written() -> None:
    billed = CacheProfile(name="billed", minimum=1_024, bills_writes=True)
    assert split_by_price_class(0, 1_024, billed) == CacheUsage(read=0, write=1_024, uncached=0)
    assert split_by_price_class(0, 1_023, billed) == CacheUsage(read=0, write=0, uncached=1_023)
    assert split_by_price_class(1_024, 1_100, billed) == CacheUsage(read=1_024, write=76, uncached=0)
    assert split_by_price_class(1_023, 1_100, billed) == CacheUsage(read=0, write=1_100, uncached=0)


# Few words, so that requests part and meet again at every place: in a message, between two, and after the last.
WORDS = st.sampled_from(["alpha", "alpha beta", "alpha beta gamma", "beta", "beta\n", ""])
TALK = st.lists(WORDS, min_size=1, max_size=4)
MODELS = st.sampled_from(["m", "m", "m", "n"])
ARMED = st.sampled_from([(), (), (SEARCH,)])
EFFORTS = st.sampled_from(["", "", "high"])


@st.composite
def histories(draw: st.DrawFn, *, times: st.SearchStrategy[int | None]) -> list[CacheRequest]:
    """Requests of one conversation; most go on from an earlier one, at any place of it."""
    made: list[CacheRequest] = []
    talks: list[list[str]] = [[]]
    for _ in range(draw(st.integers(1, 9))):
        before = draw(st.sampled_from(talks))
        talk = [*before[: draw(st.integers(0, len(before)))], *draw(TALK)]
        talks.append(talk)
        made.append(request(*talk, after=draw(times), model=draw(MODELS), tools=draw(ARMED), effort=draw(EFFORTS)))
    return made


def begins(now: CacheRequest, earlier: CacheRequest) -> bool:
    """Whether a request starts with all of an earlier one."""
    same = (earlier.model, earlier.tools) == (now.model, now.tools)
    return same and earlier.messages == now.messages[: len(earlier.messages)]


def served(requests: Sequence[CacheRequest], lifetime: int, profile: CacheProfile = OPEN) -> list[int]:
    """What is read of each request if it is compared, byte by byte, with every one before it that is still held."""
    held: list[CacheRequest] = []
    found: list[int] = []
    for now in requests:
        held = [
            one for one in held if one.at is None or now.at is None or (now.at - one.at).total_seconds() <= lifetime
        ]
        found.append(max((count_shared_prefix_tokens(one, now, MEASURE, profile=profile) for one in held), default=0))
        # What a newer one begins with lives as long as that does, unless the cache tells the two apart.
        held = [
            *(one for one in held if not begins(now, one) or (profile.invalidates and one.effort != now.effort)),
            now,
        ]
    return found


@given(histories(times=st.none()))
def test_request_reads_longest_shared_prefix(requests: list[CacheRequest]) -> None:
    assert reads(OPEN, *requests) == served(requests, 0)


@pytest.mark.parametrize("part", ["tools", "system", "messages"])
@given(requests=histories(times=st.none()))
def test_effort_change_invalidates_only_dependent_parts(part: str, requests: list[CacheRequest]) -> None:
    profile = CacheProfile(name="p", invalidates=(("effort", part),))
    assert reads(profile, *requests) == served(requests, 0, profile)


def test_effort_dependent_cache_is_separate_per_effort() -> None:
    depends = CacheProfile(name="p", invalidates=(("effort", "tools"),))
    asked = [request("one", effort="low"), request("one", "two", effort="high"), request("one", "two", effort="low")]
    assert reads(OPEN, *asked) == [0, 4, 8]
    assert reads(depends, *asked) == [0, 0, 4]


def test_effort_change_of_messages_keeps_system_and_tools() -> None:
    depends = CacheProfile(name="p", invalidates=(("effort", "messages"), ("images", "messages")))
    system = Message(role=Role.SYSTEM, pieces=("Be brief.",), tokens=MEASURE.count("Be brief."))
    plain = request("one", "two", tools=(SEARCH,))
    before = replace(plain, messages=(system, *plain.messages), total=plain.total + system.tokens + 3)
    kept = system.tokens + 3 + count_tools_tokens((SEARCH,), MEASURE.count)
    assert reads(depends, before, replace(before, effort="low"))[1] == kept
    picture = ImageData(data=b"x", media_type="image/png", width=2, height=2, hash="sha256:x")
    seen = replace(before.messages[1], images=(picture,))
    after = replace(before, messages=(*before.messages, seen), total=before.total + 500, has_images=True)
    assert reads(depends, before, after)[1] == kept
    assert reads(OPEN, before, after)[1] > kept


@given(histories(times=st.none() | st.integers(0, 900)))
def test_only_unexpired_entries_are_read(requests: list[CacheRequest]) -> None:
    assert reads(CacheProfile(name="p", lifetime=300), *requests) == served(requests, 300)


def test_expired_newest_request_remains_reference_point() -> None:
    earlier = (request("alpha beta gamma"), request("alpha"), request("beta", after=0))
    found = reads(CacheProfile(name="p", lifetime=300), *earlier, request("alpha beta gamma beta", after=301))
    assert found == [0, 1, 0, 3]


@given(histories(times=st.none()))
def test_each_request_stores_divergence_from_newest(requests: list[CacheRequest]) -> None:
    cache = CacheSimulation()
    for one in requests:
        _, cache = cache.simulate_request(one, profile=OPEN, tokenizer=MEASURE)
        for earlier, fork in cache.requests[:-1]:
            same = (earlier.model, earlier.tools) == (one.model, one.tools)
            assert fork == (common_prefix_end(earlier.messages, one.messages) if same else NO_COMMON_PREFIX)
        assert cache.requests[-1] == (one, NO_COMMON_PREFIX)


def test_messages_of_equal_bytes_are_shared_regardless_of_pieces() -> None:
    said, told = (Message(role=Role.USER, pieces=pieces, tokens=4) for pieces in (("ab", "c\n"), ("a", "bc\n")))
    first, then, other = message("one"), message("two"), message("two", Role.ASSISTANT)
    assert count_common_message_tokens((first, said, then), (first, told, then), MEASURE) == sum(
        one.tokens + MEASURE.tokens_per_message for one in (first, said, then)
    )
    assert count_common_message_tokens((said, then), (told, other), MEASURE) == 4 + MEASURE.tokens_per_message
