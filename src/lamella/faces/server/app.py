"""The application: routers and the guard before them, put together over the state of a server."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

import lamella
from lamella.faces.server.doors.routers import DOORS
from lamella.faces.server.failures import add_handlers
from lamella.faces.server.guard.guard import Guard
from lamella.faces.server.resources import (
    attachments,
    catalog,
    compaction,
    conversations,
    health,
    memory,
    messages,
    notes,
    prompts,
    settings,
    solutions,
    workflows,
)
from lamella.faces.server.state import ServerState
from lamella.faces.server.watching.turns import TurnWatch

# A resource is a line here and a file of its name beside the others.
ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    conversations.router,
    messages.router,
    attachments.router,
    prompts.router,
    compaction.router,
    memory.router,
    notes.router,
    catalog.router,
    settings.router,
    solutions.router,
    workflows.router,
    *DOORS,
)
_ABOUT = "The context engine for LLM chat over HTTP. Every error has one shape; streams are server-sent events."
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string", "examples": ["not_found"]},
                "message": {"type": "string", "examples": ["There is no conversation 'garden'."]},
                "hint": {"type": "string", "examples": ["GET /v1/conversations lists those there are."]},
            },
        }
    },
}


def make_app(state: ServerState) -> FastAPI:
    """The application that serves a state; it closes what the state holds when it ends."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncGenerator[None, None]:
        watch = TurnWatch(state.meters)
        watch.begin()
        yield
        watch.end()
        state.is_ready = False
        # Whoever runs this waited for streams already, as long as they may take.
        await state.runs.close(0)
        await state.suite.close()

    app = FastAPI(
        title="Lamella",
        version=lamella.__version__,
        description=_ABOUT,
        lifespan=live,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = state
    for router in ROUTERS:
        app.include_router(router)
    add_handlers(app)
    app.add_middleware(Guard, state=state)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]  # how FastAPI has it done
    return app


def _describe(app: FastAPI) -> dict[str, Any]:
    """What can be asked and what comes back, with the one shape of errors everywhere."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        schemas["Error"] = _ERROR
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = _refer_error()
        app.openapi_schema = schema
    return app.openapi_schema


def _refer_error() -> Mapping[str, object]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "What went wrong, and what to do next.", "content": content}
