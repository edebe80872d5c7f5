"""Conversations of one store that begin with the same system prompt share a cache entry, and learn how long it pays."""

from datetime import UTC, datetime, timedelta

import pytest

import lamella
from lamella import Conversation, Engine, Turn

START = datetime(2026, 11, 1, tzinfo=UTC)
MODEL = "anthropic:claude-opus-5-5"
SYSTEM = "You answer questions about the harbour, its berths and its tides. " * 300


def ask(engine: Engine, name: str, seconds: float, *, system: str = SYSTEM, model: str = MODEL) -> Turn:
    chat: Conversation = engine.chat(name, system=system, model=model, layout="auto")
    return chat.ask("When is low tide?", at=START + timedelta(seconds=seconds))


def lifetimes(turn: Turn) -> list[str]:
    """The cache lifetimes that a request asks for, in order; the default one is ``5m``."""
    body = turn.request("anthropic")
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    return [block["cache_control"].get("ttl", "5m") for block in blocks if "cache_control" in block]


def test_new_prompt_is_cached_for_the_longer_lifetime_and_served_to_the_next_chat() -> None:
    with lamella.open("memory:") as engine:
        first = ask(engine, "one", 0)
        assert lifetimes(first) == ["1h", "5m"]
        assert first.cache is not None
        assert first.cache.read == 0
        later = ask(engine, "two", 1_200)
        assert later.cache is not None
        assert later.cache.read > 2_500
        other = ask(engine, "three", 1_300, system="You are terse. " + SYSTEM)
        assert other.cache is not None
        assert other.cache.read == 0


def test_prompt_that_is_used_rarely_gets_the_short_lifetime() -> None:
    with lamella.open("memory:") as engine:
        asked = [lifetimes(ask(engine, str(number), number * 7_200)) for number in range(3)]
    assert asked == [["1h", "5m"], ["5m", "5m"], ["5m", "5m"]]


def test_lifetime_that_was_chosen_is_sent_again_after_reopening(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        first = ask(engine, "one", 0)
        sent = first.request("anthropic")
        for number in range(5):
            ask(engine, f"rare {number}", 7_200 * (number + 1))
    with lamella.open(url) as engine:
        (again,) = engine.chat("one").replay()
        assert again.request("anthropic") == sent
        assert lifetimes(ask(engine, "last", 100_000)) == ["5m", "5m"]


@pytest.mark.parametrize("model", ["openai:gpt-5.6", "ollama:llama3"])
def test_nothing_is_learnt_from_models_with_one_lifetime(model: str) -> None:
    with lamella.open("memory:") as engine:
        turn = ask(engine, "one", 0, model=model)
        assert turn.envelope.prompt.layout_plan.long_lifetime_until is None


def test_short_prompt_is_not_marked() -> None:
    with lamella.open("memory:") as engine:
        assert "1h" not in lifetimes(ask(engine, "one", 0, system="You are terse."))


def test_preview_is_not_a_use() -> None:
    with lamella.open("memory:") as engine:
        chat = engine.chat("one", system=SYSTEM, model=MODEL, layout="auto")
        chat.preview("When is low tide?")
        turn = ask(engine, "two", 10)
        assert turn.cache is not None
        assert turn.cache.read == 0
