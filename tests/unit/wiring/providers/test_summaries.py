"""The summarizer from settings: how a model is named in its summaries, and the size of its input."""

from collections.abc import Sequence

import pytest

import lamella
from lamella import Conversation, Message
from lamella.core.compaction.rules import SummaryConfig
from lamella.errors import InvalidOperationError, LamellaError
from lamella.settings.rules import build_prompt_settings
from lamella.testing import ScriptedProvider
from lamella.wiring import open_adapters
from lamella.wiring.providers import format_summary_author, limit_summary_input
from lamella.wiring.services import read_services


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("local", "local, a small demo model that is often wrong"),
        ("anthropic:claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("gguf:/home/me/weights/large.gguf", "large.gguf"),
        ("openai-compatible:http://10.0.0.7:8080/v1#meta/llama", "llama"),
    ],
)
def test_summary_author_is_model_without_location(model: str, signed: str) -> None:
    assert format_summary_author(model) == signed


@pytest.mark.parametrize(
    ("given", "reads"),
    [
        ({"window": 8_192, "reserve": 0}, 6_692),
        ({"window": 2_000, "reserve": 0}, 500),
        ({"window": 200_000}, SummaryConfig().max_input_tokens),
        ({"window": 8_192, "reserve": 0, "summarizer": "off"}, SummaryConfig().max_input_tokens),
        ({"window": 200_000, "summarizer": "local"}, 6_692),
        (
            {"window": 8_192, "reserve": 0, "summarizer": "openai-compatible:http://10.0.0.7/v1#who"},
            SummaryConfig().max_input_tokens,
        ),
    ],
)
def test_summary_input_is_limited_by_window(given: dict[str, object], reads: int) -> None:
    services = read_services({**given, "compaction": {"runners": {"chat": {"words": ["roger"]}}}})
    settings = limit_summary_input(
        build_prompt_settings(services.settings, open_adapters(None)), services.settings, services
    )
    assert settings.compaction_config.summary.max_input_tokens == reads
    assert settings.runner_configs["chat"].summary.max_input_tokens == reads


class Saying:
    def __init__(self) -> None:
        self.asked = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked += 1
        return "They talked."


def test_given_summarizer_object_wins_over_setting() -> None:
    saying = Saying()
    provider = ScriptedProvider()
    engine = lamella.open("memory:", model="anthropic:claude-opus-5-5", provider=provider, summarizer=saying)
    steps = {"steps": ["summary", "expendable"], "summary": {"whole_turns": True}}
    conversation = engine.chat("garden", window=3_000, reserve=0, compaction=steps)
    for number in range(14):
        conversation.ask(f"Question {number}? " + "because of that " * 80)
        conversation.reply("It is so.")
    assert saying.asked > 0
    assert (provider.requests, [call for calls in conversation.ledger() for call in calls]) == ([], [])


def test_memory_conversation_calls_no_summarizer_model() -> None:
    for word in ("same", "off"):
        assert Conversation(summarizer=word).plan().receipt is None
    with pytest.raises(InvalidOperationError, match="asks no model, local neither"):
        Conversation(summarizer="local")


def test_blank_summarizer_is_refused_with_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_SUMMARIZER", " ")
    with pytest.raises(LamellaError, match="LAMELLA_SUMMARIZER: summarizer is blank"):
        lamella.open("memory:").chat("garden")
