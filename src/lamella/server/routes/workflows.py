"""Routes for workflows: list and start them, record data, and submit, approve and rewind stages."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, JsonValue

from lamella.conversation.conversation import Conversation
from lamella.errors import DocumentError, NotFoundError, WorkflowError
from lamella.ports import WorkflowProgress
from lamella.schemas.workflows import (
    DocumentCheckJson,
    ProgressJson,
    StageDataJson,
    WorkflowListJson,
    WorkflowTextJson,
    document_check_to_json,
    document_to_json,
    no_progress_to_json,
    progress_to_json,
    stage_data_to_json,
    workflows_to_json,
)
from lamella.server.errors import HTTP_HINTS
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.wiring import get_workflow, list_workflows, render_document_file
from lamella.workflows import WorkflowSpec

router = make_router(prefix="/v1", tag="workflows")
_WORKFLOW_PATH = "/conversations/{conversation}/workflow"
_STAGED_RUNNER = "staged"
# Characters that the name of a downloaded file does not have.
_UNUSUAL_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_EXAMPLE_REFERENCES: list[Any] = [{"title": "Desks", "author": ["Doe, Jane"], "year": 2020}]
_MEDIA_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
    "html": "text/html",
    "tex": "application/x-tex",
    "md": "text/markdown",
}
_EXAMPLE_FIELDS: dict[str, Any] = {"problem": "Desks are booked twice.", "goals": ["No desk is booked twice."]}


class StartWorkflowBody(BaseModel):
    """The workflow to start, by name; a request cannot name files of the server."""

    model_config = ConfigDict(extra="forbid")

    workflow: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", examples=["rfc"])]
    language: Annotated[str | None, Field(max_length=20, description="A code such as `id`.", examples=["en"])] = None


class StageFieldsBody(BaseModel):
    """Fields to record for the current stage; null removes a field."""

    model_config = ConfigDict(extra="forbid")

    fields: Annotated[dict[str, JsonValue], Field(min_length=1, max_length=500, examples=[_EXAMPLE_FIELDS])]


class ApproveBody(BaseModel):
    """The decision, of which 200 characters are kept; by default the recorded data."""

    model_config = ConfigDict(extra="forbid")

    decision: Annotated[str, Field(max_length=10_000, examples=["Double bookings of desks end."])] = ""


class ReferencesBody(BaseModel):
    """References as CSL-JSON, as fields with usual names, or as typed lines."""

    model_config = ConfigDict(extra="forbid")

    references: Annotated[list[JsonValue], Field(min_length=1, max_length=500, examples=[_EXAMPLE_REFERENCES])]


class ExhibitBody(BaseModel):
    """A table with columns and rows, or a figure with a PNG or JPEG in base64."""

    model_config = ConfigDict(extra="forbid")

    caption: Annotated[str, Field(min_length=1, max_length=1_000, examples=["Bookings by floor"])]
    columns: Annotated[list[str], Field(max_length=100, examples=[["floor", "bookings"]])] = []
    rows: Annotated[list[list[str]], Field(max_length=5_000, examples=[[["1", "12"]]])] = []
    image: Annotated[Base64Bytes | None, Field(description="The image of a figure.")] = None


class ReviseBody(BaseModel):
    """What is to change in the submitted stage; the model reads it."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, Field(min_length=1, max_length=1_000, examples=["Shorten the background."])]


class RewindBody(BaseModel):
    """The stage to go back to, by its id."""

    model_config = ConfigDict(extra="forbid")

    stage: Annotated[str, Field(min_length=1, max_length=100, examples=["problem"])]


@router.get("/workflows", summary="Workflows")
def list_all(*, state: StateDep, _caller: ReadCaller) -> WorkflowListJson:
    """List every workflow by name, with its stages."""
    names = list_workflows(services=state.engine_pool.services)
    return workflows_to_json({name: _find_workflow(state, name) for name in names})


