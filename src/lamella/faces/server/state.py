"""The state of a running server: what requests work with, made once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from lamella.engine.chat import Chat
from lamella.engine.engine import Engine
from lamella.engine.runs.book import RunBook
from lamella.faces.server.watching.meters import ServerMeters
from lamella.refusals import NotFoundError, ScopeMissingError
from lamella.wiring import EngineSuite, ServeSettings, TokenBook, TokenScope

_Given = TypeVar("_Given")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls: the name of a token or of nobody, whose conversations are seen, and what may be done."""

    name: str
    owner: str
    scope: TokenScope


# Whoever comes from this machine where no token is needed: the person who runs the server.
OPERATOR = Caller(name="", owner="", scope=TokenScope.ADMIN)


@dataclass(slots=True, kw_only=True)
class ServerState:
    """What a server works with. ``is_ready`` says that requests are taken."""

    suite: EngineSuite
    rules: ServeSettings
    tokens: TokenBook
    runs: RunBook
    needs_token: bool
    hosts: tuple[str, ...]
    meters: ServerMeters = field(default_factory=ServerMeters)
    is_ready: bool = True

    def engine_of(self, caller: Caller) -> Engine:
        """What a caller's conversations are in; who may administer names models as whoever runs the server does."""
        return self.suite.find(caller.owner, trusted=caller.scope is TokenScope.ADMIN and not caller.owner)

    def find_key(self, caller: Caller, conversation: str) -> str:
        """The key of a conversation by its name or key; what is somebody else's is not there."""
        found = self.engine_of(caller).look_up(conversation)
        if found is None:
            raise NotFoundError(
                f"There is no conversation {conversation[:200]!r}.", hint="GET /v1/conversations lists those there are."
            )
        return found.conversation

    def open_chat(self, caller: Caller, conversation: str) -> Chat:
        """A conversation that is there, as it is now."""
        return self.engine_of(caller).chat(self.find_key(caller, conversation))

    async def change(
        self, caller: Caller, conversation: str, do: Callable[[Chat], _Given], *, long: bool = False
    ) -> _Given:
        """Do something with a conversation while nobody else changes it or is answered in it.

        What may take ``long``, such as asking a model for a summary, has a thread of its own: others need the few that
        there are.
        """
        workers = self.suite.pool.workers
        key = await workers.run(lambda: self.find_key(caller, conversation))
        async with self.runs.hold(key):
            if long:
                return await asyncio.to_thread(lambda: do(self.open_chat(caller, key)))
            return await workers.finish(lambda: do(self.open_chat(caller, key)))


def get_state(request: Request) -> ServerState:
    """The state of the server that a request came to."""
    state: ServerState = request.app.state.server
    return state


def get_caller(request: Request) -> Caller:
    """Who calls, as the guard found."""
    caller: Caller = request.scope["lamella.caller"]
    return caller


def need(scope: TokenScope) -> Callable[[Request], Caller]:
    """Lets those through who may do what a scope covers."""

    def check(request: Request) -> Caller:
        caller = get_caller(request)
        if scope is TokenScope.ADMIN and caller.owner:
            raise ScopeMissingError(
                f"What is everybody's is not for the token {caller.name}, which is {caller.owner}'s.",
                hint="Use a token without an owner; whoever runs the server gives them out.",
            )
        if not caller.scope.covers(scope):
            raise ScopeMissingError(
                f"This needs the scope {scope}; the token {caller.name} has {caller.scope}.",
                hint="Use a token that has it; whoever runs the server gives them out.",
            )
        return caller

    return check


State = Annotated[ServerState, Depends(get_state)]
Reader = Annotated[Caller, Depends(need(TokenScope.READ))]
Talker = Annotated[Caller, Depends(need(TokenScope.CHAT))]
Admin = Annotated[Caller, Depends(need(TokenScope.ADMIN))]
