"""The application: all routers behind the request guard, over the state of a server.

``make_app`` builds it; on shutdown it closes what the state has open. ``build_openapi`` returns the OpenAPI
description, with recorded examples of requests and responses. A new resource or compatibility endpoint is a line here
and a module in its package.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

import lamella
from lamella.server.bodies import EVENTS
from lamella.server.compat import anthropic, openai_chat, openai_responses
from lamella.server.errors import add_error_handlers
from lamella.server.observability import TurnMetricsHandler
from lamella.server.routes import (
    attachments,
    catalog,
    compaction,
    conversations,
    health,
    memory,
    messages,
    notes,
    prompts,
    rules,
    settings,
    workflows,
)
from lamella.server.routes import code as solutions
from lamella.server.security import RequestGuard
from lamella.server.state import ServerState, add_disconnect_handler

COMPAT_ROUTERS: tuple[APIRouter, ...] = (openai_chat.router, openai_responses.router, anthropic.router)


# The OpenAPI description.

API_DESCRIPTION = (
    "The context engine for LLM chat over HTTP. Every error has one shape; streams are server-sent events."
)
_SCHEMA_REF_PREFIX = "#/components/schemas/"
_ERROR_SCHEMA = {
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
_ERROR_EXAMPLE = {
    "error": {
        "code": "not_found",
        "message": "There is no conversation 'garden'.",
        "hint": "GET /v1/conversations lists those there are.",
    }
}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of an application, built once, with the same error format for every route."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=API_DESCRIPTION, routes=app.routes)
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        events = [(body, "serialization") for body in dict.fromkeys(EVENTS.values())]
        schemas |= models_json_schema(events, ref_template=f"{_SCHEMA_REF_PREFIX}{{model}}")[1]["$defs"]  # type: ignore[arg-type]
        schemas["Error"] = _ERROR_SCHEMA
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        _complete_operations(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema


def load_examples() -> dict[str, dict[str, Any]]:
    """Return a recorded request and response (status, media type and body) for each route."""
    text = (files("lamella.server") / "examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    return examples


def _complete_operations(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    examples = load_examples()
    for path, operations in paths.items():
        for method, operation in operations.items():
            responses = operation["responses"]
            responses.pop("422", None)
            for response in responses.values():
                _drop_duplicate_description(response)
            _add_example(operation, examples.get(f"{method.upper()} {path}", {}))
            responses["default"] = _error_response_docs()


def _drop_duplicate_description(response: Mapping[str, Any]) -> None:
    """Reduce the schema of a referenced body to its ``$ref``, because the body's own schema has a description."""
    for content in response.get("content", {}).values():
        schema = content.get("schema", {})
        if "$ref" in schema:
            content["schema"] = {"$ref": schema["$ref"]}


def _add_example(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "answer" in example:
        contents = operation["responses"][str(example["status"])].setdefault("content", {})
        contents.setdefault(example["type"], {})["example"] = example["answer"]


def _error_response_docs() -> Mapping[str, object]:
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMA_REF_PREFIX}Error"}, "example": _ERROR_EXAMPLE}}
    return {"description": "What went wrong, and what to do next.", "content": content}


# The application.

# A new resource is a line here and a module in the package of the others.
ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    conversations.router,
    messages.router,
    attachments.router,
    prompts.router,
    compaction.router,
    rules.router,
    memory.router,
    notes.router,
    catalog.router,
    settings.router,
    solutions.router,
    workflows.router,
    *COMPAT_ROUTERS,
)


def make_app(state: ServerState) -> FastAPI:
    """Return the application that serves a state; on shutdown it closes what the state has open."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncGenerator[None, None]:
        watch = TurnMetricsHandler(state.metrics)
        watch.start()
        yield
        watch.stop()
        state.is_ready = False
        # No grace period: uvicorn has already waited for open streams, for as long as the settings allow.
        await state.runs.close(0)
        await state.engine_pool.close()

    app = FastAPI(
        title="Lamella",
        version=lamella.__version__,
        description=API_DESCRIPTION,
        lifespan=live,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = state
    for router in ROUTERS:
        app.include_router(router)
    add_error_handlers(app)
    add_disconnect_handler(app)
    app.add_middleware(RequestGuard, state=state)
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]  # the way that FastAPI documents
    return app
