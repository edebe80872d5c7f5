"""Routes for conversations: create, list, search, read, rename, erase, fork, export and import."""

import asyncio
import re
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Annotated, Self

from fastapi import Query
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ImportOutcome, MessageHit
from lamella.errors import ConflictError, LamellaError, NotFoundError, StoreCorruptedError
from lamella.ports import ConversationListItem
from lamella.schemas.conversations import (
    ChangedConversationsJson,
    ConversationListJson,
    CreatedConversationJson,
    ErasedConversationJson,
    FailedItemJson,
    ImportedConversationJson,
    MessageHitListJson,
    SwitchedConversationJson,
    conversations_to_json,
    message_hits_to_json,
)
from lamella.schemas.messages import (
    ConversationJson,
    RunInProgressJson,
    TranscriptJson,
    branch_to_json,
    markers_to_json,
    turns_to_json,
)
from lamella.server.errors import http_error_to_json
from lamella.server.openapi import describe_response, json_response, make_router
from lamella.server.routes.settings import ChatSettingsBody, check_setting_names
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.wiring import WELCOME_NAME, open_welcome_conversation

router = make_router(prefix="/v1/conversations", tag="conversations")
_NAME_FIELD = Field(default=None, min_length=1, max_length=200, examples=["api-review"])
_MAX_PAGE_SIZE = 500
_RANDOM_NAME_BYTES = 5
_RANDOM_NAME = re.compile(rf"chat-[0-9a-f]{{{2 * _RANDOM_NAME_BYTES}}}")
_ARCHIVE_FILE = "archive.md"


class CreateConversationBody(BaseModel):
    """A new conversation."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, _NAME_FIELD] = None
    title: Annotated[str | None, Field(max_length=500)] = None
    model: Annotated[str | None, Field(max_length=300)] = None
    settings: ChatSettingsBody = {}


class ChangeConversationBody(BaseModel):
    """A new title, or whether the conversation is archived."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str | None, Field(max_length=500, examples=["API review"])] = None
    archived: Annotated[bool | None, Field(description="Whether lists leave it out.")] = None

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if self.title is None and self.archived is None:
            raise ValueError("give a title, or archived")
        return self


class BulkAction(StrEnum):
    """What to do with several conversations."""

    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    ERASE = "erase"


class BulkBody(BaseModel):
    """Several conversations, and what to do with them."""

    model_config = ConfigDict(extra="forbid")

    action: BulkAction
    conversations: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=300)]],
        Field(min_length=1, max_length=_MAX_PAGE_SIZE, examples=[["api-review"]]),
    ]


class ForkBody(BaseModel):
    """The message to continue from; a name makes it a separate conversation, otherwise it is a branch."""

    model_config = ConfigDict(extra="forbid")

    message: Annotated[str, Field(min_length=1, max_length=100)]
    name: Annotated[str | None, _NAME_FIELD] = None


class SwitchBody(BaseModel):
    """The branch to continue with, by its last message."""

    model_config = ConfigDict(extra="forbid")

    head: Annotated[str, Field(min_length=1, max_length=100)]


class ImportBody(BaseModel):
    """A conversation as a markdown archive."""

    model_config = ConfigDict(extra="forbid")

    archive: Annotated[str, Field(min_length=1, examples=["**user**: Hello\n\n**ai**: Hi.\n"])]


