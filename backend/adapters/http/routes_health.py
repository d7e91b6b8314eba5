"""What an orchestrator and a scraper ask: no key, no user data."""

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from backend.adapters.http.json_body import new_router
from backend.adapters.http.services import ServicesDep

router = new_router("Health")


class Health(BaseModel):
    """All is well."""

    status: str = "ok"


@router.get("/healthz", summary="Is this process alive?")
async def alive() -> Health:
    """Answer as long as the event loop turns."""
    return Health()


@router.get("/readyz", summary="Should this process get traffic?")
async def ready(services: ServicesDep) -> Health:
    """Answer 200 when new turns are taken and the database answers, else 503."""
    await services.readiness.check()
    return Health()


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def metrics() -> Response:
    """Answer with the text format of Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
