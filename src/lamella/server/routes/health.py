"""Routes for liveness, readiness and metrics."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamella.server.bodies import HealthJson, response_docs
from lamella.server.state import AdminCaller, StateDep

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process answers", responses=response_docs(HealthJson))
async def read_health() -> dict[str, str]:
    """Return whether the process answers."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Whether requests are taken",
    responses={**response_docs(HealthJson), **response_docs(HealthJson, 503, description="Not now.")},
)
async def read_readiness(*, state: StateDep) -> JSONResponse:
    """Return whether requests are accepted: the store answers, and the server is not shutting down."""
    if not state.is_ready or state.runs.is_stopping:
        return JSONResponse({"status": "stopping"}, 503)
    # Any lookup shows whether the store answers; the name need not exist.
    await state.engine_pool.pool.workers.run(lambda: state.engine_pool.backend.store.find_conversation("-"))
    return JSONResponse({"status": "ready"})


@router.get("/metrics", summary="Metrics in Prometheus's text format", response_class=PlainTextResponse)
async def read_metrics(*, state: StateDep, _caller: AdminCaller) -> PlainTextResponse:
    """Return the metrics of this process."""
    state.metrics.running.set(len(state.runs))
    return PlainTextResponse(generate_latest(state.metrics.registry), media_type=CONTENT_TYPE_LATEST)
