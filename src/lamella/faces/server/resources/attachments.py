"""Attachments: the library of a conversation, and what becomes of it with the next turn."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from lamella.engine.chat import Chat
from lamella.engine.dialogue.reading.waiting import Commands
from lamella.faces.server.attached import AttachedList, read_attached
from lamella.faces.server.bodies.library import CommandsJson, LibraryJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Caller, Reader, ServerState, State, Talker
from lamella.views.library import view_commands, view_library

router = APIRouter(prefix="/v1/conversations/{conversation}", tags=["attachments"])
_About = Annotated[
    str, Field(max_length=100_000, description="Of a folder that does not fit, what speaks of this comes first.")
]


class AttachBody(BaseModel):
    """What to attach to the next turn, read now."""

    model_config = ConfigDict(extra="forbid")

    attach: Annotated[AttachedList, Field(min_length=1, examples=[[{"kind": "note", "path": "a.md", "text": "Hi."}]])]
    question: _About = ""


class NamesBody(BaseModel):
    """Artifacts by their ids, or messages where they are pinned."""

    model_config = ConfigDict(extra="forbid")

    names: Annotated[list[str], Field(min_length=1, max_length=500, examples=[["project-spec.md"]])]


class SomeNamesBody(BaseModel):
    """Artifacts by their ids; none for all of them."""

    model_config = ConfigDict(extra="forbid")

    names: Annotated[list[str], Field(max_length=500)] = []
    question: _About = ""


@router.get("/attachments", summary="The library", responses=told(LibraryJson))
def list_attachments(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """Everything attached so far: its form, tokens and age, whether a cache has it; and what waits for a turn."""
    chat = state.open_chat(caller, conversation)
    return view_library(chat.id, chat.library(), chat.commands, cold=chat.cold())


@router.post("/attachments", summary="Attach", responses=told(CommandsJson))
async def attach(*, conversation: str, body: AttachBody, state: State, caller: Talker) -> dict[str, object]:
    """Attach something to the next turn; it is read now, and what it comes to is told."""
    return await _do(
        state,
        caller,
        conversation,
        command=lambda chat: chat.attach(*read_attached(body.attach, state), question=body.question),
    )


@router.post("/detach", summary="Detach", responses=told(CommandsJson))
async def detach(*, conversation: str, body: SomeNamesBody, state: State, caller: Talker) -> dict[str, object]:
    """Take something out of the working set from the next turn on, or everything."""
    return await _do(state, caller, conversation, command=lambda chat: chat.detach(*body.names))


@router.post("/drop", summary="Drop", responses=told(CommandsJson))
async def drop(*, conversation: str, body: NamesBody, state: State, caller: Talker) -> dict[str, object]:
    """Take something out of the prompt from the next turn on; recall still finds it."""
    return await _do(state, caller, conversation, command=lambda chat: chat.drop(*body.names))


@router.post("/pin", summary="Pin", responses=told(CommandsJson))
async def pin(*, conversation: str, body: NamesBody, state: State, caller: Talker) -> dict[str, object]:
    """Keep artifacts or messages whole from the next turn on."""
    return await _do(state, caller, conversation, command=lambda chat: chat.pin(*body.names))


@router.post("/unpin", summary="Unpin", responses=told(CommandsJson))
async def unpin(*, conversation: str, body: NamesBody, state: State, caller: Talker) -> dict[str, object]:
    """Let what is pinned be shortened again from the next turn on."""
    return await _do(state, caller, conversation, command=lambda chat: chat.unpin(*body.names))


@router.post("/refresh", summary="Read attachments again", responses=told(CommandsJson))
async def refresh(*, conversation: str, body: SomeNamesBody, state: State, caller: Talker) -> dict[str, object]:
    """Read what is attached again, or everything that is; what changed goes with the next turn."""
    return await _do(
        state, caller, conversation, command=lambda chat: chat.refresh(*body.names, question=body.question)
    )


async def _do(
    state: ServerState, caller: Caller, conversation: str, *, command: Callable[[Chat], Commands]
) -> dict[str, object]:
    """Give a command, and tell what waits for the next turn then and what that comes to."""

    def do(chat: Chat) -> dict[str, object]:
        before = chat.preview()
        waits = command(chat)
        return view_commands(chat.id, waits, before=before, after=chat.preview())

    return await state.change(caller, conversation, do, long=True)
