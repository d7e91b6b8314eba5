"""Routes for orchestrators and for scrapers of metrics, without keys and without user data."""

from typing import Annotated

from fastapi import Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.services.readiness import Readiness, State
from backend.foundation.telemetry.outcomes import OUTCOMES

router = new_router("Health")
metrics_router = new_router("Health")


class Health(BaseModel):
    """The check has passed."""

    status: str = "ok"


class Ready(Health):
    """The process takes requests; those that need a component which is away may be refused."""

    components: dict[str, State]


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", summary="Is this process alive?")
async def alive() -> Health:
    """Answer 200 as long as the event loop runs."""
    return Health()


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", summary="Should this process get traffic?", operation_id="ready_readyz_get")
async def is_ready(readiness: Annotated[Readiness, Depends(service_of(Readiness))]) -> Ready:
    """Answer 200 when this process is not shutting down and the database answers, else 503."""
    components = await readiness.check()
    return Ready(components=components._asdict())


@metrics_router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
async def all_metrics() -> Response:
    """Answer with the text format of Prometheus."""
    return metrics_of(REGISTRY, OUTCOMES)


def metrics_of(*registries: CollectorRegistry) -> Response:
    """Return metrics in the text format of Prometheus."""
    return Response(b"".join(map(generate_latest, registries)), media_type=CONTENT_TYPE_LATEST)
