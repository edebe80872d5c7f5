"""The verdict on a call: a cache that serves whole blocks may be a block short, and no more."""

import pytest
from tests.conftest import Watched

import lamella
from lamella.core.log.call import CacheOutcome

BLOCK = 2_048


def answer(text: str, *, prompt: int, cached: int) -> dict[str, object]:
    """What OpenAI's SDK gives."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": 3,
            "total_tokens": prompt + 3,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


@pytest.mark.parametrize(
    ("short_by", "outcome"), [(0, CacheOutcome.HIT), (1, CacheOutcome.HIT), (2, CacheOutcome.EVICTED)]
)
def test_read_one_block_short_is_hit_and_two_blocks_is_miss(
    converse: type[Watched], short_by: int, outcome: CacheOutcome
) -> None:
    chat = converse(model="openai:gpt-5.5", layout="in_place")
    first = chat.ask("word " * 4 * BLOCK)
    chat.reply(answer("Yes.", prompt=first.tokens.total, cached=0))
    second = chat.ask("And now?")
    assert second.cache is not None
    assert second.cache.read == 4 * BLOCK
    chat.reply(answer("Yes.", prompt=second.tokens.total, cached=(4 - short_by) * BLOCK))
    assert second.ledger.verdict is not None
    assert second.ledger.verdict.outcome is outcome


EFFORTS = [
    ("openai:gpt-5.5", 0, "cold", "nothing of it was cached, as expected: effort changed"),
    ("anthropic:claude-sonnet-5", 0, "cold", "nothing of it was cached, as expected: effort changed"),
    ("gemini:gemini-3.8-flash", 8_192, "evicted", "the provider dropped its cache entry"),
]


@pytest.mark.parametrize(("model", "least", "outcome", "says"), EFFORTS)
def test_effort_change_is_predicted_miss_where_cache_depends_on_it(
    model: str, least: int, outcome: str, says: str
) -> None:
    with lamella.open("memory:") as engine:
        conversation = engine.chat("demo", model=model, layout="in_place")
        first = conversation.ask("word " * 4 * BLOCK)
        conversation.reply(answer("Yes.", prompt=first.tokens.total, cached=0))
        conversation.set(reasoning_effort="high")
        second = conversation.ask("And now?")
        assert second.cache is not None
        assert (second.cache.read >= least, second.cache.read > 0) == (True, least > 0)
        assert second.prefix_change.cause == "none"
        conversation.reply(answer("Yes.", prompt=second.tokens.total, cached=0))
        verdict = second.ledger.verdict
        assert verdict is not None
        assert (verdict.outcome, str(verdict), verdict.is_caused_by_lamella) == (outcome, says, False)
        third = conversation.ask("And the same way?")
        assert third.cache is not None
        assert third.cache.read > 4 * BLOCK - 1, "what was asked so before is there"
        assert third.prefix_change.segment is None
