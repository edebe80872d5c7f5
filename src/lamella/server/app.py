"""The application: all routers behind the request guard, over the state of a server.

``make_app`` builds it; on shutdown it closes what the state has open. A new resource or compatibility endpoint is a
line here and a module in its package.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

import lamella
from lamella.server.compat import endpoints
from lamella.server.compat.service import CompatService
from lamella.server.errors import add_error_handlers
from lamella.server.observability import TurnMetricsHandler
from lamella.server.openapi import API_DESCRIPTION, build_openapi
from lamella.server.page import list_page_routes
from lamella.server.routes import (
    attachments,
    catalog,
    compaction,
    conversations,
    events,
    health,
    memory,
    messages,
    notes,
    prompts,
    rules,
    session,
    settings,
    workflows,
)
from lamella.server.routes import code as solutions
from lamella.server.security import RequestGuard
from lamella.server.state import ServerState, add_disconnect_handler

# The application.

# A new resource is a line here and a module in the package of the others.
ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    session.router,
    conversations.router,
    events.router,
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
    endpoints.router,
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
        await app.state.compat.close()
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
    app.state.compat = CompatService(state)
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.extend(list_page_routes())
    add_error_handlers(app)
    add_disconnect_handler(app)
    app.add_middleware(RequestGuard, state=state)
    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]  # the way that FastAPI documents
    return app
