"""Health: whether the server is there, whether it takes requests, and its metrics."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamella.faces.server.bodies.catalog import HealthJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Admin, State

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process answers", responses=told(HealthJson))
async def read_health() -> dict[str, str]:
    """Whether the process answers at all."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Whether requests are taken",
    responses={**told(HealthJson), **told(HealthJson, 503, description="Not now.")},
)
async def read_readiness(*, state: State) -> JSONResponse:
    """Whether requests are taken: the store answers, and the server is not being stopped."""
    if not state.is_ready or state.runs.is_stopping:
        return JSONResponse({"status": "stopping"}, 503)
    await state.suite.pool.workers.run(lambda: state.suite.backend.store.find_conversation("-"))
    return JSONResponse({"status": "ready"})


@router.get("/metrics", summary="Metrics in Prometheus's text format", response_class=PlainTextResponse)
async def read_metrics(*, state: State, _caller: Admin) -> PlainTextResponse:
    """The figures of this process."""
    state.meters.running.set(len(state.runs))
    return PlainTextResponse(generate_latest(state.meters.registry), media_type=CONTENT_TYPE_LATEST)
