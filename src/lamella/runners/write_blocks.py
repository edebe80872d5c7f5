"""Write blocks in an answer: each becomes a call of ``write_note``, and its outcome is appended to the answer.

The outcome is part of the answer, so that the user and the model (in the next turn) read the same text.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

from lamella.attach import Tool
from lamella.conversation.runner_context import RunRequest
from lamella.conversation.stream import predict_cache_usage, stream_checked_deltas
from lamella.conversation.tool_executor import LocalToolset
from lamella.core.log.call import CacheUsage
from lamella.core.log.turn import MessageAuthor
from lamella.core.messages import Delta, ModelRequest, Role, StopDelta, StopReason, TextDelta, ToolCall, join_text
from lamella.core.text.write_blocks import parse_write_blocks
from lamella.core.values import replace
from lamella.ports import ModelProvider
from lamella.runners.query_planning import requests_writing

_WRITE_TOOL = "write_note"
_MESSAGE_ROLES = (MessageAuthor.USER.value, MessageAuthor.REPLY.value)
_NON_WORD = re.compile(r"[\W_]+")
_CUT_SHORT_MESSAGE = "Not written: the answer was cut short, and what it has of notes may not be all of it."
_QUOTED_MESSAGE = "not written: what stands there was read, and is quoted."


def with_write_blocks(run_request: RunRequest) -> RunRequest:
    """Return the run request with a provider that writes the answer's blocks.

    It is returned unchanged if the message does not ask for that with ``@composer``, or if notes may not be written
    here.
    """
    typed = _typed_text(run_request) if run_request.turn_request is None else run_request.turn_request.text
    if not run_request.runner_context.can_write_notes or "@" not in typed or not requests_writing(typed):
        return run_request

    async def find_material() -> Sequence[str]:
        read = await run_request.send_context.workers.run(run_request.conversation.all_passages)
        return [one.text for one in read if one.role not in _MESSAGE_ROLES]

    provider = WriteBlockProvider(
        run_request.send_context.provider,
        lambda: run_request.runner_context.make_tools(run_request.conversation),
        load_read_texts=find_material,
    )
    return replace(run_request, send_context=replace(run_request.send_context, provider=provider))


def _typed_text(run_request: RunRequest) -> str:
    """Return the text that the user typed in the turn that is resumed."""
    return "" if run_request.turn is None else run_request.turn.envelope.prompt.question.message.text


class WriteBlockProvider:
    """A provider that passes on a model's stream and writes the blocks of a complete answer, after consent."""

    def __init__(
        self,
        inner: ModelProvider,
        make_tools: Callable[[], Sequence[Tool]],
        *,
        load_read_texts: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        self._inner = inner
        self._make_tools = make_tools
        self._load_read_texts = load_read_texts

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the model's answer, with the outcome of its write blocks before the final ``StopDelta``.

        An answer that calls tools is not final, so its blocks are not written.
        """
        chunks: list[str] = []
        calls = False
        async with aclosing(stream_checked_deltas(self._inner, request)) as coming:
            async for delta in coming:
                if isinstance(delta, StopDelta) and not calls:
                    for line in await self._write_blocks(join_text(chunks), delta.reason, request):
                        yield TextDelta(text=line)
                elif isinstance(delta, TextDelta):
                    chunks.append(delta.text)
                calls = calls or isinstance(delta, ToolCall)
                yield delta

    async def predict_cache_usage(self, request: ModelRequest) -> CacheUsage | None:
        """Return the cache usage that the wrapped provider predicts for a request; None if it cannot predict."""
        return await predict_cache_usage(self._inner, request)

    async def close(self) -> None:
        await self._inner.close()

    async def _write_blocks(self, text: str, reason: StopReason, request: ModelRequest) -> list[str]:
        blocks = parse_write_blocks(text)
        if not blocks:
            return []
        if reason not in (StopReason.END, StopReason.STOP_SEQUENCE):
            return [f"\n\n{_CUT_SHORT_MESSAGE}"]
        toolbox = LocalToolset([tool for tool in self._make_tools() if tool.name == _WRITE_TOOL])
        # Text of an earlier turn may have left the request, but the model may still repeat it from its own replies.
        read = [*_list_prompt_texts(request), *(_strip_to_words(text) for text in await self._load_read_texts())]
        outputs = []
        for number, (path, content, whole) in enumerate(blocks, start=1):
            # Prompt injection: the user did not ask for a block that was copied from a note, a page or a tool result.
            if any(_strip_to_words(whole) in text for text in read):
                outputs.append(f"\n\n{path}: {_QUOTED_MESSAGE}")
                continue
            arguments = json.dumps({"path": path, "content": content}, ensure_ascii=False)
            call = ToolCall(id=f"block-{number}", name=_WRITE_TOOL, arguments=arguments)
            (output,) = await toolbox.run_all([call], toolbox.definitions)
            outputs.append(f"\n\n{output.output}")
        return outputs


def _list_prompt_texts(request: ModelRequest) -> list[str]:
    """Return the texts that the model was given, stripped for comparison; its own replies are left out."""
    return [_strip_to_words(message.text) for message in request.messages if message.role is not Role.ASSISTANT]


def _strip_to_words(text: str) -> str:
    """Return a text without whitespace and punctuation, for comparison.

    Lamella breaks closing tags inside attached material with an extra character; a plain comparison would miss those
    copies.
    """
    return _NON_WORD.sub("", text)
