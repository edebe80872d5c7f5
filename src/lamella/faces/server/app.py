"""The application: routers and the guard before them, put together over the state of a server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

import lamella
from lamella.faces.server.describing import ABOUT, describe
from lamella.faces.server.doors.routers import DOORS
from lamella.faces.server.failures import add_handlers
from lamella.faces.server.guard.guard import Guard
from lamella.faces.server.leaving import add_leaving
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
    rules,
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
    rules.router,
    memory.router,
    notes.router,
    catalog.router,
    settings.router,
    solutions.router,
    workflows.router,
    *DOORS,
)


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
        description=ABOUT,
        lifespan=live,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = state
    for router in ROUTERS:
        app.include_router(router)
    add_handlers(app)
    add_leaving(app)
    app.add_middleware(Guard, state=state)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # how FastAPI has it done
    return app
