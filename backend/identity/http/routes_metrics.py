"""Metrics at the public port, for administrators alone: they tell how restricted searches end."""

from fastapi import HTTPException, Request, Response

from backend.foundation.http.json_body import new_router
from backend.foundation.http.routes_health import metrics
from backend.identity.http.caller import BearerDep, identify_caller
from backend.identity.services import require_administrator
from shared.errors import PermissionDenied, Unauthenticated

router = new_router("Health")


@router.get("/metrics", include_in_schema=False)
async def show_to_administrators(request: Request, _: BearerDep) -> Response:
    """Answer with the text format of Prometheus; for everybody else nothing is here."""
    try:
        require_administrator(await identify_caller(request))
    except (Unauthenticated, PermissionDenied):
        raise HTTPException(404) from None
    return await metrics()
