"""The state of a running server, the callers of requests, and clients that disconnect.

``ServerState`` is everything that requests share. ``get_caller`` returns the authenticated caller, and
``require_scope`` lets only callers with a scope through. ``run_until_disconnect`` cancels work for a client that waits
for a whole answer when the client disconnects.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.conversation.runs import RunRegistry
from lamella.errors import NotFoundError, PermissionDeniedError
from lamella.providers.registry import strip_provider
from lamella.server.live import ChangeHub
from lamella.server.observability import ServerMetrics
from lamella.server.sessions import SessionSigner
from lamella.wiring import AccessScope, AccessTokenFile, EnginePool, HttpServerSettings

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a request: the name of its token, whose conversations it sees, and its scope.

    An empty ``owner`` means the operator, who sees all conversations.
    """

    name: str
    owner: str
    scope: AccessScope


# A caller on this machine, if no token is needed, is the operator of the server.
OPERATOR = Caller(name="", owner="", scope=AccessScope.ADMIN)


@dataclass(slots=True, kw_only=True)
class ServerState:
    """Everything that requests need. ``is_ready`` says whether the server accepts requests."""

    engine_pool: EnginePool
    settings: HttpServerSettings
    tokens: AccessTokenFile
    runs: RunRegistry
    needs_token: bool
    hosts: tuple[str, ...]
    hub: ChangeHub
    sessions: SessionSigner = field(default_factory=SessionSigner)
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    is_ready: bool = True

    def get_engine(self, caller: Caller) -> Engine:
        """Return the engine with a caller's conversations; an admin without an owner may name any model."""
        return self.engine_pool.get_engine(caller.owner, trusted=caller.scope is AccessScope.ADMIN and not caller.owner)

    def get_conversation_key(self, caller: Caller, conversation: str) -> str:
        """Return the key of a conversation by its name or key.

        Raises ``NotFoundError`` if it does not exist or belongs to another owner.
        """
        found = self.get_engine(caller).find_conversation(conversation)
        if found is None:
            raise NotFoundError(
                f"There is no conversation {conversation[:200]!r}.",
                hint="GET /v1/conversations lists the conversations.",
            )
        return found.conversation

    def open_conversation(self, caller: Caller, conversation: str) -> Conversation:
        """Return an existing conversation as it is now."""
        return self.get_engine(caller).chat(self.get_conversation_key(caller, conversation))

    async def change_conversation(
        self,
        caller: Caller,
        conversation: str,
        action: Callable[[Conversation], _Result],
        *,
        is_long: bool = False,
    ) -> _Result:
        """Change a conversation while it is reserved, so that no other change and no turn runs in it.

        Raises ``RunInProgressError`` while a turn is being answered. With ``is_long``, such as for a summary by a
        model, the work gets its own thread, because the workers are few and other requests need them.
        """
        workers = self.engine_pool.pool.workers
        key = await workers.run(lambda: self.get_conversation_key(caller, conversation))
        async with self.runs.exclusive(key):
            if is_long:
                return await asyncio.to_thread(lambda: action(self.open_conversation(caller, key)))
            return await workers.run_uncancellable(lambda: action(self.open_conversation(caller, key)))


# The name under which clients ask for the default model of a server.
_DEFAULT_MODEL_NAME = "lamella"


def resolve_model(name: str, state: ServerState) -> str:
    """Return the model that a client means, by its full name or by its name without the provider."""
    if name in ("", _DEFAULT_MODEL_NAME):
        return state.engine_pool.model
    named = state.engine_pool.list_allowed_models()
    return next((one for one in named if name in (one, strip_provider(one), one.partition(":")[2])), name)


def get_state(request: Request) -> ServerState:
    """Return the state of the server that handles a request."""
    state: ServerState = request.app.state.server
    return state


def get_caller(request: Request) -> Caller:
    """Return the caller that the request guard authenticated."""
    caller: Caller = request.scope["lamella.caller"]
    return caller


def require_scope(scope: AccessScope) -> Callable[[Request], Caller]:
    """Return a dependency that lets only callers with a scope through.

    Administration also needs a token without an owner.
    """

    def check(request: Request) -> Caller:
        caller = get_caller(request)
        if scope is AccessScope.ADMIN and caller.owner:
            raise PermissionDeniedError(
                f"What is everybody's is not for the token {caller.name}, which is {caller.owner}'s.",
                hint="Use a token without an owner; whoever runs the server gives them out.",
            )
        if not caller.scope.includes(scope):
            raise PermissionDeniedError(
                f"This needs the scope {scope}; the token {caller.name} has {caller.scope}.",
                hint="Use a token that has it; whoever runs the server gives them out.",
            )
        return caller

    return check


StateDep = Annotated[ServerState, Depends(get_state)]
ReadCaller = Annotated[Caller, Depends(require_scope(AccessScope.READ))]
ChatCaller = Annotated[Caller, Depends(require_scope(AccessScope.CHAT))]
AdminCaller = Annotated[Caller, Depends(require_scope(AccessScope.ADMIN))]


# No client receives this status. It appears in the log, where proxies use it for a closed request as well.
_CLIENT_CLOSED_STATUS = 499


async def run_until_disconnect(request: Request, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of ``coroutine``, or cancel it and raise ``ClientDisconnect`` when the client disconnects.

    The framework reports a disconnect only while a response is being sent.
    """
    loop = asyncio.get_running_loop()
    working, leaving = loop.create_task(coroutine), loop.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()
        # Wait for the cancelled tasks, so that neither outlives the request.
        await asyncio.wait((working, leaving))


def add_disconnect_handler(app: FastAPI) -> None:
    """Register a handler that ends a request whose client has disconnected."""

    async def handle_disconnect(_request: Request, _error: Exception) -> Response:
        return Response(status_code=_CLIENT_CLOSED_STATUS)

    app.add_exception_handler(ClientDisconnect, handle_disconnect)


async def _wait_for_disconnect(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
