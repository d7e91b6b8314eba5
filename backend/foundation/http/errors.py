"""The only table from error class to HTTP status, and the only JSON shape of errors."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import orjson
import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from shared import errors
from shared.ids import IdPrefix
from shared.models.invalid_fields import Complaint, refusal_among
from shared.telemetry import LogEvent, origin_of

log: structlog.stdlib.BoundLogger = structlog.get_logger("backend.http")

STATUS_BY_ERROR: Mapping[type[errors.BallastError], tuple[int, str]] = {
    errors.BallastError: (500, "server_error"),
    errors.InvalidRequest: (400, "invalid_request_error"),
    errors.PayloadTooLarge: (413, "invalid_request_error"),
    errors.KeyReused: (422, "invalid_request_error"),
    errors.Unauthenticated: (401, "authentication_error"),
    errors.PermissionDenied: (403, "permission_error"),
    errors.NotFound: (404, "not_found_error"),
    errors.Conflict: (409, "conflict_error"),
    errors.MethodNotAllowed: (405, "invalid_request_error"),
    errors.TooManyRequests: (429, "rate_limit_error"),
    errors.Unavailable: (503, "server_error"),
    errors.DeadlineExceeded: (504, "server_error"),
    errors.CorruptRecord: (500, "server_error"),
    errors.InternalError: (500, "server_error"),
    errors.ModelError: (502, "server_error"),
    errors.ModelRateLimited: (429, "rate_limit_error"),
    errors.ModelQuotaExhausted: (429, "insufficient_quota"),
    errors.ModelRequestRejected: (400, "invalid_request_error"),
    errors.ModelStalled: (504, "server_error"),
}
"""Status and OpenAI's `type`. A class that is not named here is answered like its nearest ancestor."""

NEVER_REPEATED = (errors.TurnRunning, errors.ModelError)
"""Errors of requests whose turn runs or ran: OpenAI's clients repeat 409, 429 and 5xx unless a header forbids it."""

RETRY_AFTER_SECONDS: Mapping[type[errors.BallastError], float] = {
    errors.TurnRunning: 1,
    errors.Unavailable: 1,
    errors.TooManyRequests: 1,
    errors.ModelRateLimited: 5,
    errors.ModelQuotaExhausted: 60,
}
"""How long a client waits where the error itself does not say it: every 429 and 503 does, and 409 where it helps."""

CODE_BY_STATUS = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
BASE_PATH = "/v1"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
GENERIC_MESSAGE = "The server had an error while answering. The request id tells the operator which."


def status_of(error: type[errors.BallastError]) -> tuple[int, str]:
    """Return the status and the `type` of an error class."""
    return next(STATUS_BY_ERROR[ancestor] for ancestor in error.__mro__ if ancestor in STATUS_BY_ERROR)


def error_body(error: errors.BallastError) -> dict[str, str | None]:
    """Return the value of `error` in the body of an error: OpenAI's four keys."""
    _, type_ = status_of(type(error))
    return {"message": error.full_message, "type": type_, "param": error.param, "code": error.code}


