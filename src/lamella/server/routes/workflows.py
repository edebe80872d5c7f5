"""Routes for workflows: list and start them, record data, and submit, approve and rewind stages."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella.conversation.conversation import Conversation
from lamella.errors import NotFoundError, WorkflowError
from lamella.ports import WorkflowProgress
from lamella.schemas.workflows import (
    ProgressJson,
    StageDataJson,
    WorkflowListJson,
    WorkflowTextJson,
    no_progress_to_json,
    progress_to_json,
    stage_data_to_json,
    workflows_to_json,
)
from lamella.server.errors import HTTP_HINTS
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.wiring import get_workflow, list_workflows
from lamella.workflows import WorkflowSpec

router = make_router(prefix="/v1", tag="workflows")
_WORKFLOW_PATH = "/conversations/{conversation}/workflow"
_STAGED_RUNNER = "staged"
_EXAMPLE_FIELDS: dict[str, Any] = {"problem": "Desks are booked twice.", "goals": ["No desk is booked twice."]}


class StartWorkflowBody(BaseModel):
    """The workflow to start, by name; a request cannot name files of the server."""

    model_config = ConfigDict(extra="forbid")

    workflow: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", examples=["rfc"])]


class StageFieldsBody(BaseModel):
    """Fields to record for the current stage; null removes a field."""

    model_config = ConfigDict(extra="forbid")

    fields: Annotated[dict[str, JsonValue], Field(min_length=1, max_length=500, examples=[_EXAMPLE_FIELDS])]


class ApproveBody(BaseModel):
    """The decision, of which 200 characters are kept; by default the recorded data."""

    model_config = ConfigDict(extra="forbid")

    decision: Annotated[str, Field(max_length=10_000, examples=["Double bookings of desks end."])] = ""


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
        return chat.start_workflow(body.workflow)

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
    return WorkflowTextJson(conversation=chat.id, name=chat.name, text=chat.export_approved_stages(title), file=None)


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
