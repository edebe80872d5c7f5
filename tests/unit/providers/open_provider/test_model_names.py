"""Model names: whether a model runs in this process, and which key goes to a server it names."""

from pathlib import Path

import pytest

from lamella.errors import LamellaError
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.open_provider import (
    DEMO_MODEL,
    get_context_window,
    is_local_model,
    model_trust_key,
    provider_trust_key,
    server_key_variable,
)


@pytest.mark.parametrize("model", [DEMO_MODEL, "gguf:/models/small.gguf", "GGUF:small.gguf"])
def test_local_models_are_recognized_with_engine_window(model: str) -> None:
    assert is_local_model(model)
    assert get_context_window(model, BuiltInModelProfiles()) == 8_192


@pytest.mark.parametrize("model", ["localhost", "anthropic:claude-opus-5-5", "openai-compatible:http://h/v1#local"])
def test_other_models_are_not_local(model: str) -> None:
    assert not is_local_model(model)


def test_context_window_is_from_registry_or_unknown() -> None:
    assert get_context_window("claude-opus-5-5", BuiltInModelProfiles()) == 1_000_000
    assert get_context_window("house-1", BuiltInModelProfiles()) is None


def test_only_a_name_with_an_address_sends_the_general_key() -> None:
    assert server_key_variable("OpenAI-compatible:http://h/v1#m") == "LAMELLA_API_KEY"
    assert server_key_variable("openai:gpt-6") is None
    assert server_key_variable(DEMO_MODEL) is None


NAMED = {
    "OPENAI-Compatible:HTTP://Good.COM/v1/#m": "openai-compatible:http://good.com/v1",
    "openai-compatible:http://good.com/v1#another": "openai-compatible:http://good.com/v1",
    "openai-compatible:http://good.com./v1#m": "openai-compatible:http://good.com./v1",
    "openai-compatible:http://good.com:8000/v1#m": "openai-compatible:http://good.com:8000/v1",
    "openai-compatible:https://good.com/v1#m": "openai-compatible:https://good.com/v1",
    "openai:http://evil.com/v1#m": "openai:http://evil.com/v1#m",
    "Anthropic:claude-opus-5-5": "anthropic:claude-opus-5-5",
    "claude-opus-5-5": "anthropic:claude-opus-5-5",
    "scripted:/a/../b.json": "scripted:/b.json",
    "local": None,
}


@pytest.mark.parametrize(("model", "place"), NAMED.items())
def test_one_location_has_one_trust_key(model: str, place: str | None) -> None:
    assert model_trust_key(model, BuiltInModelProfiles()) == place


def test_weights_file_trust_key_resolves_links(tmp_path: Path) -> None:
    (tmp_path / "link.gguf").symlink_to(tmp_path / "weights.gguf")
    assert (
        model_trust_key(f"GGUF:{tmp_path}/link.gguf", BuiltInModelProfiles())
        == f"gguf:{tmp_path.resolve()}/weights.gguf"
    )


@pytest.mark.parametrize(
    "host", ["go\tod.com", "\u0430pi.openai.com", "good.com\u200b", "good.com/\x1b[2J", "good .com"]
)
def test_address_that_misleads_about_its_server_is_refused(host: str) -> None:
    with pytest.raises(LamellaError) as caught:
        model_trust_key(f"openai-compatible:http://{host}/v1#m", BuiltInModelProfiles())
    assert caught.value.code == "bad_address"
    assert caught.value.message.isascii()


def test_only_named_providers_are_trusted_as_a_whole() -> None:
    assert provider_trust_key("Anthropic") == "anthropic"
    assert [provider_trust_key(name) for name in ("openai-compatible", "gguf", "scripted", "local", "nobody")] == [
        None
    ] * 5
