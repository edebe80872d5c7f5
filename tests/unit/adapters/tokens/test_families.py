"""Families of models: how each counts, and how sure that is."""

import pytest

from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.adapters.tokens.families import FAMILIES, GENERIC, find_family
from lamella.adapters.tokens.o200k import count


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai:gpt-5", "openai"),
        ("gpt-4o", "openai"),
        ("o3-mini", "openai"),
        ("anthropic:claude-opus-5-5", "anthropic"),
        ("claude-3-5-haiku", "anthropic"),
        ("google:gemini-2.5-pro", "google"),
        ("Gemini-3", "google"),
        ("deepseek:deepseek-chat", "deepseek"),
        ("mistral:mistral-large", "mistral"),
        ("groq:llama-3-70b", "llama"),
        ("alibaba:qwen3", "qwen"),
        ("local", "local"),
        ("gguf:/models/some.gguf", "local"),
        ("ollama:phi4", "generic"),
        (None, "generic"),
        ("", "generic"),
    ],
)
def test_a_model_belongs_to_the_family_its_name_begins_with(model: str | None, family: str) -> None:
    assert find_family(model).name == family


@pytest.mark.parametrize("family", [*FAMILIES, GENERIC], ids=lambda family: family.name)
def test_every_family_says_how_sure_its_counts_are(family: object) -> None:
    error = getattr(family, "error", "")
    assert "exact" in error or "estimate" in error


def test_only_openai_is_exact() -> None:
    assert [family.name for family in FAMILIES if family.error.startswith("exact")] == ["openai"]


def test_openai_counts_exactly_and_others_scale_and_round_up() -> None:
    counter = OfflineCounter()
    text = "some words to be counted, and some more of them"
    exact = count(text)
    assert counter.measure("openai:gpt-5").count(text) == exact
    assert counter.measure("google:gemini-3").count(text) == -int(-exact * 1.09 // 1)
    assert counter.measure("anthropic:claude-opus-5-5").count("") == 0


def test_a_measure_is_made_once_per_family_and_way_of_counting_pictures() -> None:
    counter = OfflineCounter(pictures=lambda model: BuiltInModels().model(model).pictures)
    assert counter.measure("gpt-4.1") is counter.measure("openai:gpt-4o")
    assert counter.measure("gpt-5") != counter.measure("gpt-4o")
    assert counter.measure("gpt-5").name == "openai, gpt-5 pictures"
    assert OfflineCounter().measure("gpt-5").name == "openai"
