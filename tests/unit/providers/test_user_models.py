"""Profiles of the user's own: added, overridden, dated, and refused with the place of the mistake."""

from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import fields

from lamella.core.ledger.cache_profile import GENERIC_PROFILE, CacheProfile
from lamella.errors import SettingError
from lamella.profiles import ModelProfile, UsageFields, get_cache_profile
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.user_models import ModelFactsEntry, load_profiles, parse_profiles

OWN = """
[[model]]
match = "my-model"
as_of = 2026-11-16
window = 32000
granularity = 16
lifetime = 60
usage = { input = "prompt_tokens", output = "completion_tokens", includes_cached = true }

[[model]]
match = "claude-opus-5-5"
as_of = 2026-11-16
read = 0.04
minimum = 256
lifetimes = [{ name = "5m", seconds = 300, write = 1.3 }]

[[model]]
match = "house-claude"
like = "claude-opus-5-5"
as_of = 2026-11-16
diagnostics = false
"""


def test_unknown_model_has_facts_of_file() -> None:
    found = parse_profiles(OWN, name="own.toml").get_model_profile("local:My-Model-7b")
    assert (found.window, found.as_of) == (32_000, "2026-11-16")
    assert found.cache == CacheProfile(name="my-model", granularity=16, lifetime=60)
    assert found.usage == UsageFields(input="prompt_tokens", output="completion_tokens", includes_cached=True)


def test_omitted_facts_use_built_in_values() -> None:
    models = parse_profiles(OWN, name="own.toml")
    shipped, found = (
        BuiltInModelProfiles().get_model_profile("claude-opus-5-5"),
        models.get_model_profile("anthropic:claude-opus-5-5"),
    )
    assert (found.read, found.cache.minimum) == (Decimal("0.04"), 256)
    assert [lifetime.write for lifetime in found.lifetimes] == [Decimal("1.3")]
    assert (found.breakpoints, found.lookback, found.window) == (shipped.breakpoints, shipped.lookback, shipped.window)
    assert models.get_cache_profile("claude-opus-5-5") == get_cache_profile(found)


def test_entry_can_be_like_another_model() -> None:
    found = parse_profiles(OWN, name="own.toml").get_model_profile("house-claude-2")
    assert (found.provider, found.breakpoints, found.diagnostics) == ("anthropic", 4, False)


def test_models_not_in_file_are_unchanged() -> None:
    models = parse_profiles(OWN, name="own.toml")
    assert models.get_model_profile("gpt-6-sol") == BuiltInModelProfiles().get_model_profile("gpt-6-sol")
    assert models.get_cache_profile("unheard-of") == GENERIC_PROFILE
    assert models.get_cache_profile(None) == GENERIC_PROFILE


def test_every_fact_can_be_given_in_a_file() -> None:
    # What a cache costs follows from the other facts of its model.
    derived = {"name", "write", "marks", "longer"}
    cache = {field.name for field in fields(CacheProfile)} - derived
    facts = {field.name for field in fields(ModelProfile)} - {"cache"}
    assert set(ModelFactsEntry.model_fields) == cache | facts | {"match", "like"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[model]", "is not TOML"),
        ('[[model]]\nmatch = "x"', "model[0].as_of: Field required"),
        ('[[model]]\nmatch = "x"\nas_of = 2026-11-16\nwindw = 1', "model[0].windw"),
        ('[[model]]\nmatch = "x"\nas_of = 2026-11-16\nminimum = -1', "model[0].minimum"),
        ('[[model]]\nmatch = "x"\nas_of = 2026-11-16\nclock = "moon"', "model[0].clock"),
        ('[[model]]\nmatch = ""\nas_of = 2026-11-16', "model[0].match"),
        ('[[model]]\nmatch = "x"\nas_of = 2026-11-16\nwindow = true', "model[0].window: Input should be a number."),
        ('[[model]]\nmatch = "x"\nas_of = 2026-11-16\nread = false', "model[0].read: Input should be a number."),
        (
            '[[model]]\nmatch = "x"\nas_of = 2026-11-16\nwindow = 8000\nreserve = 9000',
            "own.toml: model[0]: A window of 8,000 tokens with a reserve of 9,000 leaves no room.",
        ),
        ("[models]", "models"),
    ],
)
def test_invalid_facts_are_reported_with_position(text: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_profiles(text, name="own.toml")
    assert words in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_facts_are_read_from_path(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN, encoding="utf-8")
    assert load_profiles(path).get_model_profile("my-model").window == 32_000
    with pytest.raises(SettingError, match="cannot be read"):
        load_profiles(tmp_path / "missing.toml")
    path.write_bytes(b"\xff")
    with pytest.raises(SettingError, match="cannot be read"):
        load_profiles(path)


def test_every_field_of_a_profile_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    assert [field for field in ModelFactsEntry.model_fields if f"| `{field}` |" not in text] == []
