"""Who calls, as a dependency of routes."""

from typing import Annotated

from fastapi import Depends, Header
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from backend.adapters.http.services import ServicesDep
from backend.domain.identity import Caller
from backend.services.authenticate import ACT_FOR_HEADER

bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key of this server.")
BearerDep = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
ActForHeader = Annotated[
    str | None, Header(alias=ACT_FOR_HEADER, description="With a service key: the user on whose behalf it calls.")
]


async def _caller(services: ServicesDep, credentials: BearerDep, act_for: ActForHeader = None) -> Caller:
    return await services.authenticate.user(credentials.credentials if credentials else None, act_for)


async def _admin(services: ServicesDep, credentials: BearerDep) -> Caller:
    return await services.authenticate.admin(credentials.credentials if credentials else None)


CallerDep = Annotated[Caller, Depends(_caller)]
"""The user of the key, or whom a service key acts for; 401, 403, and 400 without `X-Ballast-User`."""

AdminDep = Annotated[Caller, Depends(_admin)]
"""An administrator; 401 and 403."""
