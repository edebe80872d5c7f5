"""Servers on this machine: each is found at the port that it uses by default, without a key."""

import pytest

from lamella.errors import SettingError
from lamella.providers.open_provider import open_provider
from lamella.providers.openai_chat import OpenAIChatProvider
from lamella.providers.registry import strip_provider


@pytest.mark.parametrize(
    ("model", "name", "address"),
    [
        ("ollama:qwen3:8b", "qwen3:8b", "http://localhost:11434/v1"),
        ("lmstudio:qwen3", "qwen3", "http://localhost:1234/v1"),
        ("llamacpp:qwen3", "qwen3", "http://localhost:8080/v1"),
        ("llama_cpp:qwen3", "qwen3", "http://localhost:8080/v1"),
        ("vllm:Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "http://localhost:8000/v1"),
        ("sglang:qwen3", "qwen3", "http://localhost:30000/v1"),
    ],
)
def test_local_server_is_asked_at_its_default_address(model: str, name: str, address: str) -> None:
    provider = open_provider(model, keys={"LAMELLA_API_KEY": "sk-of-another-server"})
    assert isinstance(provider, OpenAIChatProvider)
    assert vars(provider)["_address"] == address
    assert strip_provider(model) == name


def test_local_server_needs_the_name_of_a_model() -> None:
    with pytest.raises(SettingError, match="names no model"):
        open_provider("ollama:", keys={})
