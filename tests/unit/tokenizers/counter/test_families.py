"""Families of models: how each counts, and how sure that is."""

import pytest

from lamella.providers.models import BuiltInModelProfiles
from lamella.tokenizers.counter import FAMILIES, GENERIC_FAMILY, OfflineTokenCounter, get_tokenizer_family
from lamella.tokenizers.o200k import count_tokens


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
def test_model_family_follows_name_prefix(model: str | None, family: str) -> None:
    assert get_tokenizer_family(model).name == family


@pytest.mark.parametrize("family", [*FAMILIES, GENERIC_FAMILY], ids=lambda family: family.name)
def test_every_family_states_its_accuracy(family: object) -> None:
    error = getattr(family, "accuracy", "")
    assert "exact" in error or "estimate" in error


def test_only_openai_is_exact() -> None:
    assert [family.name for family in FAMILIES if family.accuracy.startswith("exact")] == ["openai"]


def test_openai_is_counted_exactly_and_others_are_scaled_up() -> None:
    counter = OfflineTokenCounter()
    text = "some words to be counted, and some more of them"
    exact = count_tokens(text)
    assert counter.get_tokenizer("openai:gpt-5").count(text) == exact
    assert counter.get_tokenizer("google:gemini-3").count(text) == -int(-exact * 1.09 // 1)
    assert counter.get_tokenizer("anthropic:claude-opus-5-5").count("") == 0


def test_tokenizer_is_made_once_per_family_and_image_rule() -> None:
    counter = OfflineTokenCounter(
        get_image_profile=lambda model: BuiltInModelProfiles().get_model_profile(model).pictures
    )
    assert counter.get_tokenizer("gpt-4.1") is counter.get_tokenizer("openai:gpt-4o")
    assert counter.get_tokenizer("gpt-5") != counter.get_tokenizer("gpt-4o")
    assert counter.get_tokenizer("gpt-5").name == "openai, gpt-5 pictures"
    assert OfflineTokenCounter().get_tokenizer("gpt-5").name == "openai"
