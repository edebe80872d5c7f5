"""An editor that speaks the Agent Client Protocol: the SDK's own client over the stdio of ``lamella acp``."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from acp import Client, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from tests.journeys.running import PROGRAM

from lamella.integrations.acp.content import ContentBlock
from lamella.integrations.acp.updates import SessionUpdate


@dataclass
class Editor:
    """What the user of an editor sees, and how they answer questions.

    ``buffers`` are files with unsaved changes, by path. ``answer`` chooses the option for each permission request; None
    leaves the question open.
    """

    buffers: dict[str, str] = field(default_factory=dict)
    answer: str | None = "allow_once"
    updates: list[Any] = field(default_factory=list)
    asked: list[ToolCallUpdate] = field(default_factory=list)
    files_read: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: SessionUpdate, **_others: object) -> None:
        self.updates.append(update)
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_others: object
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        self.changed.set()
        if self.answer is None:
            await asyncio.Event().wait()
        chosen = next((one for one in options if one.kind == self.answer), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen.option_id, outcome="selected"))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_others: object
    ) -> ReadTextFileResponse:
        self.files_read.append(path)
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        try:
            return ReadTextFileResponse(
                content=await asyncio.to_thread(partial(Path(path).read_text, encoding="utf-8"))
            )
        except OSError:
            raise RequestError.resource_not_found(path) from None

    def text(self, kind: str = "agent_message_chunk") -> str:
        """All text of one kind of update."""
        return "".join(one.content.text for one in self.of_kind(kind) if one.content.type == "text")

    def of_kind(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]

    async def wait_until(self, is_met: Callable[[], bool]) -> None:
        """Wait until something that came makes this true."""
        while not is_met():
            self.changed.clear()
            await self.changed.wait()


@dataclass
class OpenEditor:
    """An editor with its agent, after ``initialize``."""

    editor: Editor
    agent: ClientSideConnection
    process: asyncio.subprocess.Process
    initialized: Any

    async def ask(self, session: str, *blocks: str | ContentBlock) -> PromptResponse:
        """Send a prompt: texts, or content blocks."""
        return await self.agent.prompt(
            session_id=session, prompt=[text_block(one) if isinstance(one, str) else one for one in blocks]
        )


@asynccontextmanager
async def open_editor(
    words: Sequence[str], home: Mapping[str, str], *, editor: Editor | None = None, reads_files: bool = False
) -> AsyncIterator[OpenEditor]:
    """An editor that has started ``lamella acp`` with these options."""
    client = editor or Editor()
    environment = {"PATH": os.environ["PATH"], **home}
    async with spawn_agent_process(
        cast("Client", client),
        sys.executable,
        "-c",
        PROGRAM,
        "acp",
        *words,
        env=environment,
        cwd=home["HOME"],
        transport_kwargs={"stderr": None, "limit": 2**26, "shutdown_timeout": 30.0},
        use_unstable_protocol=True,
    ) as (agent, process):
        capabilities = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=reads_files))
        initialized = await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield OpenEditor(client, agent, process, initialized)


def run(journey: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a journey on an event loop of its own."""
    asyncio.run(journey())
