"""One session of an editor: a conversation of the store, its permissions, and the updates that the editor gets."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from acp import Client, RequestError
from acp.helpers import (
    resource_link_block,
    start_tool_call,
    update_available_commands,
    update_current_mode,
    update_tool_call,
    update_user_message,
    update_user_message_text,
)
from acp.schema import (
    AllowedOutcome,
    AvailableCommand,
    AvailableCommandInput,
    PermissionOption,
    PromptResponse,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    ToolCallUpdate,
    UnstructuredCommandInput,
)

from lamella.attach import Attachment, Code, Note, attachment_for_path
from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import RunnerContext, list_runners
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import TurnEvent
from lamella.core.artifacts.model import Artifact
from lamella.core.log.call import IncompleteReplyReason
from lamella.errors import (
    AuthenticationError,
    BadInputError,
    InvalidOperationError,
    LamellaError,
    NotFoundError,
    RunInProgressError,
)
from lamella.hints import Hints
from lamella.integrations.acp.content import ContentBlock, PromptContent, PromptReader, describe_error, path_in_folder
from lamella.integrations.acp.updates import (
    SessionUpdate,
    TurnUpdates,
    plan_update,
    stop_reason,
    turn_usage,
    usage_update,
)
from lamella.ports import FileChange
from lamella.runners.registry import RUNNERS
from lamella.wiring import DEMO_MODEL

_ALLOW, _ALLOW_ALL, _REJECT = "allow", "allow_all", "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommandInfo:
    """A command of ``lamella chat``: its name without the slash, its arguments, and a description."""

    name: str
    arguments: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommandSet:
    """The commands that a session offers, the function that runs one, and the hints that fit them.

    ``run`` gets the session and the typed line, and returns the text to show. A command that has the model answer
    calls ``answer`` of the session.
    """

    hints: Hints
    commands: Sequence[SlashCommandInfo] = ()
    run: Callable[["AcpSession", str], Awaitable[str]] | None = None


class AcpSession:
    """One conversation of an editor, with its folder.

    Only one prompt runs at a time. ``close`` stops it and keeps the text so far.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        client: Client,
        folder: Path,
        reader: PromptReader,
        commands: SlashCommandSet,
        runner_context: RunnerContext,
    ) -> None:
        self.conversation = conversation
        self.folder = folder
        self.session_id = conversation.id
        self.runner_context = runner_context
        self._client = client
        self._reader = reader
        self._commands = commands
        self._updates = TurnUpdates(folder)
        self._task: asyncio.Task[PromptResponse] | None = None
        self._is_stopping = False
        # What the user allowed for the rest of this session: changes to notes, and tools by name.
        self._allows_changes = False
        self._allowed_tools: set[str] = set()
        self._title = conversation.title
        self._runner = conversation.default_runner

    @property
    def model(self) -> str:
        """The model of the next turn."""
        return get_model(self.conversation)

    async def send(self, *updates: SessionUpdate) -> None:
        """Send updates to the editor."""
        for update in updates:
            await self._client.session_update(self.session_id, update)

    async def announce(self) -> None:
        """Send what belongs to a session from its start: the commands, and the plan of a workflow."""
        commands = [
            AvailableCommand(
                name=one.name,
                description=one.description,
                input=AvailableCommandInput(UnstructuredCommandInput(hint=one.arguments)) if one.arguments else None,
            )
            for one in self._commands.commands
        ]
        if commands:
            await self.send(update_available_commands(commands))
        await self._send_plan()

    # Prompts.

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Answer a prompt.

        Raises ``RunInProgressError`` while another prompt of the session is being answered.
        """
        if self._task is not None:
            raise RunInProgressError(self.session_id, question=None, since=None)
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._answer_prompt(blocks))
        try:
            return await asyncio.shield(self._task)
        finally:
            if self._task.done():
                self._task = None

    async def stop(self, reason: IncompleteReplyReason = IncompleteReplyReason.STOPPED) -> None:
        """Stop the prompt that is being answered, if any; the text so far is kept."""
        task = self._task
        if task is None:
            return
        self._is_stopping = True
        task.cancel(reason)
        await asyncio.wait([task])
        self._task = None

    async def _answer_prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        try:
            return await self._answer_blocks(blocks)
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            return PromptResponse(stop_reason="cancelled")

    async def _answer_blocks(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        await asyncio.to_thread(self.conversation.reload)
        line = "".join(getattr(one, "text", "") for one in blocks).strip()
        command = line[1:].partition(" ")[0] if line.startswith("/") else ""
        if self._commands.run is not None and any(command == one.name for one in self._commands.commands):
            shown = await self._commands.run(self, line)
            if shown.strip():
                await self.send(*self._updates.text(shown))
            await self._send_state()
            return PromptResponse(stop_reason="end_turn")
        content = await self._reader.read(blocks)
        return await self.answer(self._send_question(content), notices=content.notices)

    async def _send_question(self, content: PromptContent) -> AsyncGenerator[TurnEvent, None]:
        mentioned = {getattr(one, "path", None) for one in content.attachments}
        known = await asyncio.to_thread(self._attached_files)
        others = {path: artifact for path, artifact in known.items() if path not in mentioned}
        attachments: list[Attachment] = [*content.attachments, *await self._reader.reread_through_editor(others)]
        async with aclosing(self.conversation.send(content.text, attach=attachments)) as events:
            async for event in events:
                yield event

    def _attached_files(self) -> dict[str, Artifact]:
        """Return the attached notes and source files of the folder by path; an editor may have changed their text."""
        state = self.conversation.current_state[0]
        known = [entry.artifact for entry in state.library.values() if entry.stays_attached]
        named = {self._editable_path(one): one for one in known}
        return {path: one for path, one in named.items() if path is not None}

    def _editable_path(self, artifact: Artifact) -> str | None:
        path = artifact.source.path
        if path is None or artifact.source.lines is not None or artifact.source.query is not None:
            return None
        if not isinstance(attachment_for_path(path), Note | Code):
            return None
        return path_in_folder(self.folder / path, self.folder)

    async def answer(self, events: AsyncGenerator[TurnEvent, None], *, notices: Iterable[str] = ()) -> PromptResponse:
        """Send the updates for the events of an answer, and return how it ended."""
        message_id = ""
        async with aclosing(events) as coming:
            async for event in coming:
                if event.turn is not None and event.turn.envelope.message_id != message_id:
                    message_id = event.turn.envelope.message_id
                    self._updates.start_turn(message_id)
                    for text in notices:
                        await self.send(*self._updates.notice(text))
                await self.send(*self._updates.from_event(event))
        calls = (await asyncio.to_thread(self.conversation.ledger))[-1]
        await self._send_state()
        reason = stop_reason(calls)
        return PromptResponse(stop_reason=reason, usage=turn_usage(calls))

    async def _send_state(self) -> None:
        """Send what a turn or a command may have changed: tokens and cost, the plan, and the title."""
        calls = [call for calls in await asyncio.to_thread(self.conversation.ledger) for call in calls]
        if calls:
            usage = calls[-1].usage
            used = (usage.prompt_tokens or 0) + (usage.output or 0)
            await self.send(usage_update(used, self.conversation.window, calls))
        await self._send_plan()
        if self.conversation.default_runner != self._runner:
            self._runner = self.conversation.default_runner
            await self.send(update_current_mode(self._runner))
        title = self.conversation.title
        if title != self._title:
            self._title = title
            await self.send(SessionInfoUpdate(session_update="session_info_update", title=title))

    async def _send_plan(self) -> None:
        progress = await asyncio.to_thread(lambda: self.conversation.workflow)
        if progress is not None:
            await self.send(plan_update(progress))

    # History.

    async def replay(self) -> None:
        """Send the messages of the active branch, with attachments as links and tool calls with their results."""
        for record in self.conversation.turns():
            message = record.message
            self._updates.start_turn(message.id)
            for path in await asyncio.to_thread(partial(self._paths_of_question, message.id)):
                uri = (self.folder / path).as_uri()
                await self.send(update_user_message(resource_link_block(path, uri)))
            await self.send(update_user_message_text(message.typed))
            for _, event in await asyncio.to_thread(partial(self.conversation.replay_answer, message.id)):
                await self.send(*self._updates.from_event(event))
        await self._send_state()

    def _paths_of_question(self, message_id: str) -> list[str]:
        question = self.conversation.get_turn(message_id).message.question_event
        attached = () if question is None else question.attached
        paths = [one.source.path for one in attached if one.source.path is not None]
        return [path for path in dict.fromkeys(paths) if path_in_folder(self.folder / path, self.folder) is not None]

    # Permissions.

    async def allow(self, change: FileChange) -> bool:
        """Ask the user in the editor before a note or the memory is changed."""
        call = self._updates.find_open_call(change)
        content, locations = self._updates.change_content(change), self._updates.locations(change.path)
        if call is None:
            # A change that the answer itself contains, and no tool call asked for.
            shown_id = self._updates.next_call_id()
            title = f"{'Save to memory' if change.is_memory else 'Write'}: {change.path}"
            await self.send(
                start_tool_call(shown_id, title, kind="edit", status="pending", content=content, locations=locations)
            )
        else:
            call.change, shown_id = change, call.shown_id
            await self.send(update_tool_call(shown_id, status="pending", content=content, locations=locations))
        allowed = self._allows_changes or await self._ask(shown_id, change)
        if not allowed:
            await self.send(update_tool_call(shown_id, status="failed"))
        else:
            await self.send(update_tool_call(shown_id, status="completed" if call is None else "in_progress"))
        return allowed

    async def _ask(self, shown_id: str, change: FileChange) -> bool:
        asked = ToolCallUpdate(
            tool_call_id=shown_id,
            title=f"Change {change.path}" if change.before is not None else f"Create {change.path}",
            kind="edit",
            status="pending",
            content=self._updates.change_content(change),
            locations=self._updates.locations(change.path),
        )
        answer = await self._request_permission(asked, "Allow all changes in this session")
        self._allows_changes = self._allows_changes or answer == _ALLOW_ALL
        return answer != _REJECT

    async def allow_call(self, tool: str, arguments: Mapping[str, object]) -> bool:
        """Ask the user in the editor before a tool is called that may change something."""
        if tool in self._allowed_tools:
            return True
        call = self._updates.find_call(tool, arguments)
        asked = ToolCallUpdate(
            tool_call_id=self._updates.next_call_id() if call is None else call.shown_id,
            title=f"Call {tool}",
            kind="other",
            status="pending",
            raw_input=dict(arguments),
        )
        answer = await self._request_permission(asked, f"Allow all calls of {tool} in this session")
        if answer == _ALLOW_ALL:
            self._allowed_tools.add(tool)
        return answer != _REJECT

    async def _request_permission(self, asked: ToolCallUpdate, always: str) -> str:
        """Return what the user answered; an editor that cannot ask has not said yes."""
        options = [
            PermissionOption(option_id=_ALLOW, name="Allow", kind="allow_once"),
            PermissionOption(option_id=_ALLOW_ALL, name=always, kind="allow_always"),
            PermissionOption(option_id=_REJECT, name="Reject", kind="reject_once"),
        ]
        try:
            answer = await self._client.request_permission(self.session_id, asked, options)
        except (RequestError, ConnectionError):
            return _REJECT
        chosen = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else _REJECT
        return chosen if chosen in (_ALLOW, _ALLOW_ALL) else _REJECT

    # Modes.

    def modes(self) -> SessionModeState:
        """Return the runners as modes."""
        return SessionModeState(
            current_mode_id=self.conversation.default_runner,
            available_modes=[
                SessionMode(id=name, name=name, description=description)
                for name, description in list_runners(RUNNERS).items()
            ],
        )

    async def close(self) -> None:
        """Stop the answer under way, and close the note index and the MCP servers of the session."""
        await self.stop(IncompleteReplyReason.INTERRUPTED)
        context = self.runner_context
        if context.note_index is not None:
            await asyncio.to_thread(context.note_index.close)
        if context.mcp_servers is not None:
            await asyncio.to_thread(context.mcp_servers.close)


def get_model(conversation: Conversation) -> str:
    """Return the model of a conversation's next turn, or the demo model if none is named."""
    try:
        return conversation.model_for(TurnRequest(text=""))
    except InvalidOperationError:
        return DEMO_MODEL


async def read_through_editor(client: Client, session_id: str, path: str) -> str | None:
    """Return the text of a file as the editor has it, or None if the editor cannot read it."""
    with suppress(RequestError, ConnectionError):
        return (await client.read_text_file(path=path, session_id=session_id)).content
    return None


def to_request_error(error: LamellaError, hints: Hints) -> RequestError:
    """Return the error of the protocol for an error of the engine; editors show its message, so it has the hint."""
    code = -32603
    if isinstance(error, AuthenticationError):
        code = -32000
    elif isinstance(error, NotFoundError):
        code = -32002
    elif isinstance(error, BadInputError):
        code = -32602
    return RequestError(code, describe_error(error, hints), {"code": error.code})
