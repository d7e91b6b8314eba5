"""Metrics at the public port: those that tell how restricted searches end are for administrators alone."""

from fastapi import HTTPException, Request, Response
from prometheus_client import REGISTRY

from backend.foundation.http.json_body import new_router
from backend.foundation.http.routes_health import all_metrics, metrics_of
from backend.identity.http.caller import BearerDep, identify_caller
from backend.identity.services import require_administrator
from shared.errors import PermissionDenied, Unauthenticated, Unavailable

router = new_router("Health")
router_beside_operators = new_router("Health")
"""Used where operators have a port of their own: there everybody else gets nothing here."""


@router.get("/metrics", include_in_schema=False)
async def show_general_metrics(request: Request, _: BearerDep) -> Response:
    """Answer with the text format of Prometheus: with all metrics where an administrator asks.

    While the database is away nobody is known as one, and what is open is what tells of it.
    """
    try:
        return await all_metrics() if await _is_administrator(request) else metrics_of(REGISTRY)
    except Unavailable:
        return metrics_of(REGISTRY)


@router_beside_operators.get("/metrics", include_in_schema=False)
async def show_to_administrators(request: Request, _: BearerDep) -> Response:
    """Answer with all metrics; for everybody but administrators nothing is here."""
    if not await _is_administrator(request):
        raise HTTPException(404)
    return await all_metrics()


async def _is_administrator(request: Request) -> bool:
    try:
        require_administrator(await identify_caller(request))
    except (Unauthenticated, PermissionDenied):
        return False
    return True
