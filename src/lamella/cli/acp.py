"""``lamella acp``: the agent of an editor that speaks the Agent Client Protocol."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from lamella import Turn
from lamella.cli.access import StoreOption
from lamella.cli.chat.opening import ConversationOpener, OpenedConversation
from lamella.cli.chat.output import AnswerDisplay, PlainOutput
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.cli.chat.slash import SLASH_COMMANDS, run_slash_command
from lamella.cli.errors import SlashCommandHints, print_failure
from lamella.cli.interrupts import cancel_on_signals
from lamella.cli.options import ModelOption, RunnerOption, SettingOption, SystemOption
from lamella.cli.output import is_terminal
from lamella.conversation.turn_runner import TurnEvent
from lamella.errors import ExtraNotInstalledError, LamellaError, UsageError, install_hint
from lamella.wiring import open_attachment_resolver, read_services, resolve_conversation_settings

if TYPE_CHECKING:
    from lamella.integrations.acp.agent import FolderEngines
    from lamella.integrations.acp.session import AcpSession, SlashCommandInfo, SlashCommandSet

_Result = TypeVar("_Result")


def acp(
    *,
    model: ModelOption = None,
    runner: RunnerOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    store: StoreOption = None,
) -> None:
    """Answer in an editor that speaks the Agent Client Protocol (ACP).

    The editor starts this command and talks to it over stdin and stdout. The folder that is open in the editor is the
    vault. The options apply to new conversations. docs/how-to/editors.md has the settings of several editors.
    """
    try:
        from lamella.integrations.acp.agent import FolderEngines
        from lamella.integrations.acp.session import SlashCommandSet
        from lamella.integrations.acp.stdio import claim_stdio
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "acp":
            raise
        raise ExtraNotInstalledError(
            "The agent for editors needs agent-client-protocol, which is not installed.", hint=install_hint("acp")
        ) from error
    if is_terminal(sys.stdin):
        raise UsageError(
            "An editor starts this command and writes to its stdin, which is a terminal here.",
            hint="Name `lamella acp` in the settings of your editor, or talk here with `lamella chat`.",
        )
    given = parse_setting_options(system, settings, runner=runner)
    with claim_stdio() as streams:
        engines = FolderEngines(read_services(), store=store, model=model)
        runner_of_commands = EditorCommands(engines, store)
        commands = SlashCommandSet(
            hints=SlashCommandHints(store), commands=list_editor_commands(), run=runner_of_commands.run
        )
        asyncio.run(_serve_editor(engines, streams, settings=given, commands=commands))


async def _serve_editor(
    engines: "FolderEngines",
    streams: tuple[BinaryIO, BinaryIO],
    *,
    settings: Mapping[str, object],
    commands: "SlashCommandSet",
) -> None:
    from lamella.integrations.acp.agent import run_acp_agent

    with cancel_on_signals():
        await run_acp_agent(engines, streams, settings=settings, commands=commands)


# Slash commands in an editor.

# Commands that an editor has itself, or that make no sense there: the clipboard, the list of conversations, the end.
_TERMINAL_COMMANDS = frozenset({"/active", "/chats", "/copy", "/help", "/new", "/paste", "/quit", "/strata"})


def list_editor_commands() -> "Sequence[SlashCommandInfo]":
    """Return the commands of ``lamella chat`` that an editor offers."""
    from lamella.integrations.acp.session import SlashCommandInfo

    return [
        SlashCommandInfo(name=name.removeprefix("/"), arguments=one.arguments, description=one.description)
        for name, one in SLASH_COMMANDS.items()
        if name not in _TERMINAL_COMMANDS
    ]


class _EditorRunner:
    """Runs coroutines of a command on the agent's event loop, while the command itself runs in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._agent_loop = loop
        self._running: Future[Any] | None = None

    def run(self, coro: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine and wait for its result."""
        self._running = asyncio.run_coroutine_threadsafe(coro, self._agent_loop)
        try:
            result: _Result = self._running.result()
            return result
        finally:
            self._running = None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._agent_loop

    def cancel(self) -> None:
        """Cancel the coroutine that is running, such as an answer."""
        running = self._running
        if running is not None:
            running.cancel()


class EditorCommands:
    """Runs slash commands in the sessions of an editor, one at a time, and returns what they print."""

    def __init__(self, engines: "FolderEngines", store: str | None) -> None:
        self._engines = engines
        self._store = store
        # Printed text is collected from the process's stdout, so only one command may print.
        self._printing = asyncio.Lock()

    async def run(self, session: "AcpSession", line: str) -> str:
        """Run a command in a thread and return its output as a code block, or "" if it printed nothing."""
        async with self._printing:
            runner = _EditorRunner(asyncio.get_running_loop())
            printed = StringIO()
            with redirect_stdout(printed), redirect_stderr(printed):
                work = asyncio.get_running_loop().create_task(
                    asyncio.to_thread(partial(self._run_in_thread, session, line, runner))
                )
                try:
                    await asyncio.shield(work)
                except asyncio.CancelledError:
                    runner.cancel()
                    await asyncio.wait([work])
                    raise
        text = printed.getvalue().strip("\n")
        return f"```text\n{text}\n```\n" if text.strip() else ""

    def _run_in_thread(self, session: "AcpSession", line: str, runner: _EditorRunner) -> None:
        async def show_answer(events: AsyncGenerator[TurnEvent, None], _output: AnswerDisplay) -> Turn | None:
            await session.answer(events)
            return None

        try:
            chat = ChatSession(
                self._open(session),
                runner,
                output=PlainOutput(),
                files=open_attachment_resolver(session.folder, self._engines.services),
                shows_strata=False,
                is_interactive=False,
                show_answer=show_answer,
            )
        except LamellaError as error:
            print_failure(error, SlashCommandHints(self._store), as_json=False)
            return
        run_slash_command(chat, line)

    def _open(self, session: "AcpSession") -> OpenedConversation:
        """Return the conversation of a session as commands of a chat use it."""
        services, backend = self._engines.services, self._engines.get_backend(session.folder)
        conversation = session.conversation
        return OpenedConversation(
            conversation=conversation,
            pool=self._engines.pool,
            max_answer_tokens=None,
            model=session.model,
            counter=backend.adapters.counter,
            is_new=not conversation.turns(),
            stored_id=conversation.id,
            store=self._store,
            opener=ConversationOpener(
                backend=backend,
                pool=self._engines.pool,
                services=services,
                default_settings={},
                runner_context=session.runner_context,
            ),
            resolve_settings=lambda given: resolve_conversation_settings(given, services),
        )
