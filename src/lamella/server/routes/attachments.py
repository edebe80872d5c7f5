"""Routes for attachments: the library of a conversation, and changes to it for the next turn."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lamella.conversation.commands import PendingCommands
from lamella.conversation.conversation import Conversation
from lamella.schemas.library import CommandsJson, LibraryJson, commands_to_json, library_to_json
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.server.turns import AttachedList, parse_attachments

router = make_router(prefix="/v1/conversations/{conversation}", tag="attachments")
_RelevanceQuestion = Annotated[
    str, Field(max_length=100_000, description="Of a folder that does not fit, what speaks of this comes first.")
]


class AttachBody(BaseModel):
    """Attachments for the next turn, which are read now."""

    model_config = ConfigDict(extra="forbid")

    attach: Annotated[AttachedList, Field(min_length=1, examples=[[{"kind": "note", "path": "a.md", "text": "Hi."}]])]
    question: _RelevanceQuestion = ""


class NamesBody(BaseModel):
    """Artifacts by id; for pins also messages."""

    model_config = ConfigDict(extra="forbid")

    names: Annotated[list[str], Field(min_length=1, max_length=500, examples=[["project-spec.md"]])]


class OptionalNamesBody(BaseModel):
    """Artifacts by id; an empty list means all."""

    model_config = ConfigDict(extra="forbid")

    names: Annotated[list[str], Field(max_length=500)] = []
    question: _RelevanceQuestion = ""


@router.get("/attachments", summary="The library")
def list_attachments(*, conversation: str, state: StateDep, caller: ReadCaller) -> LibraryJson:
    """List everything attached so far, with form, tokens, age and cache state, and the pending commands."""
    chat = state.open_conversation(caller, conversation)
    return library_to_json(chat.id, chat.library(), chat.pending_commands, expired=chat.expired_cache())


@router.post("/attachments", summary="Attach")
async def attach(*, conversation: str, body: AttachBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Attach something to the next turn; it is read now, and the response says what it adds to the request."""
    return await _run_command(
        state,
        caller,
        conversation,
        command=lambda chat: chat.attach(*parse_attachments(body.attach, state), question=body.question),
    )


@router.post("/detach", summary="Detach")
async def detach(*, conversation: str, body: OptionalNamesBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Remove artifacts from the working set from the next turn on; an empty list means all."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.detach(*body.names))


@router.post("/drop", summary="Drop")
async def drop(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Remove artifacts from the prompt from the next turn on; recall still finds them."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.drop(*body.names))


@router.post("/pin", summary="Pin")
async def pin(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Keep artifacts or messages in full from the next turn on."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.pin(*body.names))


@router.post("/unpin", summary="Unpin")
async def unpin(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Allow compaction to shorten pinned artifacts or messages again from the next turn on."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.unpin(*body.names))


@router.post("/refresh", summary="Read attachments again")
async def refresh(*, conversation: str, body: OptionalNamesBody, state: StateDep, caller: ChatCaller) -> CommandsJson:
    """Read attachments again, by default all of them; changed texts are sent with the next turn."""
    return await _run_command(
        state, caller, conversation, command=lambda chat: chat.refresh(*body.names, question=body.question)
    )


async def _run_command(
    state: ServerState, caller: Caller, conversation: str, *, command: Callable[[Conversation], PendingCommands]
) -> CommandsJson:
    """Run a command, and return the pending commands and the change to the next request."""

    def do(chat: Conversation) -> CommandsJson:
        before = chat.preview()
        pending = command(chat)
        return commands_to_json(chat.id, pending, before=before, after=chat.preview())

    return await state.change_conversation(caller, conversation, do, is_long=True)
