"""A provider that answers from a script, for tests, examples and experiments.

``ScriptedProvider`` answers each request with the next ``ScriptedReply``; it needs no key and no network.
``script_file`` reads the replies from a file.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from lamella.core.messages import (
    CacheDiagnosis,
    Delta,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from lamella.errors import InvalidOperationError, LamellaError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """One prepared reply. Its text arrives in chunks of ``chunk_size`` characters, each after ``delay`` seconds.

    An ``error`` is raised after the text, instead of the stop. A missing ``stop_reason`` is derived from the tool
    calls.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    diagnosis: CacheDiagnosis | None = None
    provider_reply: ProviderReply | None = None
    chunk_size: int | None = None
    delay: float = 0.0
    error: LamellaError | None = None


class ScriptedProvider:
    """Answers each request with the next reply of a script. A plain string is a reply too.

    ``requests`` has the requests received so far. ``cancelled`` counts the streams that were closed before their end.
    """

    def __init__(self, *replies: ScriptedReply | str) -> None:
        self._replies = deque(line if isinstance(line, ScriptedReply) else ScriptedReply(text=line) for line in replies)
        self._reply_count = len(self._replies)
        self.requests: list[ModelRequest] = []
        self.cancelled = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.requests.append(request)
        if not self._replies:
            line_count = "1 line" if self._reply_count == 1 else f"{self._reply_count} lines"
            raise InvalidOperationError(
                f"The script has {line_count}, and all of them were used.", hint="Give the provider more lines."
            )
        line = self._replies.popleft()
        try:
            for delta in _reply_to_deltas(line, number=len(self.requests)):
                if line.delay and isinstance(delta, TextDelta | ReasoningDelta):
                    await asyncio.sleep(line.delay)
                yield delta
        except (GeneratorExit, asyncio.CancelledError):
            self.cancelled += 1
            raise
        if line.error is not None:
            raise line.error

    async def close(self) -> None:
        """Do nothing: the provider has no resources."""


def _reply_to_deltas(reply: ScriptedReply, *, number: int) -> list[Delta]:
    deltas: list[Delta] = [ReasoningDelta(text=chunk) for chunk in _split_chunks(reply.reasoning, reply.chunk_size)]
    deltas += [TextDelta(text=chunk) for chunk in _split_chunks(reply.text, reply.chunk_size)]
    if reply.error is not None:
        return deltas
    deltas += reply.calls
    deltas += [reply.usage] if reply.usage is not None else []
    reason = reply.stop_reason or (StopReason.TOOL_CALLS if reply.calls else StopReason.END)
    return [
        *deltas,
        StopDelta(
            reason=reason, id=f"scripted-{number}", diagnosis=reply.diagnosis, provider_reply=reply.provider_reply
        ),
    ]


def _split_chunks(text: str, size: int | None) -> list[str]:
    step = size or max(len(text), 1)
    return [text[start : start + step] for start in range(0, len(text), step)]