@router.post(_WORKFLOW_PATH, status_code=201, summary="Begin to work in stages")
async def begin(*, conversation: str, body: StartWorkflowBody, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Start a workflow; the runner is `staged` from then on."""

    def do(chat: Conversation) -> WorkflowProgress:
        _check_workflow(state, body.workflow)
        chat.set(runner=_STAGED_RUNNER)
        return chat.start_workflow(body.workflow, language=body.language)

    return await _change_stage(state, caller, conversation, change=do)


@router.get(_WORKFLOW_PATH, summary="Where work stands")
def read_progress(*, conversation: str, state: StateDep, caller: ReadCaller) -> ProgressJson:
    """Return every stage, the decisions, and what the current stage lacks; without a workflow, an empty progress."""
    chat = state.open_conversation(caller, conversation)
    work = chat.workflow
    return no_progress_to_json(chat.id, chat.name) if work is None else progress_to_json(chat.id, chat.name, work)


@router.get(f"{_WORKFLOW_PATH}/data", summary="What was written down")
def read_data(*, conversation: str, state: StateDep, caller: ReadCaller) -> StageDataJson:
    """Return the progress of a workflow, with the recorded data of each stage."""
    chat = state.open_conversation(caller, conversation)
    return stage_data_to_json(chat.id, chat.name, _get_progress(chat))


@router.patch(f"{_WORKFLOW_PATH}/data", summary="Write something down")
async def write_data(*, conversation: str, body: StageFieldsBody, state: StateDep, caller: ChatCaller) -> StageDataJson:
    """Record fields for the current stage; a stage that was submitted is open again afterwards."""

    def do(chat: Conversation) -> StageDataJson:
        return stage_data_to_json(chat.id, chat.name, chat.write_stage(body.fields))

    return await state.change_conversation(caller, conversation, do)


@router.post(f"{_WORKFLOW_PATH}/submit", summary="Submit the current stage")
async def submit(*, conversation: str, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Submit the current stage for approval; an error names the fields that it lacks."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.submit_stage())


@router.post(f"{_WORKFLOW_PATH}/approve", summary="Approve the stage that was submitted")
async def approve(*, conversation: str, body: ApproveBody, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Approve the submitted stage: its decision is part of every later prompt, and the next stage begins."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.approve_stage(body.decision))


@router.post(f"{_WORKFLOW_PATH}/revise", summary="Send the submitted stage back")
async def revise(*, conversation: str, body: ReviseBody, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Send the submitted stage back with what is to change."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.request_stage_changes(body.note))


@router.post(f"{_WORKFLOW_PATH}/undo", summary="Undo what was written last")
async def undo(*, conversation: str, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Undo what was written last in the current stage, by the model or by a person."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.undo_stage_write())


@router.post(f"{_WORKFLOW_PATH}/references", summary="Add references")
async def add_references(
    *, conversation: str, body: ReferencesBody, state: StateDep, caller: ChatCaller
) -> ProgressJson:
    """Add references; a source that is there already keeps its key."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.add_references(body.references))


@router.put(f"{_WORKFLOW_PATH}/exhibits/{{key}}", summary="Add a figure or a table")
async def add_exhibit(
    *, conversation: str, key: str, body: ExhibitBody, state: StateDep, caller: ChatCaller
) -> ProgressJson:
    """Add a figure or a table, or replace the one with this key."""

    def do(chat: Conversation) -> WorkflowProgress:
        if body.image is not None:
            return chat.add_figure(key, body.caption, body.image)
        return chat.add_table(key, body.caption, body.columns, body.rows)

    return await _change_stage(state, caller, conversation, change=do)


@router.delete(f"{_WORKFLOW_PATH}/items/{{key}}", summary="Remove a reference, a figure or a table")
async def remove_item(*, conversation: str, key: str, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Remove a reference, a figure or a table by its key."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.remove_from_work(key))


@router.post(f"{_WORKFLOW_PATH}/rewind", summary="Go back to an earlier stage")
async def rewind(*, conversation: str, body: RewindBody, state: StateDep, caller: ChatCaller) -> ProgressJson:
    """Go back to an earlier stage; later decisions no longer apply, but all data is kept."""
    return await _change_stage(state, caller, conversation, change=lambda chat: chat.rewind_to_stage(body.stage))


@router.get(f"{_WORKFLOW_PATH}/export", summary="The work as markdown")
def export(
    *, conversation: str, state: StateDep, caller: ReadCaller, title: Annotated[str, Query(max_length=500)] = ""
) -> WorkflowTextJson:
    """Export every approved stage, with one bibliography in which each source appears once."""
    chat = state.open_conversation(caller, conversation)
    return document_to_json(chat.id, chat.name, chat.document(title), chat.export_approved_stages(title))


@router.get(f"{_WORKFLOW_PATH}/check", summary="What the document lacks")
def check(*, conversation: str, state: StateDep, caller: ReadCaller) -> DocumentCheckJson:
    """Return the headings of the document, and the stages, citations, references and figures that it lacks."""
    chat = state.open_conversation(caller, conversation)
    return document_check_to_json(chat.id, chat.name, chat.document())


@router.get(
    f"{_WORKFLOW_PATH}/document",
    summary="The work as a file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
def download(
    *,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    format: Annotated[str, Query(pattern="^(docx|pdf|html|tex|md)$")] = "docx",
    style: Annotated[str, Query(pattern=r"^[a-z-]{1,40}$", description="A citation style by name.")] = "apa",
    title: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Export the document as docx, pdf, html, LaTeX or Markdown, with citations in a style.

    A document with images of figures is a docx, pdf or html: files in the other formats do not contain them.
    """
    chat = state.open_conversation(caller, conversation)
    exported = render_document_file(chat.document(title), f"document.{format}", style=style)
    if exported.images:
        raise DocumentError(
            f"The document has figures ({len(exported.images)}), which a .{format} file does not contain.",
            hint="Use the format docx, pdf or html.",
        )
    name = _UNUSUAL_CHARACTERS.sub("-", chat.name or "").strip("-") or "document"
    headers = {"content-disposition": f'attachment; filename="{name}.{format}"'}
    return Response(exported.content, media_type=_MEDIA_TYPES[format], headers=headers)


async def _change_stage(
    state: ServerState, caller: Caller, conversation: str, *, change: Callable[[Conversation], WorkflowProgress]
) -> ProgressJson:
    """Change a stage while no turn is running, and return the progress of the work."""
    return await state.change_conversation(
        caller, conversation, lambda chat: progress_to_json(chat.id, chat.name, change(chat))
    )


def _get_progress(chat: Conversation) -> WorkflowProgress:
    work = chat.workflow
    if work is None:
        raise WorkflowError(
            "This conversation has no workflow.", hint=f"Begin one: {HTTP_HINTS.start_workflow_hint()}."
        )
    return work


def _check_workflow(state: ServerState, name: str) -> None:
    """Raise an error for a workflow that does not exist or is invalid, without revealing the path of its file."""
    if name not in list_workflows(services=state.engine_pool.services):
        raise NotFoundError(f"There is no workflow {name!r}.", hint="GET /v1/workflows lists the workflows.")
    if _find_workflow(state, name) is None:
        raise WorkflowError(
            f"The workflow {name!r} is not as it should be.", hint="Whoever runs the server can mend its file."
        )


def _find_workflow(state: ServerState, name: str) -> WorkflowSpec | None:
    """Return a workflow by its name, or None if its file is invalid."""
    try:
        return get_workflow(name, services=state.engine_pool.services)
    except WorkflowError:
        return None
