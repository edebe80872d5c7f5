"""What all wire formats share: names of models, text cut at seams, arguments as models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.material import SEARCH, ask, user

from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.body import cut, extras, read_arguments, schema
from lamella.core.messages.request import Request
from lamella.errors import CallError


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
def test_only_the_name_of_a_provider_is_taken_off_a_model(model: str, bare: str) -> None:
    assert bare_model(model) == bare


@given(st.text(alphabet="ab \n", max_size=12), st.lists(st.integers(-2, 14), max_size=5))
def test_cut_text_is_whole_and_no_part_is_only_white_space(text: str, seams: list[int]) -> None:
    parts = list(cut(text, seams))
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
def test_arguments_that_a_model_wrote_badly_are_handed_back_as_they_are(written: str, read: dict[str, object]) -> None:
    assert read_arguments(written) == read


@pytest.mark.parametrize(
    ("given", "words"), [("{", "not JSON"), ("[]", "not a JSON object"), ('{"model": 1}', "model")]
)
def test_extras_that_cannot_be_taken_are_refused(given: str, words: str) -> None:
    request = Request(model="m", messages=(user("Hi"),), extras=given)
    with pytest.raises(CallError, match=words):
        extras(request, {"model": "m"})


def test_extras_stand_beside_what_is_built() -> None:
    assert extras(ask(user("Hi"), model="m"), {}) == {}
    request = Request(model="m", messages=(), extras='{"temperature": 0}')
    assert extras(request, {"model": "m"}) == {"extra_body": {"temperature": 0}}


def test_the_schema_of_a_tool_is_its_parameters() -> None:
    assert schema(SEARCH)["required"] == ["q"]
