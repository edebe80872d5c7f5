"""Routes for liveness, readiness and metrics."""

from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamella.schemas.catalog import HealthJson
from lamella.server.openapi import describe_response, json_response, make_router
from lamella.server.state import AdminCaller, StateDep

router = make_router(tag="health")


@router.get("/healthz", summary="Whether the process answers")
async def read_health() -> HealthJson:
    """Return whether the process answers."""
    return HealthJson(status="ok")


@router.get(
    "/readyz",
    summary="Whether requests are taken",
    response_class=Response,
    responses={**describe_response(HealthJson), **describe_response(HealthJson, 503, description="Not now.")},
)
async def read_readiness(*, state: StateDep) -> Response:
    """Return whether requests are accepted: the store answers, and the server is not shutting down."""
    if not state.is_ready or state.runs.is_stopping:
        return json_response(HealthJson(status="stopping"), 503)
    # Any lookup shows whether the store answers; the name need not exist.
    await state.engine_pool.pool.workers.run(lambda: state.engine_pool.backend.store.find_conversation("-"))
    return json_response(HealthJson(status="ready"))


@router.get("/metrics", summary="Metrics in Prometheus's text format", response_class=PlainTextResponse)
async def read_metrics(*, state: StateDep, _caller: AdminCaller) -> PlainTextResponse:
    """Return the metrics of this process."""
    state.metrics.running.set(len(state.runs))
    return PlainTextResponse(generate_latest(state.metrics.registry), media_type=CONTENT_TYPE_LATEST)
