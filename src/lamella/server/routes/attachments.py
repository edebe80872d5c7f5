"""Routes for attachments: the library of a conversation, and changes to it for the next turn."""

from collections.abc import Callable
from typing import Annotated

from fastapi import File, Path, Query, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from lamella.attach import Attachment, Image, Note
from lamella.conversation.commands import PendingCommands
from lamella.conversation.conversation import Conversation
from lamella.errors import NotFoundError
from lamella.schemas.library import CommandResultJson, LibraryJson, commands_to_json, library_to_json
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.server.thumbnails import THUMBNAIL_MEDIA_TYPE, THUMBNAIL_PIXELS, make_thumbnail
from lamella.server.turns import AttachedList, parse_attachments

router = make_router(prefix="/v1/conversations/{conversation}", tag="attachments")
_MAX_FILES = 50
_RelevanceQuestion = Annotated[
    str, Field(max_length=100_000, description="Of a folder that does not fit, what speaks of this comes first.")
]


class AttachRequestBody(BaseModel):
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
    return library_to_json(chat.id, chat.library(), chat.pending_commands, expired=chat.estimate_cache_expiry())


@router.post("/attachments", summary="Attach")
async def attach(
    *, conversation: str, body: AttachRequestBody, state: StateDep, caller: ChatCaller
) -> CommandResultJson:
    """Attach something to the next turn; it is read now, and the response says what it adds to the request."""
    return await _run_command(
        state,
        caller,
        conversation,
        command=lambda chat: chat.attach(*parse_attachments(body.attach, state), question=body.question),
    )


@router.post("/attachments/files", summary="Attach files")
async def attach_files(
    *,
    conversation: str,
    files: Annotated[list[UploadFile], File(description="Pictures and texts.", max_length=_MAX_FILES)],
    state: StateDep,
    caller: ChatCaller,
) -> CommandResultJson:
    """Attach uploaded pictures and texts to the next turn, as `multipart/form-data`. Their bytes decide what they are."""
    given = [_make_attachment(file.filename or "file", await file.read()) for file in files]
    return await _run_command(state, caller, conversation, command=lambda chat: chat.attach(*given))


@router.get(
    "/images/{image}",
    summary="A picture",
    response_class=Response,
    responses={200: {"content": {"image/*": {}}, "description": "The picture, as it is sent."}},
)
def read_image(
    *,
    conversation: str,
    image: Annotated[str, Path(max_length=100)],
    state: StateDep,
    caller: ReadCaller,
    turn: Annotated[
        int | None, Query(ge=1, le=1_000_000_000, description="The turn that has it; by default the next one.")
    ] = None,
    thumbnail: Annotated[
        bool, Query(description=f"In at most {THUMBNAIL_PIXELS} by {THUMBNAIL_PIXELS} pixels, where that is smaller.")
    ] = False,
) -> Response:
    """Return a picture that waits for the next turn, or of a turn that was sent, by its id."""
    chat = state.open_conversation(caller, conversation)
    found = chat.find_image(image, turn=turn)
    if found is None:
        raise NotFoundError(f"There is no picture {image!r} here.", hint="GET …/attachments lists those that wait.")
    headers = {"Cache-Control": "private,max-age=86400,immutable", "Content-Security-Policy": "default-src 'none'"}
    small = make_thumbnail(found.data, width=found.width, height=found.height) if thumbnail else None
    if small is not None:
        return Response(small, media_type=THUMBNAIL_MEDIA_TYPE, headers=headers)
    return Response(found.data, media_type=found.media_type, headers=headers)


@router.post("/detach", summary="Detach")
async def detach(
    *, conversation: str, body: OptionalNamesBody, state: StateDep, caller: ChatCaller
) -> CommandResultJson:
    """Remove artifacts from the working set from the next turn on; an empty list means all."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.detach(*body.names))


@router.post("/drop", summary="Drop")
async def drop(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandResultJson:
    """Remove artifacts from the prompt from the next turn on; recall still finds them."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.drop(*body.names))


@router.post("/pin", summary="Pin")
async def pin(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandResultJson:
    """Keep artifacts or messages in full from the next turn on."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.pin(*body.names))


@router.post("/unpin", summary="Unpin")
async def unpin(*, conversation: str, body: NamesBody, state: StateDep, caller: ChatCaller) -> CommandResultJson:
    """Allow compaction to shorten pinned artifacts or messages again from the next turn on."""
    return await _run_command(state, caller, conversation, command=lambda chat: chat.unpin(*body.names))


@router.post("/refresh", summary="Read attachments again")
async def refresh(
    *, conversation: str, body: OptionalNamesBody, state: StateDep, caller: ChatCaller
) -> CommandResultJson:
    """Read attachments again, by default all of them; changed texts are sent with the next turn."""
    return await _run_command(
        state, caller, conversation, command=lambda chat: chat.refresh(*body.names, question=body.question)
    )


def _make_attachment(name: str, data: bytes) -> Attachment:
    """Return an uploaded file as an attachment: a text under its name, or a picture."""
    name = name.replace("\\", "/").rpartition("/")[2]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    return Image(data=data, title=name) if "\0" in text else Note(path=name, text=text)


async def _run_command(
    state: ServerState, caller: Caller, conversation: str, *, command: Callable[[Conversation], PendingCommands]
) -> CommandResultJson:
    """Run a command, and return the pending commands and the change to the next request."""

    def do(chat: Conversation) -> CommandResultJson:
        now = state.engine_pool.backend.default_change_time()
        before = chat.preview(at=now)
        pending = command(chat)
        return commands_to_json(chat.id, pending, before=before, after=chat.preview(at=now))

    return await state.change_conversation(caller, conversation, do, is_long=True)
