"""Conversations: begin, list, search, read, rename, erase, fork, export and import them."""

import json
from itertools import islice
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from lamella.engine.chat import Chat
from lamella.engine.keeping.conversations import Hit, ImportOutcome
from lamella.errors import StoreDamagedError
from lamella.faces.server.bodies.conversations import (
    BegunChatJson,
    ChatJson,
    ChatListJson,
    ErasedChatJson,
    ImportedChatJson,
    MovedChatJson,
    SaidHitsJson,
    TranscriptJson,
)
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.failures import tell_error
from lamella.faces.server.resources.settings import ChatSettingsBody, read_settings
from lamella.faces.server.state import Reader, ServerState, State, Talker
from lamella.refusals import NotFoundError
from lamella.views.chats import view_branch, view_branch_said
from lamella.views.outcomes import view_hits, view_outcome
from lamella.views.stores import view_chats

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
_NAME = Field(default=None, min_length=1, max_length=200, examples=["api-review"])
_MOST = 500
_NAME_BYTES = 5
_ARCHIVE = "archive.md"


class BeginBody(BaseModel):
    """A conversation to begin."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, _NAME] = None
    title: Annotated[str | None, Field(max_length=500)] = None
    model: Annotated[str | None, Field(max_length=300)] = None
    settings: ChatSettingsBody = {}


class RenameBody(BaseModel):
    """Another title."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(max_length=500, examples=["API review"])]


class ForkBody(BaseModel):
    """Where to go on from; with a name in a conversation of its own, without one on a branch of this one."""

    model_config = ConfigDict(extra="forbid")

    message: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str | None, _NAME] = None


class SwitchBody(BaseModel):
    """The branch to go on with, by its last message."""

    model_config = ConfigDict(extra="forbid")

    head: Annotated[str, Field(min_length=1, max_length=100)]


class ImportBody(BaseModel):
    """A conversation as an archive in markdown."""

    model_config = ConfigDict(extra="forbid")

    archive: Annotated[str, Field(min_length=1, examples=["**user**: Hello\n\n**ai**: Hi.\n"])]


