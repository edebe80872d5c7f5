"""Who writes summaries, as settings say: how a model is named in what it wrote, and how much it is given to read."""

from collections.abc import Sequence

import pytest

import lamella
from lamella import Conversation, Message
from lamella.core.compaction.rules import SummaryRules
from lamella.errors import CallError, LamellaError
from lamella.settings.meaning import make_rules
from lamella.testing import ScriptedProvider
from lamella.wiring import open_world
from lamella.wiring.services import read_services
from lamella.wiring.summaries import fit_reading, sign_summary


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("local", "local, a small demo model that is often wrong"),
        ("anthropic:claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("gguf:/home/me/weights/large.gguf", "large.gguf"),
        ("openai-compatible:http://10.0.0.7:8080/v1#meta/llama", "llama"),
    ],
)
def test_a_summary_names_its_model_and_no_place(model: str, signed: str) -> None:
    assert sign_summary(model) == signed


@pytest.mark.parametrize(
    ("given", "reads"),
    [
        ({"window": 8_192, "reserve": 0}, 6_692),
        ({"window": 2_000, "reserve": 0}, 500),
        ({"window": 200_000}, SummaryRules().reads),
        ({"window": 8_192, "reserve": 0, "summarizer": "off"}, SummaryRules().reads),
        ({"window": 200_000, "summarizer": "local"}, 6_692),
        (
            {"window": 8_192, "reserve": 0, "summarizer": "openai-compatible:http://10.0.0.7/v1#who"},
            SummaryRules().reads,
        ),
    ],
)
def test_nobody_is_given_more_to_read_than_its_window_has(given: dict[str, object], reads: int) -> None:
    services = read_services({**given, "compaction": {"runners": {"chat": {"words": ["roger"]}}}})
    rules = fit_reading(make_rules(services.settings, open_world(None)), services.settings, services)
    assert rules.chain.summary.reads == reads
    assert rules.chains["chat"].summary.reads == reads


class Saying:
    def __init__(self) -> None:
        self.asked = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked += 1
        return "They talked."


def test_an_object_that_a_program_gives_comes_before_the_setting() -> None:
    saying = Saying()
    provider = ScriptedProvider()
    engine = lamella.open("memory:", model="anthropic:claude-opus-5-5", provider=provider, summarizer=saying)
    steps = {"steps": ["summary", "expendable"], "summary": {"whole_turns": True}}
    chat = engine.chat("garden", window=3_000, reserve=0, compaction=steps)
    for number in range(14):
        chat.ask(f"Question {number}? " + "because of that " * 80)
        chat.reply("It is so.")
    assert saying.asked > 0
    assert (provider.requests, [call for calls in chat.ledger() for call in calls]) == ([], [])


def test_in_memory_no_model_is_asked_whatever_is_named() -> None:
    for word in ("same", "off"):
        assert Conversation(summarizer=word).plan().receipt is None
    with pytest.raises(CallError, match="asks no model, local neither"):
        Conversation(summarizer="local")


def test_a_blank_one_is_refused_with_where_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_SUMMARIZER", " ")
    with pytest.raises(LamellaError, match="LAMELLA_SUMMARIZER: summarizer is blank"):
        lamella.open("memory:").chat("garden")
