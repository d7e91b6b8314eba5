"""Dependencies of routes that authenticate the caller."""

from typing import Annotated

from fastapi import Depends, Header, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from backend.foundation.http.bodies import find_held_body, read_key
from backend.foundation.http.idempotency import KeyDep, Once, read_idempotency_key
from backend.foundation.http.middleware import KEY_ID
from backend.foundation.http.services import service_in
from backend.foundation.services.idempotency import KEY_HEADER, OncePerKey
from backend.identity.domain import Caller
from backend.identity.services import ACT_FOR_HEADER, Authenticate, require_administrator, resolve_caller
from shared.errors import InvalidRequest
from shared.http_server.connection import CLIENT_LEFT

PRESENTED = "presented_caller"
"""Where the state of a request holds whom its key or token names, once that is known."""

bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key of this server, or a token.")


def _require_single(request: Request, name: str) -> None:
    """Refuse a repeated header: a gateway may have added its own value to one that the user chose."""
    if len(request.headers.getlist(name)) > 1:
        raise InvalidRequest(f"The header {name} must not be sent more than once.", param=name)


async def _credentials(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> HTTPAuthorizationCredentials | None:
    _require_single(request, "Authorization")
    return credentials


BearerDep = Annotated[HTTPAuthorizationCredentials | None, Depends(_credentials)]
"""The bearer key or token, None where there is none; the status is 400 for more than one `Authorization`."""


async def identify_caller(request: Request) -> Caller:
    """Return whom the key or token of a request names, which is looked up once, before or behind the body.

    Raises:
        Unauthenticated: the key or token is missing, unknown or expired.
        Unavailable: it cannot be looked up now.
        InvalidRequest: there is more than one.
    """
    state = request.scope["state"]
    if PRESENTED not in state:
        _require_single(request, "Authorization")
        authenticate = service_in(request, Authenticate)
        state[PRESENTED] = await authenticate.identify(read_key(request.headers), state.get(CLIENT_LEFT))
        state[KEY_ID] = state[PRESENTED].key_id
    caller: Caller = state[PRESENTED]
    return caller


ActForHeader = Annotated[
    str | None, Header(alias=ACT_FOR_HEADER, description="With a service key: the user on whose behalf it calls.")
]


async def _caller(request: Request, _: BearerDep, act_for: ActForHeader = None) -> Caller:
    _require_single(request, ACT_FOR_HEADER)
    caller = resolve_caller(await identify_caller(request), act_for)
    find_held_body(request).own(caller.key_id)
    return caller


async def _admin(request: Request, _: BearerDep) -> Caller:
    caller = require_administrator(await identify_caller(request))
    find_held_body(request).own(caller.key_id)
    return caller


CallerDep = Annotated[Caller, Depends(_caller)]
"""The user of the key or token, or the one for whom a service acts; 401, 403, or 400 for a wrong `X-Ballast-User`."""

AdminDep = Annotated[Caller, Depends(_admin)]
"""An administrator; statuses are 401 for a missing or unknown key or token, and 403 for another role."""


async def _once(request: Request, response: Response, caller: CallerDep, key: KeyDep = None) -> Once:
    return Once(service_in(request, OncePerKey), request, response, key, (caller.tenant, caller.user_id))


OnceDep = Annotated[Once, Depends(_once)]
"""The request's work, done once under its Idempotency-Key, which is the caller's own."""


async def once_of_caller(request: Request) -> tuple[Caller, Once]:
    """Return what `CallerDep` and `OnceDep` give, for a route that each turn takes: FastAPI takes longer to ask."""
    caller = await _caller(request, None, request.headers.get(ACT_FOR_HEADER))
    key = await read_idempotency_key(request, request.headers.get(KEY_HEADER))
    return caller, await _once(request, Response(), caller, key)
