"""Cache profiles: dated facts by model."""

from datetime import date

import pytest

from lamella.providers.facts.others import FACTS_DATE
from lamella.providers.models import BuiltInCacheProfiles

PROFILES = BuiltInCacheProfiles()


@pytest.mark.parametrize(
    ("model", "minimum", "granularity", "lifetime", "writes"),
    [
        ("anthropic:claude-opus-5-5", 512, 1, 300, "billed"),
        ("claude-opus-4-5", 4_096, 1, 300, "billed"),
        ("claude-opus-4-7", 2_048, 1, 300, "billed"),
        ("anthropic:claude-sonnet-5", 1_024, 1, 300, "billed"),
        ("anthropic:claude-sonnet-5-5", 512, 1, 300, "billed"),
        ("openai:gpt-5", 1_024, 128, 600, "free"),
        ("openai:gpt-5.5", 1_024, 2_048, 1_800, "free"),
        ("openai:gpt-5.6", 1_024, 1, 1_800, "billed"),
        ("google:gemini-2.5-flash", 2_048, 1, None, "free"),
        ("google:gemini-3-pro", 4_096, 1, None, "free"),
        ("deepseek:deepseek-chat", 0, 1, None, "free"),
        ("local:unheard-of", 0, 1, None, "free"),
        (None, 0, 1, None, "free"),
    ],
)
def test_model_has_documented_cache_profile(
    model: str | None, minimum: int, granularity: int, lifetime: int | None, writes: str
) -> None:
    profile = PROFILES.get_cache_profile(model)
    assert (profile.minimum, profile.granularity, profile.lifetime) == (minimum, granularity, lifetime)
    assert profile.bills_writes is (writes == "billed")


def test_facts_have_a_date() -> None:
    assert date.fromisoformat(FACTS_DATE).isoformat() == FACTS_DATE


def test_names_are_matched_whatever_their_case() -> None:
    assert PROFILES.get_cache_profile("Anthropic:Claude-Opus-5-5") == PROFILES.get_cache_profile("claude-opus-5-5")
