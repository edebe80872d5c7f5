"""The ACP agent: the methods of the protocol, and the engines of the folders that an editor opens.

``run_acp_agent`` serves one editor over a pair of streams until the editor closes them.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from acp import Agent, Client, run_agent
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthEnvVar,
    ClientCapabilities,
    CloseSessionResponse,
    EnvVarAuthMethod,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)
from msgspec import Struct, structs

import lamella
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.conversation.names import make_unused_name
from lamella.conversation.runner_context import RunnerContext, get_runner
from lamella.errors import BadInputError, InvalidOperationError, LamellaError, NotFoundError
from lamella.integrations.acp.content import ContentBlock, PromptReader
from lamella.integrations.acp.session import (
    AcpSession,
    SlashCommandSet,
    get_model,
    read_through_editor,
    to_request_error,
)
from lamella.integrations.acp.stdio import StdioTransport
from lamella.integrations.acp.tools import AskingToolSource, McpServerConfig, read_server_specs
from lamella.ports import ConversationListItem, FileChange
from lamella.runners.registry import RUNNERS
from lamella.tools.mcp import McpServerSpec
from lamella.wiring import (
    DEMO_MODEL,
    ServiceContainer,
    choose_memory_renderer,
    default_settings_for,
    get_window_settings,
    list_missing_keys,
    make_memory_opener,
    open_attachment_resolver,
    open_backend,
    open_pool,
    open_runner_context,
    open_servers,
)

# The version of the protocol that this agent speaks.
_PROTOCOL_VERSION = 1
_PAGE_SIZE = 50
_MODE_OPTION, _MODEL_OPTION = "mode", "model"
_KEY_METHOD = "api-key"
# Entries of the shared table that say in which folder a session was last opened; they last as long as the store.
_FOLDER_PREFIX = "acp-folder:"
_NEVER = datetime(9999, 12, 31, tzinfo=UTC)
_STICKY_SETTINGS: Mapping[str, object] = {"attachments": "sticky"}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _reports_errors(method: _Method) -> _Method:
    """Convert errors of the engine into errors of the protocol."""

    @wraps(method)
    async def call(self: "AcpAgent", *given: object, **named: object) -> object:
        try:
            return await method(self, *given, **named)
        except LamellaError as error:
            raise to_request_error(error, self.commands.hints) from error

    return cast("_Method", call)


class FolderEngines:
    """Opens the engine of each folder, over one store and one provider pool."""

    def __init__(self, services: ServiceContainer, *, store: str | None, model: str | None) -> None:
        self.services = services
        self.model = model
        self.pool = open_pool(services=services)
        self.pool.trust_model(model)
        self._store = store
        self._render_memory = choose_memory_renderer(services, is_interactive=True)
        self._backends: dict[Path | None, Backend] = {}

    def get_backend(self, folder: Path | None) -> Backend:
        """Return the backend whose vault is a folder, which is opened once."""
        if folder not in self._backends:
            self._backends[folder] = open_backend(
                self._store,
                services=self.services,
                vault=folder,
                pool=self.pool,
                render_memory=self._render_memory,
            )
        return self._backends[folder]

    def get_engine(self, folder: Path | None = None) -> Engine:
        """Return an engine that lists and copies the conversations of the store."""
        return Engine(self.get_backend(folder), self.pool, runners=RUNNERS)

    def open_conversation(self, plan: "SessionPlan", asks: "Permissions") -> tuple[Conversation, RunnerContext]:
        """Return the conversation of a session with its runner context."""
        backend = self.get_backend(plan.folder)
        context = open_runner_context(
            self.services,
            vault=plan.folder,
            allow=asks.allow,
            open_memory=make_memory_opener(self.services, self._render_memory),
        )
        servers = open_servers(self.services, more=plan.servers)
        context = structs.replace(context, mcp_servers=AskingToolSource(servers, asks.allow_call))
        opened = partial(Conversation.open, backend, pool=self.pool, runners=RUNNERS, runner_context=context)
        if plan.key is not None:
            conversation = opened(plan.key)
            if self.model is not None and self.model != get_model(conversation):
                conversation.set(model=self.model, **get_window_settings(self.model, services=self.services))
            return conversation, context
        name = make_unused_name(backend.store, today=datetime.now(UTC).date())
        model = self.model or self.services.settings.model or DEMO_MODEL
        sticky = {} if self.services.resolved.is_set("attachments") else _STICKY_SETTINGS
        settings = {**default_settings_for(model, services=self.services), "model": model, **sticky, **plan.settings}
        return opened(name, settings), context

    def list_models(self, current: str) -> list[str]:
        """Return the models that a session offers: its own, and those that the user named in the settings."""
        settings = self.services.settings
        summarizer = None if settings.summarizer in ("same", "off") else settings.summarizer
        named = (current, self.model, settings.model, summarizer, DEMO_MODEL)
        return list(dict.fromkeys(one for one in named if one))

    async def close(self) -> None:
        """Close the providers, the worker threads and the stores."""
        await self.pool.close()
        await asyncio.to_thread(self.pool.workers.close)
        for backend in self._backends.values():
            await asyncio.to_thread(backend.store.close)


class SessionPlan(Struct, frozen=True, kw_only=True):
    """What is known of a session before it is opened.

    ``key`` is the key of its conversation, or None for a new one, which gets the ``settings``. ``servers`` are the MCP
    servers that the editor names.
    """

    folder: Path
    key: str | None
    settings: Mapping[str, object]
    servers: Sequence[McpServerSpec]


class Permissions:
    """Asks the user of a session before something is changed; the session is set once it is open."""

    def __init__(self) -> None:
        self.session: AcpSession | None = None

    async def allow(self, change: FileChange) -> bool:
        """Return whether a note or the memory may be changed."""
        return self.session is not None and await self.session.allow(change)

    async def allow_call(self, tool: str, arguments: Mapping[str, object]) -> bool:
        """Return whether a tool that may change something may be called."""
        return self.session is not None and await self.session.allow_call(tool, arguments)


class AcpAgent:
    """The methods that an editor calls, with their arguments by name.

    ``commands`` are the slash commands of its sessions.
    """

    def __init__(self, engines: FolderEngines, *, settings: Mapping[str, object], commands: SlashCommandSet) -> None:
        self.commands = commands
        self._engines = engines
        self._settings = settings
        self._client: Client | None = None
        self._capabilities = ClientCapabilities()
        self._sessions: dict[str, AcpSession] = {}
        self._background: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        **_others: object,
    ) -> InitializeResponse:
        self._capabilities = client_capabilities or ClientCapabilities()
        model = self._engines.model or self._engines.services.settings.model or DEMO_MODEL
        missing = list_missing_keys(model, services=self._engines.services)
        return InitializeResponse(
            protocol_version=min(protocol_version, _PROTOCOL_VERSION) if protocol_version > 0 else _PROTOCOL_VERSION,
            agent_info=Implementation(name="lamella", title="Lamella", version=lamella.__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[
                EnvVarAuthMethod(
                    id=_KEY_METHOD,
                    name=f"API key for {model}",
                    description=f"Set {' or '.join(missing)} in the environment of the agent, and start it again.",
                    vars=[AuthEnvVar(name=name) for name in missing[:1]],
                    type="env_var",
                )
            ]
            if missing
            else [],
        )

    @_reports_errors
    async def authenticate(self, **_others: object) -> AuthenticateResponse | None:
        model = self._engines.model or self._engines.services.settings.model or DEMO_MODEL
        # Opening the provider checks its key; nothing is sent.
        self._engines.pool.send_context_for(model, max_answer_tokens=1)
        return AuthenticateResponse()

    # Sessions.

    @_reports_errors
    async def new_session(
        self, cwd: str, mcp_servers: Sequence[McpServerConfig] | None = None, **_others: object
    ) -> NewSessionResponse:
        session = await self._open_session(cwd, None, mcp_servers)
        return NewSessionResponse(
            session_id=session.session_id, modes=session.modes(), config_options=self._config_options(session)
        )

    @_reports_errors
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[McpServerConfig] | None = None, **_others: object
    ) -> LoadSessionResponse | None:
        session = await self._open_session(cwd, session_id, mcp_servers)
        await session.replay()
        return LoadSessionResponse(modes=session.modes(), config_options=self._config_options(session))

    @_reports_errors
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[McpServerConfig] | None = None, **_others: object
    ) -> ResumeSessionResponse:
        session = await self._open_session(cwd, session_id, mcp_servers)
        return ResumeSessionResponse(modes=session.modes(), config_options=self._config_options(session))

    @_reports_errors
    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[McpServerConfig] | None = None, **_others: object
    ) -> ForkSessionResponse:
        key = await self._copy_conversation(session_id)
        session = await self._open_session(cwd, key, mcp_servers)
        return ForkSessionResponse(
            session_id=session.session_id, modes=session.modes(), config_options=self._config_options(session)
        )

    @_reports_errors
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_others: object
    ) -> ListSessionsResponse:
        if cursor is not None and not cursor.isdecimal():
            raise InvalidOperationError(
                f"The cursor {cursor[:80]!r} is none.", hint="Give the cursor of the last page."
            )
        start = int(cursor or 0)
        listed = await asyncio.to_thread(partial(self._list_sessions, cwd))
        end = start + _PAGE_SIZE
        return ListSessionsResponse(sessions=listed[start:end], next_cursor=str(end) if end < len(listed) else None)

    @_reports_errors
    async def close_session(self, session_id: str, **_others: object) -> CloseSessionResponse | None:
        await self._get_session(session_id).close()
        del self._sessions[session_id]
        return CloseSessionResponse()

    def _list_sessions(self, cwd: str | None) -> list[SessionInfo]:
        engine = self._engines.get_engine()
        listed = [one for one in engine.chats() if one.erased_at is None]
        archived = engine.list_archived_keys(listed)
        store = self._engines.get_backend(None).store
        names = [f"{_FOLDER_PREFIX}{one.conversation}" for one in listed]
        folders = store.shared_table.get_many(*names, at=datetime.now(UTC)) if names else {}
        found: list[SessionInfo] = []
        for one in listed:
            # A conversation that was begun at a terminal or in the page has no folder, and can be continued in any.
            folder = folders.get(f"{_FOLDER_PREFIX}{one.conversation}", cwd or str(Path.cwd()))
            if one.conversation not in archived and folder == (cwd or folder):
                found.append(
                    SessionInfo(
                        session_id=one.conversation, cwd=folder, title=one.title or one.name, updated_at=one.updated
                    )
                )
        return found

    async def _open_session(
        self, cwd: str, session_id: str | None, servers: Sequence[McpServerConfig] | None
    ) -> AcpSession:
        """Open the conversation of a session, or start a new one, and announce its commands after the response."""
        assert self._client is not None, "an editor is connected"
        folder = Path(cwd)
        if not folder.is_absolute() or not await asyncio.to_thread(folder.is_dir):
            raise InvalidOperationError(
                f"The folder {cwd[:500]} of the session is no folder.", hint="Open a vault or a project folder."
            )
        key = None if session_id is None else await asyncio.to_thread(partial(self._find_key, session_id))
        earlier = self._sessions.pop(key, None) if key is not None else None
        if earlier is not None:
            await earlier.close()
        plan = SessionPlan(folder=folder, key=key, settings=self._settings, servers=read_server_specs(servers or ()))
        session = await self._make_session(plan, self._client)
        self._sessions[session.session_id] = session
        # The task runs after the response was queued: editors ignore updates of sessions that they do not know yet.
        task = asyncio.get_running_loop().create_task(self._announce(session))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return session

    async def _make_session(self, plan: SessionPlan, client: Client) -> AcpSession:
        asks = Permissions()
        conversation, context = await asyncio.to_thread(partial(self._engines.open_conversation, plan, asks))
        fs = self._capabilities.fs
        reads = partial(read_through_editor, client, conversation.id) if fs is not None and fs.read_text_file else None
        files = open_attachment_resolver(plan.folder, self._engines.services)
        asks.session = AcpSession(
            conversation,
            client=client,
            folder=plan.folder,
            reader=PromptReader(plan.folder, files, reads, self.commands.hints),
            commands=self.commands,
            runner_context=context,
        )
        return asks.session

    async def _announce(self, session: AcpSession) -> None:
        try:
            await session.announce()
        except ConnectionError:
            # The editor has gone.
            return

    def _find_key(self, session_id: str) -> str:
        return self._find_conversation(session_id).conversation

    def _find_conversation(self, session_id: str) -> ConversationListItem:
        found = self._engines.get_engine().find_conversation(session_id) if session_id.strip() else None
        if found is None and session_id in self._sessions:
            raise InvalidOperationError("The session has no messages yet.", hint="Begin a new session.")
        if found is None or found.erased_at is not None:
            raise NotFoundError(
                f"There is no conversation {session_id[:200]!r}.", hint="List the sessions, or begin a new one."
            )
        return found

    async def _copy_conversation(self, session_id: str) -> str:
        """Copy the active branch of a conversation into a new one and return its key."""

        def copy() -> str:
            engine, backend = self._engines.get_engine(), self._engines.get_backend(None)
            head = Conversation.open(backend, self._find_key(session_id)).head
            if not head:
                raise InvalidOperationError("The session has no messages yet.", hint="Begin a new session.")
            name = make_unused_name(backend.store, today=datetime.now(UTC).date())
            return engine.fork(session_id, head, name).id

        return await asyncio.to_thread(copy)

    def _get_session(self, session_id: str) -> AcpSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise NotFoundError(
                f"The session {session_id[:200]!r} is not open.", hint="Load it first, or begin a new one."
            )
        return session

    # Prompts.

    @_reports_errors
    async def prompt(self, session_id: str, prompt: Sequence[ContentBlock], **_others: object) -> PromptResponse:
        session = self._get_session(session_id)
        response = await session.prompt(prompt)
        await asyncio.to_thread(partial(self._remember_folder, session))
        return response

    async def cancel(self, session_id: str, **_others: object) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            await session.stop()

    def _remember_folder(self, session: AcpSession) -> None:
        """Store the folder of a session, so that the editor lists it for this folder."""
        self._engines.get_backend(session.folder).store.shared_table.set(
            f"{_FOLDER_PREFIX}{session.session_id}",
            str(session.folder),
            at=datetime.now(UTC),
            expires_at=_NEVER,
            conversation_key=session.session_id,
        )

    # Modes and models.

    @_reports_errors
    async def set_session_mode(self, session_id: str, mode_id: str, **_others: object) -> SetSessionModeResponse | None:
        await self._set_mode(self._get_session(session_id), mode_id)
        return SetSessionModeResponse()

    @_reports_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str, **_others: object
    ) -> SetSessionConfigOptionResponse | None:
        session = self._get_session(session_id)
        if config_id == _MODE_OPTION:
            await self._set_mode(session, value)
        elif config_id == _MODEL_OPTION:
            await self._set_model(session, value)
        else:
            raise BadInputError(
                f"There is no option {config_id[:80]!r}.", hint=f"Choose {_MODE_OPTION} or {_MODEL_OPTION}."
            )
        return SetSessionConfigOptionResponse(config_options=self._config_options(session))

    async def _set_mode(self, session: AcpSession, runner: str) -> None:
        get_runner(runner, RUNNERS)
        await asyncio.to_thread(partial(session.conversation.set, runner=runner))

    async def _set_model(self, session: AcpSession, model: str) -> None:
        known = self._engines.list_models(session.model)
        if model not in known:
            raise BadInputError(f"The model {model[:200]!r} is not offered here.", hint=f"Choose {', '.join(known)}.")
        self._engines.pool.trust_model(model)
        self._engines.pool.send_context_for(model, max_answer_tokens=1)
        fitting = get_window_settings(model, services=self._engines.services)
        await asyncio.to_thread(partial(session.conversation.set, model=model, **fitting))

    def _config_options(self, session: AcpSession) -> list[Any]:
        """Return runner and model as options; newer editors show these instead of modes."""
        modes, model = session.modes(), session.model
        return [
            SessionConfigOptionSelect(
                id=_MODE_OPTION,
                name="Runner",
                description="How questions are answered.",
                category="mode",
                type="select",
                current_value=modes.current_mode_id,
                options=[
                    SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
                    for one in modes.available_modes
                ],
            ),
            SessionConfigOptionSelect(
                id=_MODEL_OPTION,
                name="Model",
                category="model",
                type="select",
                current_value=model,
                options=[SessionConfigSelectOption(value=one, name=one) for one in self._engines.list_models(model)],
            ),
        ]

    async def close(self) -> None:
        """Stop all answers, and keep their text so far."""
        for task in self._background:
            task.cancel()
        for session in list(self._sessions.values()):
            await session.close()
        self._sessions.clear()


@asynccontextmanager
async def _closing(agent: AcpAgent, engines: FolderEngines) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        try:
            await agent.close()
        finally:
            await engines.close()


async def run_acp_agent(
    engines: FolderEngines,
    streams: tuple[BinaryIO, BinaryIO],
    *,
    settings: Mapping[str, object],
    commands: SlashCommandSet,
) -> None:
    """Serve one editor over a pair of streams until it closes them. ``settings`` are those of new conversations."""
    agent = AcpAgent(engines, settings=settings, commands=commands)
    async with _closing(agent, engines):
        # Copying and resuming sessions are still marked as unstable in the SDK.
        await run_agent(cast("Agent", agent), StdioTransport(*streams), use_unstable_protocol=True)