@router.get("", summary="List conversations")
def list_conversations(
    *,
    state: StateDep,
    caller: ReadCaller,
    limit: Annotated[int, Query(ge=1, le=_MAX_PAGE_SIZE)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    archived: Annotated[
        bool | None, Query(description="Only archived ones, or only the others; by default all.")
    ] = None,
    q: Annotated[
        str, Query(max_length=1_000, description="Only those with these words in their title or name, ignoring case.")
    ] = "",
) -> ConversationListJson:
    """List the conversations of the caller, the last changed first."""
    engine = state.get_engine(caller)
    listed = engine.chats()
    keys = engine.list_archived_keys(listed)
    wanted = listed if archived is None else [one for one in listed if (one.conversation in keys) is archived]
    words = q.casefold().split()
    if words:
        wanted = [one for one in wanted if all(word in f"{one.title} {one.name}".casefold() for word in words)]
    return ConversationListJson(
        total=len(wanted), chats=conversations_to_json(wanted[offset : offset + limit], archived=keys)
    )


@router.post("", status_code=201, summary="Begin a conversation")
def create_conversation(
    *, body: CreateConversationBody, state: StateDep, caller: ChatCaller
) -> CreatedConversationJson:
    """Create an empty conversation."""
    model = body.model or state.engine_pool.model
    settings = {
        **state.engine_pool.default_settings_for(model),
        "model": model,
        **check_setting_names(body.settings),
    }
    name = body.name or f"chat-{token_hex(_RANDOM_NAME_BYTES)}"
    chat = state.get_engine(caller).create(name, title=body.title, **settings)
    return CreatedConversationJson(conversation=chat.id, name=chat.name, title=chat.title)


@router.get("/search", summary="Search in what was said")
def search_conversations(
    *,
    state: StateDep,
    caller: ReadCaller,
    q: Annotated[str, Query(min_length=1, max_length=1_000)],
    limit: Annotated[int, Query(ge=1, le=_MAX_PAGE_SIZE)] = 50,
) -> MessageHitListJson:
    """Search the messages of all branches for words, ignoring case.

    A damaged conversation does not hide the results from others: `error` describes it next to them.
    """
    found: list[MessageHit] = []
    try:
        for hit in islice(state.get_engine(caller).search(q), limit):
            found.append(hit)
    except StoreCorruptedError as error:
        return replace(message_hits_to_json(found), error=http_error_to_json(error).error)
    return message_hits_to_json(found)


@router.post(
    "/import",
    status_code=201,
    summary="Bring an archive in",
    response_class=Response,
    responses={
        **describe_response(ImportedConversationJson, 201),
        **describe_response(ImportedConversationJson, description="It was there already."),
    },
)
def import_conversation(*, body: ImportBody, state: StateDep, caller: ChatCaller) -> Response:
    """Import an archived conversation; one that exists already is extended, never duplicated."""
    with TemporaryDirectory(prefix="lamella-import-") as folder:
        file = Path(folder) / _ARCHIVE_FILE
        file.write_text(body.archive, encoding="utf-8", newline="")
        chat, outcome, warnings = state.get_engine(caller).import_archive(file)
    if outcome is ImportOutcome.NEW and not chat.settings.get("model"):
        # Archives of other programs name no model. A conversation continued here uses the default model.
        chat.set(**{**_default_import_settings(state), "model": state.engine_pool.model})
        chat.save_settings()
    answer = ImportedConversationJson(
        conversation=chat.id, name=chat.name, outcome=str(outcome), warnings=list(warnings)
    )
    return json_response(answer, 201 if outcome is ImportOutcome.NEW else 200)


@router.post(
    "/welcome",
    status_code=201,
    summary="Open the first conversation",
    response_class=Response,
    responses={
        **describe_response(CreatedConversationJson, 201),
        **describe_response(CreatedConversationJson, description="It was there already."),
    },
)
def open_welcome(*, state: StateDep, caller: ChatCaller) -> Response:
    """Create a prepared conversation, if it is not there: an edited note, a new rule, and the prompts that they changed."""
    engine, model = state.get_engine(caller), state.engine_pool.model
    is_new = engine.find_conversation(WELCOME_NAME) is None
    chat = open_welcome_conversation(engine, model, state.engine_pool.default_settings_for(model))
    body = CreatedConversationJson(conversation=chat.id, name=chat.name, title=chat.title)
    return json_response(body, 201 if is_new else 200)


@router.get("/{conversation}", summary="Read a conversation")
def read_conversation(
    *,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    branch: Annotated[str | None, Query(max_length=100)] = None,
    first: Annotated[int, Query(alias="from", ge=1, le=1_000_000_000, description="First turn.")] = 1,
    last: Annotated[int | None, Query(alias="to", ge=0, le=1_000_000_000, description="Last turn.")] = None,
) -> ConversationJson:
    """Return the messages of the active branch or another one, all branches, and the running turn, if any.

    `from` and `to` choose turns by their numbers; `count` says how many there are. `to=0` returns none of them.
    """
    chat = state.open_conversation(caller, conversation)
    if branch is not None:
        branch = resolve_message_id(chat, branch)
    messages = chat.messages(branch, first=first, last=last)
    return ConversationJson(
        conversation=chat.id,
        name=chat.name,
        title=chat.title,
        head=branch or chat.head,
        branches=[branch_to_json(head, chat.turns(head), active=head == chat.head) for head in chat.branches()],
        running=_run_in_progress(chat, state),
        count=len(chat.turns(branch)),
        turns=turns_to_json(messages.path, messages.contents, messages.sources, siblings=chat.siblings(), first=first),
        compactions=markers_to_json(messages.markers),
    )


@router.post("/bulk", summary="Archive or erase several conversations")
async def run_bulk_action(*, body: BulkBody, state: StateDep, caller: ChatCaller) -> ChangedConversationsJson:
    """Archive conversations, take them back, or erase them for good. Each that fails is listed, and the others are done."""
    done: list[str] = []
    failed: list[FailedItemJson] = []
    for name in dict.fromkeys(body.conversations):
        try:
            done.append(await _apply_bulk_action(state, caller, name, body.action))
        except LamellaError as error:
            failed.append(FailedItemJson(item=name, error=http_error_to_json(error).error))
    return ChangedConversationsJson(done=done, failed=failed)


async def _apply_bulk_action(state: ServerState, caller: Caller, conversation: str, action: BulkAction) -> str:
    if action is BulkAction.ERASE:
        return (await _erase_and_report(state, caller, conversation)).conversation
    archived = action is BulkAction.ARCHIVE
    key, listed = await state.engine_pool.pool.workers.run_uncancellable(
        lambda: _set_archived(state, caller, conversation, archived=archived)
    )
    state.hub.publish(listed)
    return key


def _set_archived(
    state: ServerState, caller: Caller, conversation: str, *, archived: bool
) -> tuple[str, ConversationListItem | None]:
    """Set the mark; return the key of the conversation, and how the store lists it."""
    key = state.get_conversation_key(caller, conversation)
    state.get_engine(caller).set_archived(key, archived=archived)
    return key, state.engine_pool.backend.store.find_conversation(key)


@router.patch("/{conversation}", summary="Rename or archive a conversation")
async def rename_or_archive_conversation(
    *, conversation: str, body: ChangeConversationBody, state: StateDep, caller: ChatCaller
) -> CreatedConversationJson:
    """Set the title of a conversation, or archive it, also while a turn is running."""

    def change() -> tuple[CreatedConversationJson, ConversationListItem | None]:
        chat, listed = state.open_conversation(caller, conversation), None
        if body.title is not None:
            chat.rename(body.title)
        if body.archived is not None:
            _, listed = _set_archived(state, caller, chat.id, archived=body.archived)
        return CreatedConversationJson(conversation=chat.id, name=chat.name, title=chat.title), listed

    changed, listed = await state.engine_pool.pool.workers.run_uncancellable(change)
    state.hub.publish(listed)
    return changed


@router.post("/{conversation}/title", summary="Have a title written")
async def write_title(
    *,
    conversation: str,
    state: StateDep,
    caller: ChatCaller,
    only_if_missing: Annotated[
        bool,
        Query(description="Only if nobody gave the conversation a title or a name. Turns may go on meanwhile."),
    ] = False,
) -> CreatedConversationJson:
    """Ask the summary model for a title, and rename the conversation; without an answer the title stays.

    The ledger has the call under the purpose `title`. Without a summary model (the setting `summarizer`) none is made.
    """
    if only_if_missing:
        return await asyncio.to_thread(lambda: _write_missing_title(state, caller, conversation))

    def write(chat: Conversation) -> CreatedConversationJson:
        title = chat.suggest_title()
        if title != chat.title:
            chat.rename(title)
        return CreatedConversationJson(conversation=chat.id, name=chat.name, title=chat.title)

    return await state.change_conversation(caller, conversation, write, is_long=True)


def _write_missing_title(state: ServerState, caller: Caller, conversation: str) -> CreatedConversationJson:
    """Have a title written and set it, unless the conversation has one by then.

    The conversation is not reserved: the next question does not wait for a title.
    """
    chat = state.open_conversation(caller, conversation)
    if not chat.has_given_title and _RANDOM_NAME.fullmatch(chat.name):
        title = chat.suggest_title()
        chat = state.open_conversation(caller, chat.id)
        if not chat.has_given_title and title != chat.title:
            # Whoever writes at this moment has the conversation open: the title can wait until it is asked for.
            with suppress(ConflictError):
                chat.rename(title)
    return CreatedConversationJson(conversation=chat.id, name=chat.name, title=chat.title)


@router.delete("/{conversation}", summary="Erase a conversation")
async def erase_conversation(*, conversation: str, state: StateDep, caller: ChatCaller) -> ErasedConversationJson:
    """Remove a conversation permanently; only a tombstone stays."""
    return await _erase_and_report(state, caller, conversation)


async def _erase_and_report(state: ServerState, caller: Caller, conversation: str) -> ErasedConversationJson:
    def erase(chat: Conversation) -> ErasedConversationJson:
        engine = state.get_engine(caller)
        engine.set_archived(chat, archived=False)
        engine.erase(chat)
        return ErasedConversationJson(conversation=chat.id, name=chat.name)

    return await state.change_conversation(caller, conversation, erase)


@router.post("/{conversation}/fork", status_code=201, summary="Go on from an earlier message")
async def fork_conversation(
    *, conversation: str, body: ForkBody, state: StateDep, caller: ChatCaller
) -> SwitchedConversationJson:
    """Continue from an earlier message, on a branch or in a conversation of its own; existing messages stay."""

    def fork(chat: Conversation) -> SwitchedConversationJson:
        message = resolve_message_id(chat, body.message)
        if body.name is not None:
            made = state.get_engine(caller).fork(chat, message, body.name)
            return SwitchedConversationJson(conversation=made.id, name=made.name, head=made.head)
        chat.fork(message)
        return SwitchedConversationJson(conversation=chat.id, name=chat.name, head=chat.head)

    return await state.change_conversation(caller, conversation, fork)


@router.post("/{conversation}/switch", summary="Make another branch the active one")
async def switch_branch(
    *, conversation: str, body: SwitchBody, state: StateDep, caller: ChatCaller
) -> SwitchedConversationJson:
    """Make another branch the active one, given by its last message."""

    def switch(chat: Conversation) -> SwitchedConversationJson:
        chat.switch(resolve_message_id(chat, body.head))
        return SwitchedConversationJson(conversation=chat.id, name=chat.name, head=chat.head)

    return await state.change_conversation(caller, conversation, switch)


@router.get(
    "/{conversation}/export",
    summary="Export a conversation",
    response_class=Response,
    responses=describe_response(TranscriptJson, other_content={"text/markdown": {"schema": {"type": "string"}}}),
)
def export_conversation(
    *,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    format: Annotated[str, Query(pattern="^(markdown|transcript)$")] = "markdown",
) -> Response:
    """Export the whole conversation as a Markdown archive, or its active branch as a transcript."""
    chat = state.open_conversation(caller, conversation)
    if format == "transcript":
        return JSONResponse(chat.transcript())
    return PlainTextResponse(_render_archive(chat, state, caller), media_type="text/markdown")


def _run_in_progress(chat: Conversation, state: ServerState) -> RunInProgressJson | None:
    """Return the running turn, here or in another process; of the latter only the question is known."""
    run = state.runs.find_run(chat.id)
    if run is not None:
        return None if run.is_brief else RunInProgressJson(message=run.message_id, run=run.name)
    asked = chat.turns()[-1:]
    if not asked or asked[0].reply is not None or not state.runs.is_answered_elsewhere_blocking(chat.id):
        return None
    return RunInProgressJson(message=asked[0].message.id, run=None)


def _default_import_settings(state: ServerState) -> dict[str, object]:
    """Return default settings without a system prompt, because an imported conversation keeps its own or has none."""
    return {
        name: value
        for name, value in state.engine_pool.default_settings_for(state.engine_pool.model).items()
        if name != "system"
    }


def _render_archive(chat: Conversation, state: ServerState, caller: ReadCaller) -> str:
    with TemporaryDirectory(prefix="lamella-export-") as folder:
        return state.get_engine(caller).export_archive(chat, Path(folder)).read_text(encoding="utf-8")


def resolve_message_id(chat: Conversation, message: str) -> str:
    """Return the id of a message, which may be named as in ``turn:3``.

    Raises ``NotFoundError`` for a message that the conversation does not have.
    """
    found = chat.resolve_message(message)
    if not chat.has_message(found):
        raise NotFoundError(
            f"The conversation {chat.name} has no message {message[:100]!r}.",
            hint=f"GET /v1/conversations/{chat.id} shows those it has.",
        )
    return found
