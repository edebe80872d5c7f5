"""The catalog: ways of answering, tools and models that there are here."""

from fastapi import APIRouter

from lamella.faces.server.bodies.catalog import ModelListJson, RunnerListJson, ToolListJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State
from lamella.views.answers import view_runners
from lamella.views.notes import view_tools
from lamella.views.serving.models import view_models

router = APIRouter(prefix="/v1", tags=["catalog"])


@router.get("/runners", summary="Ways of answering", responses=told(RunnerListJson))
def list_runners(*, state: State, caller: Reader) -> dict[str, object]:
    """Every runner with what it does, and which settings choose."""
    runners = state.engine_of(caller).runners()
    return {"lamella": 1, **view_runners(runners, usual=state.suite.services.settings.runner)}


@router.get("/tools", summary="Tools that models may call", responses=told(ToolListJson))
def list_tools(*, state: State, caller: Reader) -> dict[str, object]:
    """The tools that come with the server, by their names."""
    return view_tools([tool.definition() for tool in state.engine_of(caller).tools()])


@router.get("/models", summary="Models", responses=told(ModelListJson))
def list_models(*, state: State, _caller: Reader) -> dict[str, object]:
    """The models that may be named without more ado, in the shape that clients of other APIs read as well."""
    return view_models(state.suite.list_named(), usual=state.suite.model)
