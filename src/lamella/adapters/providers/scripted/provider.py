"""A provider that answers from a script: for tests, examples and trying things out. No key, no network."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from lamella.core.messages.delta import (
    Delta,
    Diagnosis,
    NativeReply,
    ReasoningDelta,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
)
from lamella.core.messages.request import Request
from lamella.core.messages.usage import Usage
from lamella.errors import CallError, LamellaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One answer. The text comes in chunks of ``chunk`` characters, each after ``delay`` seconds.

    An ``error`` is raised once the text is said, in place of the end. ``stop`` follows from the calls if not given.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop: StopReason | None = None
    diagnosis: Diagnosis | None = None
    carried: NativeReply | None = None
    chunk: int | None = None
    delay: float = 0.0
    error: LamellaError | None = None


class ScriptedProvider:
    """Answers with one line after the other, in order; a plain text is a line. ``requests`` is what it was asked."""

    def __init__(self, *lines: Line | str) -> None:
        self._lines = deque(line if isinstance(line, Line) else Line(text=line) for line in lines)
        self._length = len(self._lines)
        self.requests: list[Request] = []
        self.cancelled = 0

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        self.requests.append(request)
        if not self._lines:
            said = "1 line" if self._length == 1 else f"{self._length} lines"
            raise CallError(f"The script has {said}, and all are said.", hint="Give the provider more lines.")
        line = self._lines.popleft()
        try:
            for delta in _speak(line, number=len(self.requests)):
                if line.delay and isinstance(delta, TextDelta | ReasoningDelta):
                    await asyncio.sleep(line.delay)
                yield delta
        except (GeneratorExit, asyncio.CancelledError):
            self.cancelled += 1
            raise
        if line.error is not None:
            raise line.error

    async def close(self) -> None:
        """There is nothing to give back."""


def _speak(line: Line, *, number: int) -> list[Delta]:
    said: list[Delta] = [ReasoningDelta(text=chunk) for chunk in _chunks(line.reasoning, line.chunk)]
    said += [TextDelta(text=chunk) for chunk in _chunks(line.text, line.chunk)]
    if line.error is not None:
        return said
    said += line.calls
    said += [line.usage] if line.usage is not None else []
    reason = line.stop or (StopReason.TOOLS if line.calls else StopReason.END)
    return [*said, Stop(reason=reason, id=f"scripted-{number}", diagnosis=line.diagnosis, carried=line.carried)]


def _chunks(text: str, size: int | None) -> list[str]:
    step = size or max(len(text), 1)
    return [text[start : start + step] for start in range(0, len(text), step)]