@router.get("", summary="List conversations", responses=told(ChatListJson))
def list_conversations(
    *,
    state: State,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> dict[str, object]:
    """The conversations of the caller, the last changed first."""
    listed = state.engine_of(caller).chats()
    return {"lamella": 1, "total": len(listed), "chats": view_chats(listed[offset : offset + limit])}


@router.post("", status_code=201, summary="Begin a conversation", responses=told(BegunChatJson, 201))
def begin_conversation(*, body: BeginBody, state: State, caller: Talker) -> dict[str, object]:
    """Begin a conversation; nothing is said in it yet."""
    model = body.model or state.suite.model
    settings = {**state.suite.fit(model), "model": model, **read_settings(body.settings)}
    name = body.name or f"chat-{token_hex(_NAME_BYTES)}"
    chat = state.engine_of(caller).begin(name, title=body.title, **settings)
    return view_outcome(chat.id, chat.name, title=chat.title)


@router.get("/search", summary="Search in what was said", responses=told(SaidHitsJson))
def search_conversations(
    *,
    state: State,
    caller: Reader,
    q: Annotated[str, Query(min_length=1, max_length=1_000)],
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 50,
) -> dict[str, object]:
    """Messages of any branch that hold the words, whatever their case.

    A conversation that is damaged keeps nobody from what was found in the others: `error` tells of it beside them.
    """
    found: list[Hit] = []
    try:
        for hit in islice(state.engine_of(caller).search(q), limit):
            found.append(hit)
    except StoreDamagedError as error:
        return {**view_hits(found), **tell_error(error)[1]}
    return view_hits(found)


@router.post(
    "/import",
    status_code=201,
    summary="Bring an archive in",
    responses={**told(ImportedChatJson, 201), **told(ImportedChatJson, description="It was there already.")},
)
def import_conversation(*, body: ImportBody, state: State, caller: Talker) -> JSONResponse:
    """Bring an archived conversation in; one that is there already is extended, never doubled."""
    with TemporaryDirectory(prefix="lamella-import-") as folder:
        file = Path(folder) / _ARCHIVE
        file.write_text(body.archive, encoding="utf-8", newline="")
        chat, outcome, warnings = state.engine_of(caller).import_archive(file)
    if outcome is ImportOutcome.NEW and not chat.settings.get("model"):
        # Archives of other programs name no model, and whoever goes on with one here means the usual one.
        chat.set(**{**_fit(state), "model": state.suite.model})
        chat.keep()
    answer = view_outcome(chat.id, chat.name, outcome=str(outcome), warnings=list(warnings))
    return JSONResponse(answer, 201 if outcome is ImportOutcome.NEW else 200)


@router.get("/{conversation}", summary="Read a conversation", responses=told(ChatJson))
def read_conversation(
    *, conversation: str, state: State, caller: Reader, branch: Annotated[str | None, Query(max_length=100)] = None
) -> dict[str, object]:
    """What was said on the active branch, or on another, and all branches; what is under way, if anything."""
    chat = state.open_chat(caller, conversation)
    if branch is not None:
        check_message(chat, branch)
    said = chat.said(branch)
    body = view_branch_said(said.path, said.contents, marks=said.marks, sources=said.sources)
    branches = [view_branch(head, chat.turns(head), active=head == chat.head) for head in chat.branches()]
    more = {"title": chat.title, "head": branch or chat.head, "branches": branches}
    return view_outcome(chat.id, chat.name, **more, running=_find_running(chat, state), **body)


@router.patch("/{conversation}", summary="Rename a conversation", responses=told(BegunChatJson))
async def rename_conversation(
    *, conversation: str, body: RenameBody, state: State, caller: Talker
) -> dict[str, object]:
    """Give a conversation a title; that waits for no turn."""

    def rename() -> dict[str, object]:
        chat = state.open_chat(caller, conversation)
        chat.rename(body.title)
        return view_outcome(chat.id, chat.name, title=chat.title)

    return await state.suite.pool.workers.finish(rename)


@router.delete("/{conversation}", summary="Erase a conversation", responses=told(ErasedChatJson))
async def erase_conversation(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Remove a conversation for good; only a tombstone stays."""

    def erase(chat: Chat) -> dict[str, object]:
        state.engine_of(caller).erase(chat)
        return view_outcome(chat.id, chat.name, erased=True)

    return await state.change(caller, conversation, erase)


@router.post(
    "/{conversation}/fork", status_code=201, summary="Go on from an earlier message", responses=told(MovedChatJson, 201)
)
async def fork_conversation(*, conversation: str, body: ForkBody, state: State, caller: Talker) -> dict[str, object]:
    """Go on from an earlier message: on a branch, or in a conversation of its own; what was there stays."""

    def fork(chat: Chat) -> dict[str, object]:
        check_message(chat, body.message)
        if body.name is not None:
            made = state.engine_of(caller).fork(chat, body.message, body.name)
            return view_outcome(made.id, made.name, head=made.head)
        chat.fork(body.message)
        return view_outcome(chat.id, chat.name, head=chat.head)

    return await state.change(caller, conversation, fork)


@router.post("/{conversation}/switch", summary="Make another branch the active one", responses=told(MovedChatJson))
async def switch_branch(*, conversation: str, body: SwitchBody, state: State, caller: Talker) -> dict[str, object]:
    """Make another branch the active one, by its last message."""

    def switch(chat: Chat) -> dict[str, object]:
        check_message(chat, body.head)
        chat.switch(body.head)
        return view_outcome(chat.id, chat.name, head=chat.head)

    return await state.change(caller, conversation, switch)


@router.get(
    "/{conversation}/export",
    summary="Export a conversation",
    response_class=Response,
    responses=told(TranscriptJson, content={"text/markdown": {"schema": {"type": "string"}}}),
)
def export_conversation(
    *,
    conversation: str,
    state: State,
    caller: Reader,
    format: Annotated[str, Query(pattern="^(markdown|transcript)$")] = "markdown",
) -> Response:
    """The whole conversation as an archive in markdown, or its active branch as a transcript."""
    chat = state.open_chat(caller, conversation)
    if format == "transcript":
        return Response(json.dumps(chat.transcript(), ensure_ascii=False), media_type="application/json")
    return PlainTextResponse(_write_archive(chat, state, caller), media_type="text/markdown")


def _find_running(chat: Chat, state: ServerState) -> dict[str, object] | None:
    """The turn that is under way, here or in another process, of which only the question is known."""
    run = state.runs.find(chat.id)
    if run is not None:
        return None if run.brief else {"message": run.message, "run": run.name}
    asked = chat.turns()[-1:]
    if not asked or asked[0].reply is not None or not state.runs.look_elsewhere(chat.id):
        return None
    return {"message": asked[0].message.id, "run": None}


def _fit(state: ServerState) -> dict[str, object]:
    """What suits a conversation that has a system prompt, or none, from where it was."""
    return {name: value for name, value in state.suite.fit(state.suite.model).items() if name != "system"}


def _write_archive(chat: Chat, state: ServerState, caller: Reader) -> str:
    with TemporaryDirectory(prefix="lamella-export-") as folder:
        return state.engine_of(caller).export_archive(chat, Path(folder)).read_text(encoding="utf-8")


def check_message(chat: Chat, message: str) -> None:
    """Refuses a message that a conversation does not have."""
    if not chat.has_message(message):
        raise NotFoundError(
            f"The conversation {chat.name} has no message {message[:100]!r}.",
            hint=f"GET /v1/conversations/{chat.id} shows those it has.",
        )
