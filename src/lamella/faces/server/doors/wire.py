"""Wires: how a request at any door is answered, once it is said how its API is read and written."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Header, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, JsonValue

from lamella.engine.hosts.history import HostRequest
from lamella.errors import CallError
from lamella.faces.server.doors.hosted import (
    HeardAnswer,
    HostedTurn,
    LamellaField,
    hear,
    open_turn,
    read_own,
    resolve_model,
)
from lamella.faces.server.leaving import wait_with
from lamella.faces.server.state import Caller, ServerState
from lamella.faces.server.streams import SseResponse

ConversationHeader = Annotated[str | None, Header(alias="x-lamella-conversation", max_length=200)]


class DoorBody(BaseModel):
    """What requests have at every door; further fields of its API are told as ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = ""
    stream: bool | None = False
    temperature: float | None = None
    tools: list[dict[str, JsonValue]] | None = None
    lamella: LamellaField | None = None


_Asked = TypeVar("_Asked", bound=DoorBody)


def _name_nothing(_body: DoorBody) -> tuple[str | None, str | None]:
    return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorWire(Generic[_Asked]):
    """One API: which fields of it are ``refused`` and what else ``refuse`` finds, how it is read, written and streamed.

    ``earlier`` gives the conversation and the reply that a request goes on from, where its API has a name for that.
    """

    refused: tuple[str, ...]
    refuse: Callable[[_Asked], Sequence[str]]
    read: Callable[[_Asked], HostRequest]
    write: Callable[[HostedTurn, _Asked, HeardAnswer], dict[str, object]]
    stream: Callable[[HostedTurn, _Asked], AsyncGenerator[bytes, None]]
    earlier: Callable[[_Asked], tuple[str | None, str | None]] = _name_nothing

    async def answer(
        self, request: Request, body: _Asked, state: ServerState, *, caller: Caller, named: str | None
    ) -> Response:
        """Answer a history in the conversation that it is, whole or as it comes."""
        extra = body.model_extra or {}
        wrong = [*(name for name in self.refused if extra.get(name)), *self.refuse(body)]
        if wrong:
            raise CallError(f"{', '.join(wrong)} cannot be had here.", hint="Leave it out.")
        asked, conversation = await self._read(body, state, caller, named=named)
        ignored = sorted(set(extra) - set(self.refused))
        nameable = self.earlier is not _name_nothing
        turn = await open_turn(state, caller, asked, conversation=conversation, ignored=ignored, nameable=nameable)
        # Whoever asks is told the name that they asked by.
        turn.model = body.model or turn.model
        if body.stream:
            response = SseResponse(self.stream(turn, body))
            response.headers.update(turn.headers)
            return response
        return JSONResponse(self.write(turn, body, await wait_with(request, hear(turn.run))), headers=turn.headers)

    async def _read(
        self, body: _Asked, state: ServerState, caller: Caller, *, named: str | None
    ) -> tuple[HostRequest, str | None]:
        """What is asked, and the conversation that is named, if one is."""
        workers = state.suite.pool.workers
        conversation, attach = await workers.run(lambda: read_own(body.lamella, named, state))
        before, after = self.earlier(body)
        request = self.read(body)
        asked = request.asked._replace(attach=(*request.asked.attach, *attach))
        request = request._replace(
            turns=(*request.past, asked),
            model=resolve_model(body.model, state),
            runner=None if body.lamella is None else body.lamella.runner,
            after=after,
        )
        if before is not None:
            conversation = await workers.run(lambda: state.find_key(caller, before))
        return request, conversation
