"""Write blocks in an answer: each becomes a call of ``write_note``, and what became of it is told below the answer.

What is told is part of the answer, for people and for the model alike: the next turn shows what the user saw.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

from lamella.attach import Tool
from lamella.core.log.call import CacheUse
from lamella.core.log.ids import Voice
from lamella.core.messages.delta import Delta, Stop, StopReason, TextDelta, ToolCall, join_text
from lamella.core.messages.model import Role
from lamella.core.messages.request import Request
from lamella.core.text.write_blocks import find_write_blocks
from lamella.core.values import replace
from lamella.engine.sending.deltas import foresee, read_answer
from lamella.engine.sending.job import Job
from lamella.engine.sending.tools import Toolbox
from lamella.ports import ChatProvider
from lamella.runners.answering.directives import composes

_TOOL = "write_note"
_SAID = (Voice.USER.value, Voice.REPLY.value)
_MARKS = re.compile(r"[\W_]+")
_CUT = "Not written: the answer was cut short, and what it has of notes may not be all of it."
_QUOTED = "not written: what stands there was read, and is quoted."


def with_write_blocks(job: Job) -> Job:
    """The same job, whose answer may hold blocks that are written, where the message asks for that; else as it is."""
    typed = _find_typed(job) if job.asked is None else job.asked.text
    if not job.place.writes or "@" not in typed or not composes(typed):
        return job

    async def find_material() -> Sequence[str]:
        read = await job.post.workers.run(job.chat.originals)
        return [one.text for one in read if one.role not in _SAID]

    provider = WriteBlockProvider(
        job.post.provider, lambda: job.place.make_tools(job.chat), find_material=find_material
    )
    return replace(job, post=replace(job.post, provider=provider))


def _find_typed(job: Job) -> str:
    """What was typed in the turn that goes on."""
    return "" if job.turn is None else job.turn.envelope.prompt.user.message.text


class WriteBlockProvider:
    """Passes on what a model says as it comes. At the end of a whole answer its blocks are written, after a yes."""

    def __init__(
        self,
        inner: ChatProvider,
        make_tools: Callable[[], Sequence[Tool]],
        *,
        find_material: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        self._inner = inner
        self._make_tools = make_tools
        self._find_material = find_material

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer of the model, and what became of its blocks before it ends."""
        said: list[str] = []
        calls = False
        async with aclosing(read_answer(self._inner, request)) as coming:
            async for delta in coming:
                if isinstance(delta, Stop) and not calls:
                    for line in await self._write(join_text(said), delta.reason, request):
                        yield TextDelta(text=line)
                elif isinstance(delta, TextDelta):
                    said.append(delta.text)
                calls = calls or isinstance(delta, ToolCall)
                yield delta

    async def foresee(self, request: Request) -> CacheUse | None:
        """What the model's own cache would serve, if it knows that."""
        return await foresee(self._inner, request)

    async def close(self) -> None:
        await self._inner.close()

    async def _write(self, text: str, reason: StopReason, request: Request) -> list[str]:
        blocks = find_write_blocks(text)
        if not blocks:
            return []
        if reason not in (StopReason.END, StopReason.SEQUENCE):
            return [f"\n\n{_CUT}"]
        toolbox = Toolbox([tool for tool in self._make_tools() if tool.name == _TOOL])
        # What was read in an earlier turn may stand in no request any more, and the model may still have it from there.
        read = [*_list_given(request), *(_strip(text) for text in await self._find_material())]
        told = []
        for number, (path, content, whole) in enumerate(blocks, start=1):
            # Text that a note or a page brought along is nobody's wish to write, whoever repeats it.
            if any(_strip(whole) in text for text in read):
                told.append(f"\n\n{path}: {_QUOTED}")
                continue
            arguments = json.dumps({"path": path, "content": content}, ensure_ascii=False)
            call = ToolCall(id=f"block-{number}", name=_TOOL, arguments=arguments)
            (output,) = await toolbox.run([call], toolbox.definitions)
            told.append(f"\n\n{output.output}")
        return told


def _list_given(request: Request) -> list[str]:
    """What the model was given, as it is compared; what it said itself is its own."""
    return [_strip(message.text) for message in request.messages if message.role is not Role.ASSISTANT]


def _strip(text: str) -> str:
    """A text without blanks and marks, which are not compared: closing tags of material are broken by one."""
    return _MARKS.sub("", text)
