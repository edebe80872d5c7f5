"""The provider pool: the default length of an answer."""

import asyncio

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella.conversation.turn_runner import DEFAULT_ANSWER_TOKENS
from lamella.wiring.providers import open_pool


@pytest.mark.parametrize(
    ("model", "given", "asked"), [("local", None, 256), ("local", 9, 9), ("scripted:x", None, DEFAULT_ANSWER_TOKENS)]
)
def test_demo_model_answer_is_short_by_default(model: str, given: int | None, asked: int) -> None:
    assert open_pool().default_answer_tokens == {"local": 256}
    speaker = Speaker("Yes.")

    async def ask() -> None:
        async with lamella.open("memory:", model=model, provider=speaker) as engine:  # type: ignore[arg-type]
            async for _ in engine.chat("x").send("Hello?", max_tokens=given):
                pass

    asyncio.run(ask())
    assert speaker.requests[0].max_output_tokens == asked
