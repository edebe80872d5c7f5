"""The provider registry: one complete row per provider, without overlaps."""

from itertools import chain

import pytest

from lamella.providers.entry import ProviderEntry, find_api_key
from lamella.providers.registry import (
    KEY_VARIABLES,
    MODEL_SYNTAXES,
    PROVIDERS,
    find_provider_entry,
    is_local_model,
    server_key_variable,
    strip_provider,
)
from lamella.providers.sdk_objects import WIRE_FORMATS


def test_every_name_belongs_to_one_row() -> None:
    names = list(chain.from_iterable(row.names for row in PROVIDERS))
    assert len(names) == len(set(names))
    assert all(find_provider_entry(name.upper()) is row for row in PROVIDERS for name in row.names)
    assert find_provider_entry("nobody") is None


def test_model_syntax_starts_with_provider_name() -> None:
    assert [
        row.model_syntax
        for row in PROVIDERS
        if row.model_syntax and row.model_syntax.partition(":")[0] not in row.names
    ] == []
    assert MODEL_SYNTAXES.split(", ")[:3] == ["local", "gguf:PATH", "anthropic:NAME"]


def test_model_maker_is_found_by_name_in_facts() -> None:
    makers = {profile.provider for row in PROVIDERS for _, profile in row.model_profiles}
    assert sorted(maker for maker in makers if find_provider_entry(maker) is None) == []
    assert all(find_provider_entry(profile.provider) is row for row in PROVIDERS for _, profile in row.model_profiles)


def test_model_prefix_belongs_to_one_row() -> None:
    for one in PROVIDERS:
        for other in (row for row in PROVIDERS if row is not one):
            starts = [start for start, _ in (*other.model_profiles, *other.cache_profiles)]
            assert not [
                start for start, _ in (*one.model_profiles, *one.cache_profiles) if start.startswith(tuple(starts))
            ]


def test_wire_formats_follow_registry_order() -> None:
    assert [dialect.name for dialect in WIRE_FORMATS] == ["anthropic", "openai", "openai-responses", "gemini"]
    assert KEY_VARIABLES == (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "LAMELLA_API_KEY",
    )


@pytest.mark.parametrize(
    ("form", "rest", "takes", "bare"),
    [
        ("house:NAME", "m:1", True, "m:1"),
        ("house:NAME", "", True, None),
        ("house:PATH", "m.gguf", True, None),
        ("house:PATH", "", False, None),
        ("house:URL#NAME", "http://h#m", True, "m"),
        ("house:URL#NAME", "http://h", True, None),
        ("house", "", True, None),
        ("house", "m", False, "m"),
        ("", "m", True, "m"),
    ],
)
def test_model_name_after_colon_follows_syntax(form: str, rest: str, takes: bool, bare: str | None) -> None:  # noqa: FBT001
    row = ProviderEntry(names=("house",), model_syntax=form)
    assert (row.accepts_model_name(rest), row.find_model_name(rest)) == (takes, bare)


def test_location_is_kept_in_model_name() -> None:
    assert [strip_provider(model) for model in ("gguf:/m.gguf", "scripted:a.json", "local")] == [
        "gguf:/m.gguf",
        "scripted:a.json",
        "local",
    ]


def test_first_set_variable_is_api_key() -> None:
    row = ProviderEntry(names=("house",), key_variables=("FIRST", "SECOND"))
    assert find_api_key(row, {"FIRST": "", "SECOND": "two"}) == ("SECOND", "two")
    assert find_api_key(row, {"FIRST": "one", "SECOND": "two"}) == ("FIRST", "one")
    assert find_api_key(row, {}) is None


def test_local_models_are_distinguished() -> None:
    there = ("local:big", "gguf:", "anthropic:claude-opus-5-5", "claude-opus-5-5", "")
    assert [model for model in ("local", "gguf:/m.gguf", *there) if is_local_model(model)] == ["local", "gguf:/m.gguf"]


def test_only_model_with_server_address_has_server_key() -> None:
    assert server_key_variable("OpenAI-compatible:http://h/v1#m") == "LAMELLA_API_KEY"
    assert [server_key_variable(model) for model in ("openai:gpt-6", "local", "gpt-6", "")] == [None] * 4
