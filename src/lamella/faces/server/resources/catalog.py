"""The catalog: ways of answering, tools and models that there are here."""

import asyncio

from fastapi import APIRouter

from lamella.faces.server.bodies.catalog import ModelJson, ModelListJson, RunnerListJson, ToolListJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.doors.hosted import resolve_model
from lamella.faces.server.state import Caller, Reader, ServerState, State, Talker
from lamella.refusals import NotFoundError
from lamella.views.answers import view_runners
from lamella.views.notes import view_tools
from lamella.views.serving.models import view_model, view_models

router = APIRouter(prefix="/v1", tags=["catalog"])
_TOOLS = "/conversations/{conversation}/tools"


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


@router.get("/models/{model:path}", summary="A model", responses=told(ModelJson))
def read_model(*, model: str, state: State, _caller: Reader) -> dict[str, object]:
    """A model that may be named without more ado, by its name with or without its provider; `lamella` is the usual."""
    name = resolve_model(model, state)
    if name not in state.suite.list_named():
        raise NotFoundError(f"There is no model {model[:100]!r} here.", hint="GET /v1/models lists those there are.")
    return view_model(name, usual=state.suite.model)


@router.get(_TOOLS, summary="Tools that a model may call in a conversation", responses=told(ToolListJson))
async def list_chat_tools(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Those of the server, and those of the MCP servers that settings name, which are started for that."""
    return await asyncio.to_thread(lambda: _list_all(state, caller, conversation))


@router.post(f"{_TOOLS}/refresh", summary="Have MCP servers list their tools anew", responses=told(ToolListJson))
async def refresh_tools(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Start MCP servers anew: what they have now goes with the next question that tools are used for."""

    def refresh() -> dict[str, object]:
        state.find_key(caller, conversation)
        state.engine_of(caller).servers.refresh()
        return _list_all(state, caller, conversation)

    return await asyncio.to_thread(refresh)


def _list_all(state: ServerState, caller: Caller, conversation: str) -> dict[str, object]:
    engine = state.engine_of(caller)
    tools = (*engine.tools(state.open_chat(caller, conversation)), *engine.servers.tools())
    return view_tools([tool.definition() for tool in tools])
