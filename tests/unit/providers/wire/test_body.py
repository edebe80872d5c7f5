"""Shared parts of the wire formats: model names, text cut at boundaries, and arguments as models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.material import SEARCH, ask, user

from lamella.core.messages import ModelRequest
from lamella.errors import InvalidOperationError
from lamella.providers.registry import strip_provider
from lamella.providers.wire import build_extra_body, parse_arguments, split_at, tool_schema


@pytest.mark.parametrize(
    ("model", "bare"),
    [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("anthropic:claude-opus-5-5", "claude-opus-5-5"),
        ("OpenAI:gpt-6-sol", "gpt-6-sol"),
        ("qwen3:8b", "qwen3:8b"),
        ("ollama:qwen3:8b", "qwen3:8b"),
        ("ft:gpt-4o:house::1", "ft:gpt-4o:house::1"),
        ("local:", "local:"),
    ],
)
def test_only_provider_name_is_stripped_from_model(model: str, bare: str) -> None:
    assert strip_provider(model) == bare


@given(st.text(alphabet="ab \n", max_size=12), st.lists(st.integers(-2, 14), max_size=5))
def test_cut_text_is_whole_and_no_part_is_only_white_space(text: str, seams: list[int]) -> None:
    parts = list(split_at(text, seams))
    assert "".join(part for _, part in parts) == (text if text.strip() else "")
    assert all(part.strip() for _, part in parts)
    assert all(text[:end] == "".join(part for at, part in parts if at <= end) for end, _ in parts)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"q": 1}', {"q": 1}),
        ("", {}),
        ("  ", {}),
        ("[1]", {"value": [1]}),
        ('{"q": ', {"unreadable": '{"q": '}),
    ],
)
def test_malformed_arguments_are_returned_as_text(written: str, read: dict[str, object]) -> None:
    assert parse_arguments(written) == read


@pytest.mark.parametrize(
    ("given", "words"), [("{", "not JSON"), ("[]", "not a JSON object"), ('{"model": 1}', "model")]
)
def test_invalid_extra_fields_are_refused(given: str, words: str) -> None:
    request = ModelRequest(model="m", messages=(user("Hi"),), extra_fields_json=given)
    with pytest.raises(InvalidOperationError, match=words):
        build_extra_body(request, {"model": "m"})


def test_extra_fields_are_added_to_body() -> None:
    assert build_extra_body(ask(user("Hi"), model="m"), {}) == {}
    request = ModelRequest(model="m", messages=(), extra_fields_json='{"temperature": 0}')
    assert build_extra_body(request, {"model": "m"}) == {"extra_body": {"temperature": 0}}


def test_tool_schema_is_its_parameters() -> None:
    assert tool_schema(SEARCH)["required"] == ["q"]
