"""The routes of SCIM 2.0, whose shapes and errors are those of RFC 7643 and RFC 7644."""

from typing import Annotated

import orjson
from fastapi import Depends, Request, Response

from backend.foundation.http.bodies import read_key
from backend.foundation.http.errors import status_of
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.scim.domain import LARGEST_BODY_BYTES, ScimAnswer, ScimCall, describe_error
from backend.scim.services import OPEN_PATH, ScimAccess
from shared.errors import BallastError, PayloadTooLarge

BASE = "/scim/v2"
MEDIA_TYPE = "application/scim+json"
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

router = new_router("SCIM")
AccessDep = Annotated[ScimAccess, Depends(service_of(ScimAccess))]


@router.api_route(f"{BASE}/{{path:path}}", methods=METHODS, include_in_schema=False)
async def answer_scim(request: Request, path: str, access: AccessDep) -> Response:
    """Answer whoever synchronises a directory; errors have SCIM's form, too."""
    try:
        if f"/{path}" != OPEN_PATH or request.method != "GET":
            access.require(read_key(request.headers))
        return _respond(await access.answer(await _read_call(request, f"/{path}")))
    except BallastError as error:
        status, _ = status_of(type(error))
        answer = _respond(describe_error(status, error.message))
        if status == UNAUTHENTICATED:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer


UNAUTHENTICATED = 401


async def _read_call(request: Request, path: str) -> ScimCall:
    body = await request.body()
    if len(body) > LARGEST_BODY_BYTES:
        raise PayloadTooLarge(f"The body is larger than {LARGEST_BODY_BYTES} bytes.")
    base = f"{request.url.scheme}://{request.headers.get('host', request.url.netloc)}{BASE}"
    return ScimCall(request.method, base, path, dict(request.query_params), dict(request.headers), body)


def _respond(answer: ScimAnswer) -> Response:
    text = orjson.dumps(answer.body) if answer.body is not None else b""
    headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-type"}
    return Response(text, answer.status, headers, media_type=MEDIA_TYPE)
