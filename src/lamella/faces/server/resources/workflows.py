"""Workflows: those that there are, and work in the stages of one: begin, look, write down, submit, approve, go back."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella.engine.chat import Chat
from lamella.errors import WorkflowError
from lamella.faces.server.bodies.catalog import ProgressJson, StageDataJson, WorkflowListJson, WorkJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.door import HTTP
from lamella.faces.server.state import Caller, Reader, ServerState, State, Talker
from lamella.holdings import WorkflowProgress
from lamella.refusals import NotFoundError
from lamella.views.work.listing import view_workflows
from lamella.views.work.progress import view_data, view_progress, view_work
from lamella.wiring import find_workflow, list_workflows
from lamella.workflows import WorkflowSpec

router = APIRouter(prefix="/v1", tags=["workflows"])
_WORK = "/conversations/{conversation}/workflow"
_RUNNER = "staged"
_FIELDS: dict[str, Any] = {"problem": "Desks are booked twice.", "goals": ["No desk is booked twice."]}


class WorkBody(BaseModel):
    """The workflow to work by, by its name: nobody here names files of the server."""

    model_config = ConfigDict(extra="forbid")

    workflow: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", examples=["rfc"])]


class FieldsBody(BaseModel):
    """What to write down for the current stage, by field; null takes one away."""

    model_config = ConfigDict(extra="forbid")

    fields: Annotated[dict[str, JsonValue], Field(min_length=1, max_length=500, examples=[_FIELDS])]


class ApproveBody(BaseModel):
    """What was decided, of which 200 characters are kept; else what was written down."""

    model_config = ConfigDict(extra="forbid")

    decision: Annotated[str, Field(max_length=10_000, examples=["Double bookings of desks end."])] = ""


class RewindBody(BaseModel):
    """The stage to go back to, by its id."""

    model_config = ConfigDict(extra="forbid")

    stage: Annotated[str, Field(min_length=1, max_length=100, examples=["problem"])]


@router.get("/workflows", summary="Workflows", responses=told(WorkflowListJson))
def list_all(*, state: State, _caller: Reader) -> dict[str, object]:
    """Every workflow by name, with its stages."""
    names = list_workflows(services=state.suite.services)
    return view_workflows({name: _read(state, name) for name in names})


@router.post(_WORK, status_code=201, summary="Begin to work in stages", responses=told(ProgressJson, 201))
async def begin(*, conversation: str, body: WorkBody, state: State, caller: Talker) -> dict[str, object]:
    """Begin to work in the stages of a workflow; the runner is `staged` from then on."""

    def do(chat: Chat) -> WorkflowProgress:
        _check(state, body.workflow)
        chat.set(runner=_RUNNER)
        return chat.begin_workflow(body.workflow)

    return await _do(state, caller, conversation, deed=do)


@router.get(_WORK, summary="Where work stands", responses=told(ProgressJson))
def read_progress(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """Every stage, what was decided, and what the current one lacks."""
    chat = state.open_chat(caller, conversation)
    return view_progress(chat.id, chat.name, _find_work(chat))


@router.get(f"{_WORK}/data", summary="What was written down", responses=told(StageDataJson))
def read_data(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """Where work stands, with what was written down for each stage."""
    chat = state.open_chat(caller, conversation)
    return view_data(chat.id, chat.name, _find_work(chat))


@router.patch(f"{_WORK}/data", summary="Write something down", responses=told(StageDataJson))
async def write_data(*, conversation: str, body: FieldsBody, state: State, caller: Talker) -> dict[str, object]:
    """Write something down for the current stage; one that was submitted is worked on again by that."""

    def do(chat: Chat) -> dict[str, object]:
        return view_data(chat.id, chat.name, chat.write_stage(body.fields))

    return await state.change(caller, conversation, do)


@router.post(f"{_WORK}/submit", summary="Submit the current stage", responses=told(ProgressJson))
async def submit(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Have the current stage wait for approval; an error names what it lacks."""
    return await _do(state, caller, conversation, deed=lambda chat: chat.submit_stage())


@router.post(f"{_WORK}/approve", summary="Approve the stage that was submitted", responses=told(ProgressJson))
async def approve(*, conversation: str, body: ApproveBody, state: State, caller: Talker) -> dict[str, object]:
    """What was decided stands in every later prompt, and the next stage begins."""
    return await _do(state, caller, conversation, deed=lambda chat: chat.approve_stage(body.decision))


@router.post(f"{_WORK}/rewind", summary="Go back to an earlier stage", responses=told(ProgressJson))
async def rewind(*, conversation: str, body: RewindBody, state: State, caller: Talker) -> dict[str, object]:
    """Later decisions count no more; everything is kept."""
    return await _do(state, caller, conversation, deed=lambda chat: chat.rewind_stage(body.stage))


@router.get(f"{_WORK}/export", summary="The work as markdown", responses=told(WorkJson))
def export(
    *, conversation: str, state: State, caller: Reader, title: Annotated[str, Query(max_length=500)] = ""
) -> dict[str, object]:
    """Every approved stage, and one bibliography in which each source stands once."""
    chat = state.open_chat(caller, conversation)
    return view_work(chat.id, chat.name, text=chat.export_work(title), file=None)


async def _do(
    state: ServerState, caller: Caller, conversation: str, *, deed: Callable[[Chat], WorkflowProgress]
) -> dict[str, object]:
    """Do something about a stage while nobody is answered, and tell where the work stands then."""
    return await state.change(caller, conversation, lambda chat: view_progress(chat.id, chat.name, deed(chat)))


def _find_work(chat: Chat) -> WorkflowProgress:
    work = chat.workflow
    if work is None:
        raise WorkflowError("This conversation has no workflow.", hint=f"Begin one: {HTTP.begin_work()}.")
    return work


def _check(state: ServerState, name: str) -> None:
    """Refuse a workflow that there is not, or that cannot be read, without a word of where its file would be."""
    if name not in list_workflows(services=state.suite.services):
        raise NotFoundError(f"There is no workflow {name!r}.", hint="GET /v1/workflows lists those there are.")
    if _read(state, name) is None:
        raise WorkflowError(
            f"The workflow {name!r} is not as it should be.", hint="Whoever runs the server can mend its file."
        )


def _read(state: ServerState, name: str) -> WorkflowSpec | None:
    """A workflow by its name; none if its file is not as it should be."""
    try:
        return find_workflow(name, services=state.suite.services)
    except WorkflowError:
        return None
