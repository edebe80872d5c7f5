"""The verdict on a call: a cache that serves whole blocks may be a block short, and no more."""

import pytest
from tests.conftest import Watched

from lamella.core.log.call import Outcome

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


@pytest.mark.parametrize(("short_by", "outcome"), [(0, Outcome.HIT), (1, Outcome.HIT), (2, Outcome.EVICTED)])
def test_a_cache_that_serves_one_block_less_than_expected_hit_and_two_less_did_not(
    converse: type[Watched], short_by: int, outcome: Outcome
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
