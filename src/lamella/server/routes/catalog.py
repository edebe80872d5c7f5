"""Routes for the available runners, tools and models."""

import asyncio

from fastapi import Request

from lamella.errors import NotFoundError
from lamella.profiles import ModelFacts
from lamella.schemas.catalog import (
    ModelJson,
    ModelListJson,
    RunnerListJson,
    ToolListJson,
    model_to_json,
    models_to_json,
    runners_to_json,
    tools_to_json,
)
from lamella.server.compat.service import CompatService
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ReadCaller, ServerState, StateDep, resolve_model
from lamella.wiring import get_model_facts, list_priced_models

router = make_router(prefix="/v1", tag="catalog")
_CHAT_TOOLS_PATH = "/conversations/{conversation}/tools"


@router.get("/runners", summary="Ways of answering")
def list_runners(*, state: StateDep, caller: ReadCaller) -> RunnerListJson:
    """List every runner with its description, and which one the settings choose."""
    runners = state.get_engine(caller).runners()
    return runners_to_json(runners, default=state.engine_pool.services.settings.runner)


@router.get("/tools", summary="Tools that models may call")
def list_tools(*, state: StateDep, caller: ReadCaller) -> ToolListJson:
    """List the built-in tools of the server by name."""
    return tools_to_json([tool.to_definition() for tool in state.get_engine(caller).tools()])


@router.get("/models", summary="Models")
async def list_models(*, request: Request, state: StateDep, caller: ReadCaller) -> ModelListJson:
    """List the models that the caller may name, in the format that clients of other APIs read as well.

    A caller that may name any model also gets those that the provider of the default model lists, by its own names.
    """
    compat: CompatService = request.app.state.compat
    named = (*state.engine_pool.list_allowed_models(), *await compat.list_upstream_models(caller))
    facts = await state.engine_pool.pool.workers.run(lambda: {name: _get_facts(state, name) for name in named})
    return models_to_json(facts, default=state.engine_pool.model)


@router.get("/prices", summary="Models with a known price")
async def list_prices(*, state: StateDep, _caller: ReadCaller) -> ModelListJson:
    """List the models of the large providers with their windows and prices, whether or not this server may ask them.

    `GET …/strata?model=` shows what a conversation would have cost with one of them.
    """
    pool = state.engine_pool
    facts = await pool.pool.workers.run(lambda: list_known_prices(state))
    return models_to_json(facts, default=pool.model)


def list_known_prices(state: ServerState) -> dict[str, ModelFacts]:
    """Return the models whose prices are known, with their facts."""
    pool = state.engine_pool
    return list_priced_models(
        pool.backend.adapters.get_pricing, services=pool.services, at=pool.backend.default_change_time()
    )


@router.get("/models/{model:path}", summary="A model")
async def read_model(*, model: str, request: Request, state: StateDep, caller: ReadCaller) -> ModelJson:
    """Return a model by name, with or without its provider; `lamella` is the default model."""
    compat: CompatService = request.app.state.compat
    name = resolve_model(model, state)
    if name not in state.engine_pool.list_allowed_models() and name not in await compat.list_upstream_models(caller):
        raise NotFoundError(f"There is no model {model[:100]!r} here.", hint="GET /v1/models lists the models.")
    facts = await state.engine_pool.pool.workers.run(lambda: _get_facts(state, name))
    return model_to_json(name, facts, default=state.engine_pool.model)


@router.get(_CHAT_TOOLS_PATH, summary="Tools that a model may call in a conversation")
async def list_chat_tools(*, conversation: str, state: StateDep, caller: ChatCaller) -> ToolListJson:
    """List the tools of the server and those of the configured MCP servers, which are started for this."""
    return await asyncio.to_thread(lambda: _list_tools_with_mcp(state, caller, conversation))


@router.post(f"{_CHAT_TOOLS_PATH}/refresh", summary="Have MCP servers list their tools anew")
async def refresh_tools(*, conversation: str, state: StateDep, caller: ChatCaller) -> ToolListJson:
    """Restart the MCP servers; their current tools are used from the next question on."""

    def refresh() -> ToolListJson:
        state.get_conversation_key(caller, conversation)
        state.get_engine(caller).mcp_servers.refresh()
        return _list_tools_with_mcp(state, caller, conversation)

    return await asyncio.to_thread(refresh)


def _get_facts(state: ServerState, model: str) -> ModelFacts:
    pool = state.engine_pool
    return get_model_facts(
        model, pool.backend.adapters.get_pricing(model), services=pool.services, at=pool.backend.default_change_time()
    )


def _list_tools_with_mcp(state: ServerState, caller: Caller, conversation: str) -> ToolListJson:
    engine = state.get_engine(caller)
    tools = (*engine.tools(state.open_conversation(caller, conversation)), *engine.mcp_servers.tools())
    return tools_to_json([tool.to_definition() for tool in tools])
