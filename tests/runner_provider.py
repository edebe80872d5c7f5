"""A provider for tests of runners: it has scripted replies for the conversation and for auxiliary calls.

A plan, a question in other words, a summary: what a runner asks beside the conversation names none.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from lamella.providers import ModelRequest
from lamella.testing import ScriptedProvider, ScriptedReply

# What can be read as a plan without a step, and as a question.
NO_PLAN = "[]"


class Speaker:
    """Says one line after the other. ``requests`` are those of the conversation, ``asides`` all others.

    ``heard`` is everything, in the order in which it was asked.
    """

    def __init__(self, *lines: ScriptedReply | str, aside: ScriptedReply | str = NO_PLAN) -> None:
        self.lines = deque(lines)
        self.requests: list[ModelRequest] = []
        self.asides: list[ModelRequest] = []
        self.heard: list[ModelRequest] = []
        self._aside = aside

    async def stream(self, request: ModelRequest) -> AsyncIterator[object]:
        beside = request.conversation is None
        self.heard.append(request)
        (self.asides if beside else self.requests).append(request)
        said = ScriptedProvider(self._aside if beside else self.lines.popleft())
        async for delta in said.stream(request):
            yield delta
            await asyncio.sleep(0)

    async def close(self) -> None:
        """There is nothing to give back."""