def error_response(error: errors.BallastError, *, turn_begun: bool = False) -> Response:
    """Return the HTTP response for an error.

    `turn_begun` states that a turn has begun for this request, so that no client may send it again.
    """
    status, _ = status_of(type(error))
    headers: dict[str, str] = {}
    if turn_begun or isinstance(error, NEVER_REPEATED):
        headers["x-should-retry"] = "false"
    wait_seconds = _retry_after_seconds(error)
    if wait_seconds is not None:
        headers["retry-after"] = str(max(0, math.ceil(wait_seconds)))
    if isinstance(error, errors.Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    return render(status, error_body(error), headers)


def _retry_after_seconds(error: errors.BallastError) -> float | None:
    if error.retry_after_seconds is not None:
        return error.retry_after_seconds
    return next((RETRY_AFTER_SECONDS[kind] for kind in type(error).__mro__ if kind in RETRY_AFTER_SECONDS), None)


def render(status: int, body: Mapping[str, str | None], headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response with the four keys of an error."""
    content = orjson.dumps({"error": dict(body)})
    return Response(content, status, headers=dict(headers or {}), media_type="application/json")


def mark_turn_begun(request: Request) -> None:
    """Mark a request whose later errors must carry `x-should-retry: false`, because its turn has begun."""
    request.state.turn_begun = True


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of an app OpenAI's shape; `LastCatch` of middleware.py catches unexpected ones."""
    app.add_exception_handler(errors.BallastError, _on_ballast_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_ballast_error(request: Request, error: Exception) -> Response:
    begun = getattr(request.state, "turn_begun", False)
    found = cast(errors.BallastError, error)
    log_server_error(found, request.scope)
    response = error_response(found, turn_begun=begun)
    if isinstance(found, errors.MethodNotAllowed):
        allowed = _methods_of(request, request.url.path).split(", ")
        response.headers["allow"] = ", ".join(method for method in allowed if method != request.method)
    return response


def log_server_error(error: errors.BallastError, scope: Scope) -> None:
    """Log an error that is answered with 5xx: its causes and where they were raised, without their text."""
    status, _ = status_of(type(error))
    if status >= 500:
        log.error(
            LogEvent.REQUEST_FAILED, method=scope["method"], route=route_of(scope), status=status, **origin_of(error)
        )


def route_of(scope: Scope) -> str:
    """Return the route's template, such as `/v1/responses/{response_id}`."""
    return str(getattr(scope.get("route"), "path", "none"))


async def _on_validation_error(request: Request, error: Exception) -> Response:
    found = cast(RequestValidationError, error)
    # The first step of a location names the part of the request: body, query, path or header.
    in_body = [_complaint(each, each["loc"][1:]) for each in found.errors() if each["loc"][:1] == ("body",)]
    if in_body:
        return error_response(refusal_among(in_body, given=found.body))
    # In the query, steps after the name lead into the value: the index of a repeated name, a member of a union.
    return error_response(refusal_among([_complaint(each, each["loc"][1:2]) for each in found.errors()]))


def _complaint(error: ErrorDetails, location: tuple[int | str, ...]) -> Complaint:
    return Complaint.of(error)._replace(location=location)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """Answer errors of the router itself: unknown paths and methods."""
    found = cast(HTTPException, error)
    allowed = _methods_of(request, request.url.path) if found.status_code == 405 else ""
    status = 404 if found.status_code == 405 and not allowed else found.status_code
    message = {
        404: f"There is nothing at {request.url.path}; {_way_to_it(request)}.",
        405: f"{request.method} is not allowed at {request.url.path}; use {allowed}.",
    }.get(status, str(found.detail))
    body = {
        "message": message,
        "type": "not_found_error" if status == 404 else "invalid_request_error",
        "param": None,
        "code": CODE_BY_STATUS.get(status, "invalid_request"),
    }
    return render(status, body, {"allow": allowed} if allowed else None if status == 404 else found.headers)


def _way_to_it(request: Request) -> str:
    """Say where to look instead: a client whose base URL lacks the `/v1` asks for paths that are there behind it."""
    is_behind = _methods_of(request, f"{BASE_PATH}{request.url.path}")
    return f"add {BASE_PATH} to the base URL of your client" if is_behind else "/docs lists all paths"


def _methods_of(request: Request, path: str) -> str:
    """List the methods of a path, as RFC 9110, section 10.2.1, requires; the router lists those of one route only."""
    routes = list(_single_routes(cast(FastAPI, request.app).router.routes))
    asked: Scope = {**request.scope, "path": path, "path_params": {}}
    scopes: dict[str, Scope] = {method: {**asked, "method": method} for method in METHODS}
    return ", ".join([method for method in METHODS if any(_is_at(route, scopes[method]) for route in routes)])


def _single_routes(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Return the routes of included routers one by one: a router as a whole does not tell a path's parameters."""
    for route in routes:
        included = getattr(route, "original_router", None)
        yield from _single_routes(included.routes) if isinstance(included, APIRouter) else (route,)


def _is_at(route: BaseRoute, scope: Scope) -> bool:
    """Whether a route answers at an address whose parameters may be what they are named after.

    `/v1/responses/compact` matches the path of a response; but no response has such an id, so that nothing is there.
    """
    match, found = route.matches(scope)
    if match is not Match.FULL:
        return False
    return all(_may_hold(name, str(value)) for name, value in found.get("path_params", {}).items())


def _may_hold(name: str, value: str) -> bool:
    """Whether the value may be an id, for a path parameter that is named after a kind of ids, such as `response_id`."""
    kind = f"_{name.removesuffix('_id')}"
    prefixes = [prefix for prefix in IdPrefix if f"_{prefix.name.lower()}".endswith(kind)]
    return not name.endswith("_id") or not prefixes or any(value.startswith(f"{prefix}_") for prefix in prefixes)
