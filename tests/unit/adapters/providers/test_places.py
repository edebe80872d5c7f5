"""Places: a model's name says whether it runs in this process, and which key goes to a server it names."""

import pytest

from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.places import DEMO_MODEL, find_server_key, find_window, runs_here


@pytest.mark.parametrize("model", [DEMO_MODEL, "gguf:/models/small.gguf", "GGUF:small.gguf"])
def test_models_in_this_process_are_here_and_take_what_their_engine_takes(model: str) -> None:
    assert runs_here(model)
    assert find_window(model, BuiltInModels()) == 8_192


@pytest.mark.parametrize("model", ["localhost", "anthropic:claude-opus-5-5", "openai-compatible:http://h/v1#local"])
def test_other_models_are_elsewhere(model: str) -> None:
    assert not runs_here(model)


def test_a_window_is_that_of_the_book_and_unknown_where_it_has_none() -> None:
    assert find_window("claude-opus-5-5", BuiltInModels()) == 1_000_000
    assert find_window("house-1", BuiltInModels()) is None


def test_only_a_name_with_an_address_sends_the_general_key() -> None:
    assert find_server_key("OpenAI-compatible:http://h/v1#m") == "LAMELLA_API_KEY"
    assert find_server_key("openai:gpt-6") is None
    assert find_server_key(DEMO_MODEL) is None
