"""Facts about models: dated, from special to general, and unknown where undocumented."""

from decimal import Decimal

import pytest

from lamella.profiles import LifetimeStart, ModelProfile, choose_lifetime, get_cache_profile
from lamella.providers.facts.others import FACTS_DATE
from lamella.providers.models import MODEL_PROFILES as FACTS
from lamella.providers.models import BuiltInCacheProfiles, BuiltInModelProfiles

MODELS = BuiltInModelProfiles()


@pytest.mark.parametrize(
    ("model", "read", "window", "breakpoints", "lookback"),
    [
        ("anthropic:claude-opus-5-5", "0.05", 1_000_000, 4, 20),
        ("claude-fable-5-1", "0.025", 1_000_000, 4, 20),
        ("claude-haiku-4-5", "0.1", None, 4, 20),
        ("openai:gpt-6.1-sol", "0.05", 1_050_000, 4, 1),
        ("gpt-5.6-sol", "0.1", 1_050_000, 4, 1),
        ("gpt-5.5", "0.1", 1_050_000, 0, None),
        ("gpt-4o", "0.5", None, 0, None),
        ("google:gemini-4-argon", "0.05", 1_000_000, 0, None),
        ("local:unheard-of", None, None, 0, None),
    ],
)
def test_model_has_documented_facts(
    model: str, read: str | None, window: int | None, breakpoints: int, lookback: int | None
) -> None:
    found = MODELS.get_model_profile(model)
    assert (found.read, found.window) == (None if read is None else Decimal(read), window)
    assert (found.breakpoints, found.lookback) == (breakpoints, lookback)


def test_model_cache_equals_profile() -> None:
    assert MODELS.get_model_profile("claude-sonnet-5").cache == BuiltInCacheProfiles().get_cache_profile(
        "claude-sonnet-5"
    )


def test_claude_lifetime_starts_at_request_and_usage_excludes_cached() -> None:
    claude, gpt = MODELS.get_model_profile("claude-opus-5-5"), MODELS.get_model_profile("gpt-6-sol")
    assert (claude.clock, gpt.clock) == (LifetimeStart.REQUEST_START, LifetimeStart.LAST_USE)
    assert claude.usage is not None
    assert gpt.usage is not None
    assert (claude.usage.includes_cached, gpt.usage.includes_cached) == (False, True)


def test_own_caches_are_offered_up_to_gemini_3_only() -> None:
    offered = {
        name: MODELS.get_model_profile(name).cached_content
        for name in ("gemini-2.5-pro", "gemini-3.8-flash", "gemini-4-argon")
    }
    assert offered == {"gemini-2.5-pro": True, "gemini-3.8-flash": True, "gemini-4-argon": False}


def test_no_model_row_is_hidden_by_a_more_general_one() -> None:
    starts = [start for start, _ in FACTS]
    assert [late for at, late in enumerate(starts) if any(late.startswith(early) for early in starts[:at])] == []


def test_all_facts_have_their_date() -> None:
    assert {profile.as_of for _, profile in FACTS} == {FACTS_DATE}


def test_lifetime_with_unknown_price_is_not_chosen() -> None:
    lifetimes = MODELS.get_model_profile("gpt-6-sol").lifetimes
    chosen = choose_lifetime(None, lifetimes)
    assert chosen is not None
    assert chosen.name == "30m"
    assert choose_lifetime(None, ()) is None


@pytest.mark.parametrize(
    ("model", "read", "write"),
    [
        ("local", 0.0, 1.0),
        ("gguf:/weights/any.gguf", 0.0, 1.0),
        ("local:unheard-of", 0.1, 1.0),
        ("unheard-of", 0.1, 1.0),
        (None, 0.1, 1.0),
        ("claude-haiku-4-5", 0.1, 1.25),
        ("gpt-4o", 0.5, 1.0),
    ],
)
def test_plans_use_documented_or_default_price_factors(model: str | None, read: float, write: float) -> None:
    profile = MODELS.get_cache_profile(model)
    assert (profile.read, profile.write) == (read, write)


def test_profile_without_cache_has_full_price() -> None:
    none = get_cache_profile(ModelProfile(read=Decimal("0.1"), implicit=False))
    assert (none.read, none.write) == (1.0, 1.0)
    marked = get_cache_profile(ModelProfile(read=Decimal("0.1"), implicit=False, breakpoints=4))
    assert (marked.read, marked.write) == (0.1, 1.0)
