"""What an orchestrator and a scraper ask: no key, no user data."""

from typing import Annotated

from fastapi import Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.services.readiness import Readiness, State

router = new_router("Health")


class Health(BaseModel):
    """All is well."""

    status: str = "ok"


class Ready(Health):
    """New calls are welcome; some may be refused for what is away."""

    components: dict[str, State]


@router.get("/healthz", summary="Is this process alive?")
async def alive() -> Health:
    """Answer as long as the event loop turns."""
    return Health()


@router.get("/readyz", summary="Should this process get traffic?", operation_id="ready_readyz_get")
async def is_ready(readiness: Annotated[Readiness, Depends(service_of(Readiness))]) -> Ready:
    """Answer 200 when this process is not shutting down and the database answers, else 503."""
    components = await readiness.check()
    return Ready(components=components._asdict())


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def metrics() -> Response:
    """Answer with the text format of Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
